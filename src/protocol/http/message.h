/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads and ends. A head is one block of the pool: the struct, its fields, and text.
 */
#ifndef WEIR_PROTOCOL_HTTP_MESSAGE_H
#define WEIR_PROTOCOL_HTTP_MESSAGE_H

#include <weir/http.h>

#include "protocol/http/headers.h"

/* The common part of requests and responses. */
typedef struct weir__http_head {
    weir_msg msg;
    weir_buf *block;    /* the memory of the head */
    weir_buf *received; /* that headers.received points into; NULL if it was copied, or created */
    weir_http_headers headers;
    int64_t content_length;
    uint8_t version; /* enum weir_http_version */
} weir__http_head;

/*
 * A small response, for codecs that can write one without the messages that it consists of. The
 * exchange handler uses this if nothing stands between it and the codec.
 */
typedef struct weir__http_answer {
    int status;             /* with content: not 1xx, 204 or 304 */
    weir_span content_type; /* checked */
    weir_span content;
} weir__http_answer;

typedef struct weir__http_codec {
    const weir_handler *handler;

    /* Writes everything but the end; `end` follows. Returns false, and has done nothing, if the
     * codec wants messages. `ctx` is one of the handler's. */
    bool (*answer)(weir_ctx *ctx, const weir__http_answer *answer);
    void (*end)(weir_ctx *ctx);
} weir__http_codec;

struct weir_http_request {
    weir__http_head head;
    const weir__http_codec *codec; /* that has received it; NULL = unknown */
    uint16_t room;                 /* bytes behind it that belong to its receiver */
    uint8_t method;                /* enum weir_http_method */
    bool expects_continue;
    bool is_encoded;      /* the path has a percent sign */
    bool has_fragment;    /* the target has a number sign */
    uint32_t method_text; /* offsets, as those of fields */
    uint32_t method_length;
    uint32_t target;
    uint32_t target_length;
    uint32_t path; /* relative to the target */
    uint32_t path_length;
};

struct weir_http_response {
    weir__http_head head;
    uint16_t status;
    bool closes;
    bool has_reason; /* it was received */
    bool is_file;    /* its content is, or for HEAD would be, a file range: it is not compressed */
    uint32_t reason;
    uint32_t reason_length;
};

struct weir_http_end {
    weir_msg msg;
    weir_buf *block;
    weir_buf *received;
    bool has_trailers; /* false in the static one only */
    weir_http_headers trailers;
};

/* Payloads of the pool: room for the fields of most heads. */
#define WEIR__HTTP_REQUEST_SIZE 640
#define WEIR__HTTP_RESPONSE_SIZE 448
#define WEIR__HTTP_END_SIZE 256

/* Of a received request: what an exchange with a few parameters needs. */
#define WEIR__HTTP_REQUEST_ROOM 448

/*
 * Create a message with room for `size` bytes altogether. Behind a request there are `room` bytes
 * more for its receiver, who so needs no memory of its own. Fail with -ENOMEM.
 */
int weir__http_request_alloc(size_t size, size_t room, weir_http_request **ret_request);
int weir__http_response_alloc(size_t size, weir_http_response **ret_response);

static inline weir_span weir__http_request_target(const weir_http_request *request)
{
    return weir__http_text(&request->head.headers, request->target, request->target_length);
}

/* Finds the path in the target, once it is known. */
void weir__http_request_find_path(weir_http_request *request);

/* The authority of an absolute target; data is NULL if it has another form. */
weir_span weir__http_target_authority(weir_span target);

#endif
