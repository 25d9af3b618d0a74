/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the content of a message: of a given length, chunked, or until the connection ends.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_BODY_H
#define WEIR_PROTOCOL_HTTP_HTTP1_BODY_H

#include <weir/http.h>

#include "protocol/http/http1_framing.h"
#include "protocol/http/http1_head.h"

typedef struct weir__http1_body {
    uint8_t content;    /* enum weir__http1_content */
    uint8_t state;      /* of chunked content */
    uint8_t digits;     /* of the size of the chunk */
    uint8_t part;       /* of its extensions */
    uint16_t extension; /* their bytes */
    uint16_t excess;    /* bytes of extensions in this message, beyond what chunks may have */
    uint64_t left;      /* bytes of the content or of the chunk */
    weir_http_end *end; /* receives trailers; NULL = none yet */
} weir__http1_body;

void weir__http1_body_init(weir__http1_body *body, const weir__http1_framing *framing);
void weir__http1_body_deinit(weir__http1_body *body);

/*
 * Reads from `in` until there is content, the end, or nothing left. `parser` is used for trailers.
 * Returns 1 if it may be called again, 2 if the message has ended, 0 if more bytes are needed,
 * -ENOMEM, or -400 with `parser->detail`. In all cases `*ret_content`, if not NULL, is content that
 * comes before; it may contain several chunks.
 */
int weir__http1_body_read(weir__http1_body *body, weir__http1_parser *parser,
                          const weir__http1_limits *limits, uint64_t max_chunk, weir_buf *in,
                          weir_buf **ret_content);

/* The end of a message that has ended, to be passed on. */
weir_msg *weir__http1_body_take_end(weir__http1_body *body);

#endif
