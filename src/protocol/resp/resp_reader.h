/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values out of bytes that come in pieces. Nothing recurses: the open aggregates are a chain.
 *
 * A value beyond a limit is skipped without being built. For this it is enough to know how many
 * values are still to come before it ends, however deep they lie: a number.
 */
#ifndef WEIR_PROTOCOL_RESP_RESP_READER_H
#define WEIR_PROTOCOL_RESP_RESP_READER_H

#include <weir/resp.h>

typedef struct weir__resp_reader {
    weir_resp_options limits;
    size_t searched; /* so many bytes have no line end */

    /* The value that is being read. */
    weir_resp *open;       /* its innermost aggregate that is not complete */
    weir_resp *attributes; /* of the value that comes next */
    unsigned depth;
    size_t elements; /* that it has, or will have */
    size_t bytes;
    size_t memory;            /* that its values hold, as limits.max_memory counts it */
    enum weir_resp_kind bulk; /* its bytes come next; 0 = not */
    size_t bulk_length;

    uint64_t stream_left; /* of a head */
    bool stream_ends;     /* its line end is still to come */

    /* A value that is being skipped. */
    uint64_t skip_values; /* so many have not begun */
    uint64_t skip_bytes;
    bool skip_line; /* up to the end of this one */

    char detail[128]; /* why it has failed */
} weir__resp_reader;

/* The limits have been checked. */
void weir__resp_reader_init(weir__resp_reader *reader, const weir_resp_options *limits);
void weir__resp_reader_deinit(weir__resp_reader *reader);

/*
 * Reads up to the end of one value: 1, and the value or a piece of what follows a head, if there is
 * one; 0 if more bytes are needed, `*ret_need` in all if that is known. Fails with WEIR_ETOOLONG:
 * the value is skipped, which took a byte at least; and, for good, with WEIR_EMALFORMED, -ENOMEM.
 */
int weir__resp_read(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg, size_t *ret_need);

#endif
