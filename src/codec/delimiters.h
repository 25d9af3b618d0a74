/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds frames that end with one of several delimiters; shared by lines and delimited frames.
 *
 *      in: [ searched: no delimiter starts here | not searched yet ]
 *
 * The delimiter that starts first ends the frame; at the same position, the first in the list. A
 * delimiter that is incomplete at the end of the bytes is waited for. So the result does not depend
 * on how the stream was split, and no byte is searched twice.
 */
#ifndef WEIR_CODEC_DELIMITERS_H
#define WEIR_CODEC_DELIMITERS_H

#include <weir/buf.h>

#include "codec/frames.h"

#define WEIR__DELIMITERS_MAX 256

/* The decoder's state. */
struct weir__delimiters {
    struct weir__frames frames;
    const weir_span *list;
    size_t count;
    weir_byte_set firsts; /* the first bytes of all delimiters */
    bool share_last_byte; /* all delimiters end with one byte that occurs nowhere else in them */
    size_t longest;
    size_t searched;
    bool keep_delimiter; /* leave the delimiter on the frame */
};

/*
 * The list of 1 to WEIR__DELIMITERS_MAX delimiters, none empty, is lent until the state is freed.
 */
void weir__delimiters_init(struct weir__delimiters *delimiters, const weir_span *list,
                           size_t count);

/* The decoder's callbacks. */
int weir__delimiters_decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);
int weir__delimiters_decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

#endif
