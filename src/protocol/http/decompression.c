/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the content of requests, or on a client's channel of responses. Output is made in pieces
 * of at most 64 KiB, one at a time, as far as it is requested: a bomb fills no memory, and is
 * stopped by the limits.
 */
#include <weir/http_filters.h>

#include <errno.h>

#include <weir/codec.h>
#include <weir/composite.h>
#include <weir/error.h>

#include "protocol/http/compression.h"
#include "protocol/http/refusal.h"
#include "protocol/http/reset.h"

#define PIECE_MIN 1024
#define PIECE_MAX 65536
#define LINES_MAX 8 /* of Content-Encoding; more have too many codings */

struct state {
    weir_msg_decoder_state decoder; /* first */
    weir__http_compression *compression;
    weir__http_content_decoder *content; /* NULL = content passes as it is */
    bool is_client;
    bool is_refused;   /* the message: its rest is discarded, and so is the application's answer */
    bool has_response; /* a server's response has begun */
    bool is_head;      /* a client's request is HEAD: no content follows */
};

struct options {
    weir__http_compression *compression;
    bool is_client;
};

static int init(void *memory, const void *given)
{
    const struct options *options = given;
    struct state *state = memory;

    weir__refs_retain(&options->compression->refs);
    state->compression = options->compression;
    state->is_client = options->is_client;
    return 0;
}

static void end_content(struct state *state)
{
    weir__http_content_decoder_free(state->content);
    state->content = NULL;
}

static void deinit(void *memory)
{
    struct state *state = memory;

    end_content(state);
    weir__http_compression_release(state->compression);
}

/* ---- refusing ---- */

static int status_of(int err)
{
    switch (err) {
    case WEIR_ETOOLONG:
        return 413;
    case -ENOTSUP:
        return 415;
    default:
        return 400;
    }
}

/* 415 says which codings would be understood. */
static int answer(weir_ctx *ctx, int status, const char *detail)
{
    weir_http_response *response = NULL;
    weir_buf *content = NULL;
    int err = weir__http_refusal_answer(status, detail, &response, &content);

    if (err < 0)
        return err;
    for (size_t i = 0; err == 0 && status == 415 && i < weir__http_coding_count; i++)
        err = weir_http_headers_add_text(weir_http_response_headers(response),
                                         WEIR_HTTP_ACCEPT_ENCODING, weir__http_codings[i]->name);
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write(ctx, weir_buf_msg(content), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
    return 0;
}

/*
 * A server answers and closes; if its response has begun, it can only reset the connection, so that
 * the client does not take the part for all of it. A client fires the error and closes.
 */
static int refuse(weir_ctx *ctx, struct state *state, int err, const char *detail)
{
    bool can_answer = !state->is_client && !state->has_response && err != -ENOMEM;
    int status = status_of(err);

    end_content(state);
    state->is_refused = true;
    if (can_answer && answer(ctx, status, detail) == 0) {
        weir__http_refusal_fire(ctx, status, detail);
        return 0;
    }
    if (state->is_client)
        weir_close(ctx, NULL);
    else
        weir__http_reset(weir_ctx_channel(ctx));
    return state->is_client || err == -ENOMEM ? weir_msg_decoder_fail(ctx, err, detail) : 0;
}

static const char *detail_of(int err)
{
    switch (err) {
    case WEIR_ETOOLONG:
        return "decoded content longer than the limit";
    case -ENOTSUP:
        return "unknown content coding";
    case -ENOMEM:
        return "no memory to decode the content";
    default:
        return "malformed coded content";
    }
}

/* ---- decoding ---- */

/* Responses that have no content, whatever their headers say, or a part of it only. */
static bool is_not_whole(const struct state *state, const weir_http_response *response)
{
    int status = weir_http_response_status(response);

    return state->is_head || status < 200 || status == 204 || status == 206 || status == 304;
}

/* The head that is decoded on this side; NULL for every other message. */
static weir_http_headers *headers_of(const struct state *state, weir_msg *msg)
{
    weir_http_request *request = state->is_client ? NULL : weir_http_request_of(msg);
    weir_http_response *response = state->is_client ? weir_http_response_of(msg) : NULL;

    if (request != NULL)
        return weir_http_request_headers(request);
    return response != NULL ? weir_http_response_headers(response) : NULL;
}

/* Makes the head say what the content will be. */
static void change_head(weir_msg *msg, weir_http_headers *headers)
{
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_ENCODING);
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_LENGTH);
    if (weir_http_request_of(msg) != NULL)
        (void)weir_http_request_set_content_length(weir_http_request_of(msg),
                                                   WEIR_HTTP_UNKNOWN_LENGTH);
    else
        (void)weir_http_response_set_content_length(weir_http_response_of(msg),
                                                    WEIR_HTTP_UNKNOWN_LENGTH);
}

/* A client gets content with an unknown coding as it is. */
static int begin_content(weir_ctx *ctx, struct state *state, weir_msg *msg,
                         weir_http_headers *headers)
{
    weir_span lines[LINES_MAX];
    size_t count = 0, index = 0;
    int err = 0;

    while (err == 0 && count < LINES_MAX &&
           weir_http_headers_next(headers, WEIR_HTTP_CONTENT_ENCODING, &index, &lines[count]))
        count++;
    if (count == LINES_MAX)
        err = -ENOTSUP;
    if (err == 0 && count > 0)
        err = weir__http_content_decoder_create(lines, count, &state->compression->limits,
                                                &state->content);
    if (err == -ENOTSUP && state->is_client)
        return 0;
    if (err < 0)
        return refuse(ctx, state, err, detail_of(err));
    if (state->content != NULL)
        change_head(msg, headers);
    return 0;
}

static int read_head(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_http_headers *headers,
                     weir_msg **ret_msg)
{
    weir_http_response *response = weir_http_response_of(msg);
    int err = 0;

    end_content(state);
    state->is_refused = false;
    if (!state->is_client)
        state->has_response = false;
    if (response == NULL || !is_not_whole(state, response))
        err = begin_content(ctx, state, msg, headers);
    if (err == 0 && !state->is_refused)
        *ret_msg = weir_msg_retain(msg);
    return err;
}

/* The next bytes of a message in one piece, and consuming them. */
static weir_span peek(weir_msg *msg)
{
    struct iovec vector = {0};

    if (weir_buf_of(msg) != NULL)
        return weir_buf_span(weir_buf_of(msg));
    (void)weir_composite_iovecs(weir_composite_of(msg), &vector, 1);
    return weir_span_of(vector.iov_base, vector.iov_len);
}

static void skip(weir_msg *msg, size_t length)
{
    if (weir_buf_of(msg) != NULL)
        (void)weir_buf_skip(weir_buf_of(msg), length);
    else
        (void)weir_composite_skip(weir_composite_of(msg), length);
}

static size_t piece_size(const weir_msg *msg)
{
    size_t size = 4 * weir_msg_size(msg);

    return size < PIECE_MIN ? PIECE_MIN : size > PIECE_MAX ? PIECE_MAX : size;
}

static int decode_piece(struct state *state, weir_msg *msg, weir_buf *out)
{
    int result;

    do {
        weir_span in = peek(msg);
        size_t before = in.length;

        result = weir__http_content_decoder_run(state->content, &in, out);
        if (result >= 0)
            skip(msg, before - in.length);
    } while (result == 0 && weir_msg_size(msg) > 0);
    return result;
}

static int read_content(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_msg **ret_msg)
{
    weir_buf *out = NULL;
    int result = weir_buf_create(piece_size(msg), 0, &out);

    if (result == 0)
        result = decode_piece(state, msg, out);
    if (result < 0) {
        weir_buf_release(out);
        return refuse(ctx, state, result, detail_of(result));
    }
    if (weir_buf_readable(out) > 0)
        *ret_msg = weir_buf_msg(out);
    else
        weir_buf_release(out);
    return result;
}

static int read_end(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_msg **ret_msg)
{
    if (state->content != NULL && !weir__http_content_decoder_is_complete(state->content))
        return refuse(ctx, state, WEIR_EMALFORMED, "truncated coded content");
    end_content(state);
    *ret_msg = weir_msg_retain(msg);
    return 0;
}

static int decode_next(weir_ctx *ctx, weir_msg *msg, weir_msg **ret_msg)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_headers *headers = headers_of(state, msg);

    if (headers != NULL)
        return read_head(ctx, state, msg, headers, ret_msg);
    if (state->is_refused)
        return 0;
    if (weir_http_end_of(msg) != NULL)
        return read_end(ctx, state, msg, ret_msg);
    if (state->content != NULL && (weir_buf_of(msg) != NULL || weir_composite_of(msg) != NULL))
        return read_content(ctx, state, msg, ret_msg);
    *ret_msg = weir_msg_retain(msg);
    return 0;
}

/* After a refusal the application may still be answering. */
static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_request *request = weir_http_request_of(msg);
    weir_http_response *response = weir_http_response_of(msg);

    if (state->is_refused && !state->is_client) {
        weir_msg_release(msg);
        if (done != NULL)
            weir_ctx_report(ctx, done, WEIR_ECLOSED, "the request was refused");
        return;
    }
    if (request != NULL)
        state->is_head = weir_http_request_method(request) == WEIR_HTTP_METHOD_HEAD;
    if (response != NULL && !weir__http_is_interim(response))
        state->has_response = true;
    weir_write(ctx, msg, done);
}

const weir_msg_decoder weir__http_decompression_handler = {
    .handler = {.name = "http-decompression",
                WEIR_MSG_DECODER_SLOTS(struct state),
                .init = init,
                .deinit = deinit,
                .write = on_write},
    .decode_next = decode_next,
};

int weir__http_decompression_add(weir_pipeline *pipeline, weir__http_compression *compression,
                                 bool is_client)
{
    struct options options = {.compression = compression, .is_client = is_client};

    return weir_pipeline_add_last(pipeline, &weir__http_decompression_handler.handler, &options);
}

int weir_http_decompression_add(weir_pipeline *pipeline,
                                const weir_http_compression_options *options)
{
    weir__http_compression *compression = NULL;
    int err = weir__http_compression_create(options, &compression);

    if (err == 0)
        err = weir__http_decompression_add(pipeline, compression, true);
    weir__http_compression_release(compression);
    return err;
}
