/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding frames that end with one of several delimiters: what lines and delimited frames share.
 *
 *      in: [ searched: none begins here | not searched yet ]
 *
 * The delimiter that begins first ends the frame; of those that begin at the same place, the first
 * of the list. One that is cut off by the end of the bytes is waited for. So it does not matter how
 * the bytes are cut, and none is searched twice.
 */
#ifndef WEIR_CODEC_DELIMITERS_H
#define WEIR_CODEC_DELIMITERS_H

#include <weir/buf.h>

#include "codec/frames.h"

#define WEIR__DELIMITERS_MAX 256

/* The state of such a decoder. */
struct weir__delimiters {
    struct weir__frames frames;
    const weir_span *list;
    size_t count;
    weir_byte_set firsts; /* what a delimiter begins with */
    bool share_last_byte; /* they all end with the same byte, and have it nowhere else */
    size_t longest;
    size_t searched;
    bool keep_delimiter; /* the delimiter is passed on, too */
};

/* The list is lent until the state goes; it has 1 to WEIR__DELIMITERS_MAX, none of them empty. */
void weir__delimiters_init(struct weir__delimiters *delimiters, const weir_span *list,
                           size_t count);

/* decode and decode_last of such a decoder. */
int weir__delimiters_decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);
int weir__delimiters_decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

#endif
