/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the filters of weir/http_filters.h: functions that they share, and their settings as
 * objects, which a server makes once and shares among its connections.
 */
#ifndef WEIR_PROTOCOL_HTTP_FILTERS_H
#define WEIR_PROTOCOL_HTTP_FILTERS_H

#include <weir/codec.h>
#include <weir/http_filters.h>

/* ---- handlers ---- */

extern const weir_handler weir__http_access_log_handler;
extern const weir_handler weir__http_request_ids_handler;
extern const weir_handler weir__http_client_limit_handler;
extern const weir_handler weir__http_security_handler;
extern const weir_handler weir__http_cors_handler;
extern const weir_handler weir__http_compression_handler;
extern const weir_msg_decoder weir__http_decompression_handler;

/* On the loop: removes the filters of a connection that another protocol takes over. */
void weir__http_filters_remove(weir_pipeline *pipeline);

/* ---- settings ---- */

/*
 * Create settings from options; NULL = the defaults. Fail with -EINVAL, -ENOMEM. The handlers that
 * the add functions add keep a reference. Release ignores NULL.
 */
typedef struct weir__http_security weir__http_security;
int weir__http_security_create(const weir_http_security_options *options,
                               weir__http_security **ret_security);
void weir__http_security_release(weir__http_security *security);
int weir__http_security_add(weir_pipeline *pipeline, weir__http_security *security);

typedef struct weir__http_cors weir__http_cors;
int weir__http_cors_create(const weir_http_cors_options *options, weir__http_cors **ret_cors);
void weir__http_cors_release(weir__http_cors *cors);
int weir__http_cors_add(weir_pipeline *pipeline, weir__http_cors *cors);

typedef struct weir__http_compression weir__http_compression;
int weir__http_compression_create(const weir_http_compression_options *options,
                                  weir__http_compression **ret_compression);
void weir__http_compression_release(weir__http_compression *compression);
int weir__http_compression_add(weir_pipeline *pipeline, weir__http_compression *compression);

/* ---- responses that pass ---- */

/* True for a response that another one follows: 100 to 199, except 101. */
bool weir__http_is_interim(const weir_http_response *response);

/* Adds a name to Vary, unless it is there. Fails as weir_http_headers_add. */
int weir__http_vary_add(weir_http_headers *headers, const char *name);

/* Fails the write of a response that a filter could not change, and resets the connection: the
 * client must take neither a part for the whole nor what follows for another response. Takes: msg,
 * which may be NULL. */
void weir__http_fail_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done, int err);

/* ---- responses that a filter makes itself ---- */

/*
 * A filter that answers a request itself does not pass it on, and discards its content: while that
 * is short, the connection can be used again; otherwise it is closed. A member of the filter's
 * state.
 */
typedef struct weir__http_local_reply {
    bool is_discarding; /* the rest of the request */
    bool needs_request; /* a message was discarded: its successor must be requested */
} weir__http_local_reply;

/* Creates a response without content to a request. Fails with -ENOMEM. */
int weir__http_local_reply_create(const weir_http_request *request, int status,
                                  weir_http_response **ret_response);

/*
 * Writes the response with its end, and flushes; without one, for want of memory, closes. Discards
 * the request from here on, up to its end. Takes: response, request.
 */
void weir__http_local_reply_send(weir_ctx *ctx, weir__http_local_reply *reply,
                                 weir_http_response *response, weir_http_request *request);

/* For the slot `read`: true if the message belongs to a discarded request; then it was released. */
bool weir__http_local_reply_discards(weir__http_local_reply *reply, weir_msg *msg);

/* The slot `read_complete`: passes it on, and requests a message in place of discarded ones. */
void weir__http_local_reply_read_complete(weir_ctx *ctx, weir__http_local_reply *reply);

#endif
