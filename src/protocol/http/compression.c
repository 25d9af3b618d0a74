/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses responses. A head whose content may be compressed is held back, with the content that
 * follows, until it is known what is to be done:
 *
 *      HOLDING -> the end comes soon       the whole content is compressed; its length is known
 *              -> a flush, or much content the head is sent; content is compressed as it comes
 *              -> a file, or too little    everything is sent as it is
 *
 * A flush also flushes the encoder: what the application has flushed can be decoded by the client,
 * as server-sent events need. The encoder exists from the first content to the end of the response.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/accept.h"
#include "protocol/http/chars.h"
#include "protocol/http/compression.h"
#include "protocol/http/message.h"

#define LINES_MAX 8 /* of Accept-Encoding; others are ignored */
#define HELD_MAX 4
#define HELD_BYTES_MAX ((size_t)256 * 1024)
#define ETAG_MAX 256 /* a longer one is removed: it cannot be made weak */

enum mode {
    PASSING, /* everything, until the next response */
    HOLDING,
    STREAMING,
};

struct held {
    weir_msg *msg;
    weir_promise *done; /* retained; NULL = none */
};

/* A response that is held back or compressed. */
struct work {
    struct held head; /* while HOLDING */
    struct held contents[HELD_MAX];
    size_t count;
    size_t bytes;
    weir__http_content_encoder encoder;
    bool has_unflushed; /* the encoder has content that it did not put out */
};

struct state {
    weir__http_compression *compression;
    const weir__http_coding *coding; /* of the response; NULL = none */
    bool is_head;                    /* the request is HEAD */
    enum mode mode;
    struct work *work; /* NULL while PASSING */
};

/* ---- held messages ---- */

static void hold(struct held *held, weir_msg *msg, weir_promise *done)
{
    held->msg = msg;
    held->done = done != NULL ? weir_promise_retain(done) : NULL;
}

/* Writes a message with the promise of a held one, whose message it may be. Takes: msg. */
static void write_held(weir_ctx *ctx, struct held *held, weir_msg *msg)
{
    weir_promise *done = held->done;

    if (held->msg != msg)
        weir_msg_release(held->msg);
    *held = (struct held){0};
    weir_write(ctx, msg, done);
    weir_promise_release(done);
}

static void drop_held(weir_ctx *ctx, struct held *held, int err)
{
    struct held dropped = *held;

    *held = (struct held){0};
    weir_msg_release(dropped.msg);
    if (dropped.done != NULL)
        weir_ctx_report(ctx, dropped.done, err, "the response cannot be compressed");
    weir_promise_release(dropped.done);
}

/* Ends the work on a response, and fails what is still held. A write that fails may close the
 * channel, and so end the work: callers look at state->work after each. */
static void end_work(weir_ctx *ctx, struct state *state, int err)
{
    struct work *work = state->work;

    state->work = NULL;
    state->mode = PASSING;
    if (work == NULL)
        return;
    drop_held(ctx, &work->head, err);
    for (size_t i = 0; i < work->count; i++)
        drop_held(ctx, &work->contents[i], err);
    weir__http_content_encoder_end(&work->encoder);
    weir_memory_free(work);
}

/* The client must not take what follows for a response: the connection is closed. */
static void fail(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_promise *done, int err)
{
    end_work(ctx, state, err);
    weir__http_fail_write(ctx, msg, done, err);
}

/* Sends what is held as it is. */
static void pass_held(weir_ctx *ctx, struct state *state)
{
    struct work *work = state->work;

    state->mode = PASSING;
    write_held(ctx, &work->head, work->head.msg);
    for (size_t i = 0; state->work == work && i < work->count; i++)
        write_held(ctx, &work->contents[i], work->contents[i].msg);
    end_work(ctx, state, WEIR_ECLOSED);
}

/* ---- heads ---- */

static bool is_listed(const weir__http_compression *compression, weir_span type)
{
    for (size_t i = 0; i < compression->type_count; i++) {
        weir_span listed = weir_span_of_text(compression->types[i]), part = type;

        if (listed.length == 0 || listed.length > type.length)
            continue;
        if (listed.data[listed.length - 1] == '/')
            part.length = listed.length;
        else if (listed.data[0] == '+')
            part = weir__http_span_from(type, type.length - listed.length);
        if (weir__http_same_text(part, listed))
            return true;
    }
    return false;
}

/* True if the content could be compressed for a client that allows it: then it varies. */
static bool is_compressible(const weir__http_compression *compression,
                            const weir_http_response *response)
{
    const weir_http_headers *headers = weir_http_response_headers(response);
    weir_span type = weir_http_headers_get(headers, WEIR_HTTP_CONTENT_TYPE);
    int64_t length = weir_http_response_content_length(response);
    int status = weir_http_response_status(response);

    if (status == 304 && length == 0)
        length = WEIR_HTTP_UNKNOWN_LENGTH; /* not set */
    if (status < 200 || status == 204 || status == 206)
        return false;
    if (length != WEIR_HTTP_UNKNOWN_LENGTH && length < compression->min_length)
        return false;
    if (weir_http_headers_get(headers, WEIR_HTTP_CONTENT_ENCODING).data != NULL ||
        weir_http_headers_get(headers, WEIR_HTTP_CONTENT_RANGE).data != NULL ||
        weir_http_headers_have_token(headers, WEIR_HTTP_CACHE_CONTROL, "no-transform"))
        return false;
    if (type.data == NULL)
        return status == 304; /* of any type */
    return is_listed(compression, weir__http_trimmed(weir__http_cut(&type, ';')));
}

/* The compressed content is equivalent, but not the same bytes. */
static int weaken_etag(weir_http_headers *headers)
{
    weir_span etag = weir_http_headers_get(headers, WEIR_HTTP_ETAG);
    char weak[ETAG_MAX];

    if (etag.length == 0 || etag.data[0] != '"')
        return 0;
    if (etag.length + 3 > sizeof(weak)) {
        (void)weir_http_headers_remove(headers, WEIR_HTTP_ETAG);
        return 0;
    }
    (void)snprintf(weak, sizeof(weak), "W/%.*s", (int)etag.length, (const char *)etag.data);
    return weir_http_headers_set_text(headers, WEIR_HTTP_ETAG, weak);
}

/* Makes the head that of compressed content, of a length or WEIR_HTTP_UNKNOWN_LENGTH. */
static int change_head(const struct state *state, weir_http_response *response, int64_t length)
{
    weir_http_headers *headers = weir_http_response_headers(response);
    int err = weir_http_headers_set_text(headers, WEIR_HTTP_CONTENT_ENCODING, state->coding->name);

    if (err == 0)
        err = weaken_etag(headers);
    if (err < 0)
        return err;
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_LENGTH);
    (void)weir_http_headers_remove(headers, WEIR_HTTP_ACCEPT_RANGES);
    return weir_http_response_set_content_length(response, length);
}

/* ---- encoding ---- */

static int begin_encoder(struct state *state, int64_t length)
{
    return weir__http_content_encoder_begin(&state->work->encoder, state->coding,
                                            state->compression->level, length);
}

/* Encodes a message of bytes into `out`. */
static int encode(struct work *work, weir_msg *msg, enum weir__http_coding_op op, weir_buf *out)
{
    weir_composite *composite = weir_composite_of(msg);
    size_t begin;
    int err = 0;

    if (composite == NULL)
        return weir__http_content_encoder_run(&work->encoder, weir_buf_span(weir_buf_of(msg)), op,
                                              out);
    begin = weir_composite_read_index(composite);
    while (err == 0 && weir_composite_readable(composite) > 0) {
        struct iovec vector;

        (void)weir_composite_iovecs(composite, &vector, 1);
        err = weir__http_content_encoder_run(&work->encoder,
                                             weir_span_of(vector.iov_base, vector.iov_len),
                                             WEIR__HTTP_CODING_RUN, out);
        (void)weir_composite_skip(composite, vector.iov_len);
    }
    (void)weir_composite_set_read_index(composite, begin); /* it may be sent as it is */
    if (err == 0 && op != WEIR__HTTP_CODING_RUN)
        err = weir__http_content_encoder_run(&work->encoder, weir_span_of(NULL, 0), op, out);
    return err;
}

static int make_output(size_t in_size, weir_buf **ret_out)
{
    return weir_buf_create(in_size / 2 + 128, 0, ret_out);
}

/*
 * Compresses a piece and writes it. A piece with a promise is flushed through the encoder, since
 * the promise says that it was sent. Takes: held. On failure it is still held.
 */
static int write_encoded(weir_ctx *ctx, struct work *work, struct held *held)
{
    enum weir__http_coding_op op =
        held->done != NULL ? WEIR__HTTP_CODING_FLUSH : WEIR__HTTP_CODING_RUN;
    weir_buf *out = NULL;
    int err = make_output(weir_msg_size(held->msg), &out);

    if (err == 0)
        err = encode(work, held->msg, op, out);
    if (err < 0) {
        weir_buf_release(out);
        return err;
    }
    work->has_unflushed = op == WEIR__HTTP_CODING_RUN;
    if (held->done != NULL || weir_buf_readable(out) > 0) {
        write_held(ctx, held, weir_buf_msg(out));
    } else {
        weir_buf_release(out);
        weir_msg_release(held->msg);
        *held = (struct held){0};
    }
    return 0;
}

/* Puts out what the encoder has, or ends it. */
static int write_rest(weir_ctx *ctx, struct work *work, enum weir__http_coding_op op)
{
    weir_buf *out = NULL;
    int err = make_output(0, &out);

    if (err == 0)
        err = weir__http_content_encoder_run(&work->encoder, weir_span_of(NULL, 0), op, out);
    if (err < 0 || weir_buf_readable(out) == 0) {
        weir_buf_release(out);
        return err;
    }
    work->has_unflushed = false;
    weir_write(ctx, weir_buf_msg(out), NULL);
    return 0;
}

/* From HOLDING to STREAMING. On failure the rest is still held. */
static int begin_streaming(weir_ctx *ctx, struct state *state)
{
    struct work *work = state->work;
    weir_http_response *response = weir_http_response_of(work->head.msg);
    int err = begin_encoder(state, weir_http_response_content_length(response));

    if (err == 0)
        err = change_head(state, response, WEIR_HTTP_UNKNOWN_LENGTH);
    if (err < 0)
        return err;
    state->mode = STREAMING;
    write_held(ctx, &work->head, work->head.msg);
    for (size_t i = 0; err == 0 && state->work == work && i < work->count; i++)
        err = write_encoded(ctx, work, &work->contents[i]);
    if (err == 0 && state->work == work)
        work->count = 0;
    return err;
}

/* Compresses all content at once. `*ret_out` is NULL if that makes it no shorter. */
static int encode_whole(struct state *state, weir_buf **ret_out)
{
    struct work *work = state->work;
    weir_buf *out = NULL;
    int err = begin_encoder(state, (int64_t)work->bytes);

    if (err == 0)
        err = make_output(work->bytes, &out);
    for (size_t i = 0; err == 0 && i < work->count; i++)
        err = encode(work, work->contents[i].msg,
                     i + 1 < work->count ? WEIR__HTTP_CODING_RUN : WEIR__HTTP_CODING_FINISH, out);
    if (err < 0 || weir_buf_readable(out) >= work->bytes) {
        weir_buf_release(out);
        out = NULL;
    }
    *ret_out = out;
    return err;
}

/* The write of the last piece completes the promises of the others, too. */
static void chain_promises(weir_ctx *ctx, struct work *work)
{
    struct held *last = &work->contents[work->count - 1];

    for (size_t i = 0; i + 1 < work->count; i++) {
        weir_promise *done = work->contents[i].done;

        if (done == NULL)
            continue;
        if (last->done == NULL)
            last->done = done;
        else if (weir_promise_cascade(last->done, done) < 0)
            weir_ctx_report(ctx, done, -ENOMEM, "no memory to report the write");
        if (last->done != done)
            weir_promise_release(done);
        work->contents[i].done = NULL;
    }
}

/* The end has come while everything is held. Takes: end. */
static void write_whole(weir_ctx *ctx, struct state *state, weir_msg *end, weir_promise *done)
{
    struct work *work = state->work;
    weir_http_response *response = weir_http_response_of(work->head.msg);
    bool has_trailers = weir_http_end_trailers(weir_http_end_of(end)) != NULL;
    weir_buf *out = NULL;
    int err = 0;

    if ((int64_t)work->bytes >= state->compression->min_length)
        err = encode_whole(state, &out);
    if (err == 0 && out != NULL)
        err = change_head(state, response, (int64_t)weir_buf_readable(out));
    else if (err == 0)
        err = weir_http_response_set_content_length(response, (int64_t)work->bytes);
    if (err == 0 && has_trailers)
        err = weir_http_response_set_content_length(response, WEIR_HTTP_UNKNOWN_LENGTH);
    if (err < 0) {
        weir_buf_release(out);
        fail(ctx, state, end, done, err);
        return;
    }
    if (out == NULL) {
        pass_held(ctx, state);
    } else {
        chain_promises(ctx, work);
        write_held(ctx, &work->head, work->head.msg);
        if (state->work == work)
            write_held(ctx, &work->contents[work->count - 1], weir_buf_msg(out));
        else
            weir_buf_release(out);
        end_work(ctx, state, WEIR_ECLOSED);
    }
    weir_write(ctx, end, done);
}

/* ---- the handler ---- */

static int init(void *memory, const void *options)
{
    struct state *state = memory;

    state->compression = *(weir__http_compression *const *)options;
    weir__refs_retain(&state->compression->refs);
    return 0;
}

static void deinit(void *memory)
{
    weir__http_compression_release(((struct state *)memory)->compression);
}

static void choose_coding(struct state *state, const weir_http_headers *headers)
{
    const weir__http_compression *compression = state->compression;
    weir_span lines[LINES_MAX];
    size_t count = 0, index = 0;
    int chosen;

    state->coding = NULL;
    while (count < LINES_MAX &&
           weir_http_headers_next(headers, WEIR_HTTP_ACCEPT_ENCODING, &index, &lines[count]))
        count++;
    if (count == 0)
        return;
    chosen = weir__http_accept_coding(lines, count, compression->coding_names,
                                      compression->coding_count);
    if (chosen >= 0)
        state->coding = compression->codings[chosen];
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct state *state = weir_ctx_state(ctx);
    const weir_http_request *request = weir_http_request_of(msg);

    if (request != NULL) {
        choose_coding(state, weir_http_request_headers(request));
        state->is_head = weir_http_request_method(request) == WEIR_HTTP_METHOD_HEAD;
    }
    weir_fire_read(ctx, msg);
}

/* With the ETag and Vary of the 200 that it stands for, and without the length of other content.
 * The fields of the content that say which it would be are for us only (RFC 9110 15.4.5). */
static void write_not_modified(weir_ctx *ctx, struct state *state, weir_msg *msg,
                               weir_promise *done)
{
    weir_http_response *response = weir_http_response_of(msg);
    weir_http_headers *headers = weir_http_response_headers(response);
    int err = 0;

    if (is_compressible(state->compression, response)) {
        err = weir__http_vary_add(headers, "Accept-Encoding");
        if (err == 0 && state->coding != NULL && !response->is_file)
            err = change_head(state, response, WEIR_HTTP_UNKNOWN_LENGTH);
    }
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_TYPE);
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_ENCODING);
    if (err < 0)
        weir__http_fail_write(ctx, msg, done, err);
    else
        weir_write(ctx, msg, done);
}

static void write_head(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_promise *done)
{
    weir_http_response *response = weir_http_response_of(msg);
    int err = 0;

    if (weir_http_response_status(response) == 304) {
        write_not_modified(ctx, state, msg, done);
        return;
    }
    if (weir__http_is_interim(response) || !is_compressible(state->compression, response)) {
        weir_write(ctx, msg, done);
        return;
    }
    err = weir__http_vary_add(weir_http_response_headers(response), "Accept-Encoding");
    if (err == 0 && state->coding != NULL && !state->is_head && !response->is_file) {
        state->work = weir_memory_alloc(sizeof(*state->work));
        if (state->work != NULL) {
            memset(state->work, 0, sizeof(*state->work));
            hold(&state->work->head, msg, done);
            state->mode = HOLDING;
            return;
        }
        err = -ENOMEM;
    }
    /* HEAD: as GET, but the length would have to be made. */
    if (err == 0 && state->coding != NULL && !response->is_file)
        err = change_head(state, response, WEIR_HTTP_UNKNOWN_LENGTH);
    if (err < 0)
        weir__http_fail_write(ctx, msg, done, err);
    else
        weir_write(ctx, msg, done);
}

static bool is_bytes(weir_msg *msg)
{
    return weir_buf_of(msg) != NULL || weir_composite_of(msg) != NULL;
}

/* A file, or another message that is not in memory, is sent as it is, if that is still possible. */
static void write_other(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_promise *done)
{
    if (state->mode == STREAMING) {
        fail(ctx, state, msg, done, -ENOTSUP);
        return;
    }
    pass_held(ctx, state);
    weir_write(ctx, msg, done);
}

static void write_content(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_promise *done)
{
    struct work *work = state->work;
    struct held held;
    int err = 0;

    if (state->mode == HOLDING && work->count < HELD_MAX &&
        weir_msg_size(msg) <= HELD_BYTES_MAX - work->bytes) {
        hold(&work->contents[work->count++], msg, done);
        work->bytes += weir_msg_size(msg);
        return;
    }
    hold(&held, msg, done);
    if (state->mode == HOLDING)
        err = begin_streaming(ctx, state);
    if (err == 0 && state->work == work)
        err = write_encoded(ctx, work, &held);
    if (err < 0)
        fail(ctx, state, NULL, NULL, err);
    if (held.msg != NULL)
        drop_held(ctx, &held, err < 0 ? err : WEIR_ECLOSED);
}

static void write_end(weir_ctx *ctx, struct state *state, weir_msg *msg, weir_promise *done)
{
    int err;

    if (state->mode == HOLDING) {
        write_whole(ctx, state, msg, done);
        return;
    }
    err = write_rest(ctx, state->work, WEIR__HTTP_CODING_FINISH);
    if (err < 0) {
        fail(ctx, state, msg, done, err);
        return;
    }
    end_work(ctx, state, WEIR_ECLOSED);
    weir_write(ctx, msg, done);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct state *state = weir_ctx_state(ctx);

    if (weir_http_response_of(msg) != NULL) {
        end_work(ctx, state, WEIR_ECLOSED); /* none, unless the application forgot an end */
        write_head(ctx, state, msg, done);
    } else if (state->mode == PASSING) {
        weir_write(ctx, msg, done);
    } else if (weir_http_end_of(msg) != NULL) {
        write_end(ctx, state, msg, done);
    } else if (is_bytes(msg)) {
        write_content(ctx, state, msg, done);
    } else {
        write_other(ctx, state, msg, done);
    }
}

/* Sends what is held, and what the encoder has. False if that has failed. */
static bool push(weir_ctx *ctx, struct state *state)
{
    int err = 0;

    if (state->mode == HOLDING)
        err = begin_streaming(ctx, state);
    if (err == 0 && state->mode == STREAMING && state->work->has_unflushed)
        err = write_rest(ctx, state->work, WEIR__HTTP_CODING_FLUSH);
    if (err < 0)
        fail(ctx, state, NULL, NULL, err);
    return err == 0;
}

static void on_flush(weir_ctx *ctx)
{
    if (push(ctx, weir_ctx_state(ctx)))
        weir_flush(ctx);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    if (push(ctx, weir_ctx_state(ctx)))
        weir_shutdown_output(ctx, done);
    else
        weir_ctx_report(ctx, done, WEIR_ECLOSED, "the response cannot be compressed");
}

static void on_inactive(weir_ctx *ctx)
{
    end_work(ctx, weir_ctx_state(ctx), WEIR_ECLOSED);
    weir_fire_inactive(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    end_work(ctx, weir_ctx_state(ctx), WEIR_ECLOSED);
}

const weir_handler weir__http_compression_handler = {
    .name = "http-compression",
    .state_size = sizeof(struct state),
    .init = init,
    .deinit = deinit,
    .removed = on_removed,
    .inactive = on_inactive,
    .read = on_read,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

int weir__http_compression_add(weir_pipeline *pipeline, weir__http_compression *compression)
{
    int err = 0;

    if (compression->decodes_requests)
        err = weir__http_decompression_add(pipeline, compression, false);
    return err == 0
               ? weir_pipeline_add_last(pipeline, &weir__http_compression_handler, &compression)
               : err;
}

int weir_http_compression_add(weir_pipeline *pipeline, const weir_http_compression_options *options)
{
    weir__http_compression *compression = NULL;
    int err = weir__http_compression_create(options, &compression);

    if (err == 0)
        err = weir__http_compression_add(pipeline, compression);
    weir__http_compression_release(compression);
    return err;
}
