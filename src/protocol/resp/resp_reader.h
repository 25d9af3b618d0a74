/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An incremental parser. It does not recurse: the open aggregates are a linked list.
 *
 * A value over a limit is skipped without being built. The only state this needs is the number of
 * values that have not started yet, at any depth.
 */
#ifndef WEIR_PROTOCOL_RESP_RESP_READER_H
#define WEIR_PROTOCOL_RESP_RESP_READER_H

#include <weir/resp.h>

typedef struct weir__resp_reader {
    weir_resp_options limits;
    size_t searched; /* bytes without a line end */

    /* The value that is being read. */
    weir_resp *open;       /* innermost incomplete aggregate */
    weir_resp *attributes; /* of the next value */
    unsigned depth;
    size_t elements; /* present or announced */
    size_t bytes;
    size_t memory;            /* as limits.max_memory counts it */
    enum weir_resp_kind bulk; /* kind of the bulk whose bytes come next, or 0 */
    size_t bulk_length;

    uint64_t stream_left; /* bytes after a bulk header */
    bool stream_ends;     /* the line end is outstanding */

    /* The value that is being skipped. */
    uint64_t skip_values; /* values that have not started */
    uint64_t skip_bytes;
    bool skip_line; /* up to the next line end */

    char detail[128]; /* of the last error */
} weir__resp_reader;

/* The limits are valid. */
void weir__resp_reader_init(weir__resp_reader *reader, const weir_resp_options *limits);
void weir__resp_reader_deinit(weir__resp_reader *reader);

/*
 * Reads up to the end of one value. Returns 1, with the value, a part of a streamed bulk, or no
 * message; 0 if more bytes are needed, `*ret_need` in total if known. Fails with WEIR_ETOOLONG,
 * having consumed at least one byte, and then skips the value; WEIR_EMALFORMED or -ENOMEM are
 * final.
 */
int weir__resp_read(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg, size_t *ret_need);

#endif
