/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The incremental parser of heads: start lines and fields, by RFC 9112, strictly.
 *
 * It sees the bytes from the start of the head each time, and continues where it stopped: each byte
 * is looked at once. It stores offsets into the head. Bytes beyond a limit are never looked at, so
 * the result does not depend on how the input was split.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_HEAD_H
#define WEIR_PROTOCOL_HTTP_HTTP1_HEAD_H

#include <weir/http.h>

#include "protocol/http/message.h"

typedef struct weir__http1_limits {
    uint32_t max_start_line;
    uint32_t max_header_bytes;
    uint32_t max_header_fields;
} weir__http1_limits;

typedef struct weir__http1_parser {
    uint32_t at;     /* bytes seen */
    uint32_t mark;   /* the start of the method, the target, the version or a name */
    uint32_t value;  /* the start of a value */
    uint32_t fields; /* the start of the fields */
    uint32_t count;  /* fields seen */
    uint32_t name_length;
    uint8_t state;
    bool is_trailer;    /* fields that are not allowed in trailers are dropped */
    const char *detail; /* why the input was refused */
} weir__http1_parser;

/* Starts with a start line, or with the fields of trailers. */
void weir__http1_parser_init(weir__http1_parser *parser);
void weir__http1_parser_init_trailers(weir__http1_parser *parser);

/*
 * Each returns 1 if the head is complete, and `parser->at` bytes long; 0 if more bytes are needed;
 * -ENOMEM; or a negative status and sets `detail`. `bytes` begins with the first byte of the head,
 * or of the trailers.
 */
int weir__http1_parse_request(weir__http1_parser *parser, const weir__http1_limits *limits,
                              weir_http_request *request, weir_span bytes);
int weir__http1_parse_response(weir__http1_parser *parser, const weir__http1_limits *limits,
                               weir_http_response *response, weir_span bytes);
int weir__http1_parse_fields(weir__http1_parser *parser, const weir__http1_limits *limits,
                             weir_http_headers *headers, weir_span bytes);

/*
 * Makes the first `length` readable bytes of `in` those that the offsets are relative to: copies a
 * short head into the free part of the area, otherwise keeps the buffer.
 */
void weir__http1_keep(weir_http_headers *headers, weir_buf **received, weir_buf *in, size_t length);

#endif
