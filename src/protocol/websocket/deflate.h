/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permessage-deflate (RFC 7692) of one connection, both directions.
 *
 * A context is created when its direction is first used. It is kept between messages only if the
 * next message may refer to the previous ones (context takeover).
 */
#ifndef WEIR_PROTOCOL_WEBSOCKET_DEFLATE_H
#define WEIR_PROTOCOL_WEBSOCKET_DEFLATE_H

#include <weir/buf.h>

/* The parameters that both sides agreed on. */
typedef struct weir__ws_deflate_terms {
    bool is_on;
    uint8_t compress_bits;   /* window of our compressor, 9 to 15; less: it must not be used */
    uint8_t decompress_bits; /* window of the peer's, 9 to 15 */
    bool compress_alone;     /* each message by itself, without context takeover */
    bool decompress_alone;
} weir__ws_deflate_terms;

typedef struct weir__ws_deflate weir__ws_deflate;

/* Creates the state of a connection, without any context. Level 1 to 9. Fails with -ENOMEM. */
int weir__ws_deflate_create(const weir__ws_deflate_terms *terms, int level,
                            weir__ws_deflate **ret_deflate);

/* NULL is ignored. */
void weir__ws_deflate_free(weir__ws_deflate *deflate);

/* False if the peer can not receive what our compressor makes: messages are sent as they are. */
bool weir__ws_deflate_compresses(const weir__ws_deflate *deflate);

/*
 * Compresses a part of a message, and appends it to `to`, for a frame of its own. Fails with
 * -ENOMEM or WEIR_EBOUNDS; then the connection is broken, and `to` has a part of it.
 */
int weir__ws_deflate_compress(weir__ws_deflate *deflate, weir_span part, bool is_last,
                              weir_buf *to);

/*
 * Decompresses bytes of a message, and appends them to `to`, at most `max` of them. `*part` is then
 * what is left. Returns 1 if `max` bytes were appended and there may be more: call it again, also
 * if nothing is left of the part. Otherwise 0. `is_last`: the message ends with the part. Fails
 * with -ENOMEM, WEIR_EBOUNDS, WEIR_EMALFORMED; then the connection is broken.
 */
int weir__ws_deflate_decompress(weir__ws_deflate *deflate, weir_span *part, bool is_last,
                                size_t max, weir_buf *to);

/* The memory of the contexts, in bytes. */
size_t weir__ws_deflate_memory(const weir__ws_deflate *deflate);

#endif
