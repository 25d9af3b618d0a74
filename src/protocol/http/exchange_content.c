/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a request: collected for the handler, streamed to it on demand, or discarded.
 */
#include <errno.h>

#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/error.h>

#include "base/log.h"
#include "protocol/http/blocking_routes.h"
#include "protocol/http/exchange.h"

/* Content that is read after a response, so that the connection can be used again. */
#define DISCARD_MAX ((uint64_t)64 << 10)

/* A buffer of the announced size is created at once up to this size; a larger one grows. */
#define COLLECT_INITIAL ((int64_t)64 << 10)

#define DEFAULT_MAX_CONTENT ((uint64_t)1 << 20)

/* ---- the handler ---- */

/* Runs the handler on an executor of a group. */
static void dispatch(weir_http_exchange *exchange, weir_group *group)
{
    bool is_offloaded = group == WEIR__HTTP_OFFLOADED;
    int err;

    if (is_offloaded)
        group = weir__http_route_offload_group(exchange->route, weir_ctx_channel(exchange->ctx));
    if (group == NULL) {
        weir__http_exchange_run(exchange);
        return;
    }
    err = weir__http_exchange_dispatch(exchange, weir_group_next(group));
    if (err == 0)
        return;
    if (is_offloaded && err == WEIR_EREJECTED) {
        weir__http_route_log_rejection(exchange->route);
        weir__http_exchange_run(exchange);
        return;
    }
    weir__warn_limited("http", exchange->route->given.path, "the handler cannot run: %s",
                       weir_error_text(err));
    (void)weir_http_respond_error(exchange, 503, NULL);
    weir_http_exchange_release(exchange);
}

static void run(weir_http_exchange *exchange)
{
    weir_group *group = atomic_load_explicit(&exchange->route->runs_on, memory_order_acquire);

    exchange->use = WEIR__EXCHANGE_CALLED;
    if (group == NULL)
        weir__http_exchange_run(exchange);
    else
        dispatch(exchange, group);
}

/* ---- limits ---- */

static uint64_t max_content(const weir_http_exchange *exchange)
{
    uint64_t limit = exchange->route->given.max_content;

    if (limit != 0)
        return limit;
    if (exchange->route->given.streaming)
        return UINT64_MAX;
    limit = exchange->connection->max_content;
    return limit != 0 ? limit : DEFAULT_MAX_CONTENT;
}

bool weir__http_content_is_long(const weir_http_exchange *exchange)
{
    int64_t length = weir_http_request_content_length(exchange->request);

    if (exchange->input == WEIR__EXCHANGE_INPUT_ENDED)
        return false;
    /* A client that was not asked to continue may send its content or not. */
    return exchange->input == WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE ||
           (length >= 0 && (uint64_t)length - exchange->received > DISCARD_MAX);
}

/* ---- beginning ---- */

void weir__http_content_begin(weir_http_exchange *exchange)
{
    int64_t length = weir_http_request_content_length(exchange->request);

    if (weir_http_request_expects_continue(exchange->request))
        exchange->input = WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE;
    exchange->mode =
        exchange->route->given.streaming ? WEIR__EXCHANGE_STREAM : WEIR__EXCHANGE_COLLECT;
    if (length > 0 && (uint64_t)length > max_content(exchange)) {
        weir__http_exchange_refuse(exchange, 413);
    } else if (exchange->mode == WEIR__EXCHANGE_STREAM) {
        weir_ctx_set_auto_read(exchange->ctx, false);
        run(exchange);
    } else if (exchange->input == WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE) {
        weir__http_exchange_continue(exchange);
    }
}

/* ---- pieces ---- */

static size_t length_of(weir_msg *msg)
{
    weir_composite *composite = weir_composite_of(msg);

    if (composite != NULL)
        return weir_composite_readable(composite);
    return weir_buf_of(msg) != NULL ? weir_buf_readable(weir_buf_of(msg)) : weir_msg_size(msg);
}

static int append(weir_buf *to, weir_msg *msg)
{
    weir_composite *composite = weir_composite_of(msg);
    weir_buf *buf = weir_buf_of(msg);
    size_t length = length_of(msg);
    int err;

    if (buf != NULL)
        return weir_buf_write_bytes(to, weir_buf_bytes(buf), length);
    if (composite == NULL)
        return -EPROTO;
    err = weir_buf_reserve(to, length);
    if (err == 0)
        err = weir_composite_peek_bytes(composite, weir_buf_space(to), length);
    return err == 0 ? weir_buf_advance(to, length) : err;
}

/* The first buffer is kept as it is; a second one makes a copy of both. */
static int collect(weir_http_exchange *exchange, weir_msg *msg)
{
    int64_t length = weir_http_request_content_length(exchange->request);
    weir_buf *first = exchange->content, *all;
    int err;

    if (first == NULL && weir_buf_of(msg) != NULL) {
        exchange->content = weir_buf_retain(weir_buf_of(msg));
        return 0;
    }
    if (!exchange->is_content_copied) {
        size_t size = length >= 0 && length <= COLLECT_INITIAL ? (size_t)length
                                                               : 2 * (size_t)exchange->received;

        err = weir_buf_create(size, 0, &all);
        if (err < 0)
            return err;
        if (first != NULL)
            err = weir_buf_write_bytes(all, weir_buf_bytes(first), weir_buf_readable(first));
        weir_buf_release(first);
        exchange->content = all;
        exchange->is_content_copied = true;
        if (err < 0)
            return err;
    }
    return append(exchange->content, msg);
}

static bool has_users(const weir_http_exchange *exchange)
{
    return atomic_load_explicit(&exchange->users, memory_order_acquire) > 0;
}

static void stream(weir_http_exchange *exchange, weir_msg *msg)
{
    if (exchange->is_last_delivered || !has_users(exchange)) {
        weir_msg_release(msg);
    } else if (exchange->executor != NULL) {
        /* The slot is empty: nothing is requested before the last piece was taken from it. */
        msg = atomic_exchange_explicit(&exchange->piece, msg, memory_order_acq_rel);
        weir_msg_release(msg);
        weir__http_exchange_signal(exchange, WEIR__EXCHANGE_EVENT_PIECE);
    } else if (exchange->content_fn != NULL) {
        exchange->content_fn(exchange, msg, 0, exchange->content_user_data);
    } else {
        weir_msg_release(msg);
    }
}

void weir__http_content_piece(weir_http_exchange *exchange, weir_msg *msg)
{
    int err;

    exchange->received += length_of(msg);
    if (exchange->mode == WEIR__EXCHANGE_DISCARD) {
        weir_msg_release(msg);
        if (exchange->received > DISCARD_MAX && exchange->connection != NULL)
            weir_close(exchange->ctx, NULL); /* which sends the response, and discards the rest */
    } else if (exchange->received > max_content(exchange)) {
        weir_msg_release(msg);
        weir__http_content_fail(exchange, WEIR_ETOOLONG);
        weir__http_exchange_refuse(exchange, 413);
    } else if (exchange->mode == WEIR__EXCHANGE_STREAM) {
        stream(exchange, msg);
    } else {
        err = collect(exchange, msg);
        weir_msg_release(msg);
        if (err < 0) {
            weir__warn_limited("http", exchange->route->given.path, "the content is lost: %s",
                               weir_error_text(err));
            weir__http_exchange_refuse(exchange, 503);
        }
    }
}

/* ---- the end ---- */

/* The last call of the content function. With an error it is never made inside another call. */
static void deliver_last(weir_http_exchange *exchange, int err)
{
    if (exchange->is_last_delivered)
        return;
    exchange->is_last_delivered = true;
    exchange->content_err = err;
    if (exchange->executor != NULL || err < 0)
        weir__http_exchange_signal(exchange, WEIR__EXCHANGE_EVENT_LAST);
    else if (exchange->content_fn != NULL && has_users(exchange))
        exchange->content_fn(exchange, NULL, 0, exchange->content_user_data);
}

void weir__http_content_end(weir_http_exchange *exchange, weir_msg *msg)
{
    weir_http_end *end = weir_http_end_of(msg);
    weir_ctx *ctx = exchange->ctx;

    exchange->input = WEIR__EXCHANGE_INPUT_ENDED;
    if (weir_http_end_trailers(end) != NULL)
        exchange->end = end;
    else
        weir_msg_release(msg);
    if (exchange->mode == WEIR__EXCHANGE_COLLECT) {
        run(exchange);
    } else if (exchange->has_ended_response) {
        weir__http_exchange_detach(exchange);
    } else if (exchange->mode == WEIR__EXCHANGE_STREAM) {
        weir_ctx_set_auto_read(ctx, true);
        deliver_last(exchange, 0);
    }
}

void weir__http_content_fail(weir_http_exchange *exchange, int err)
{
    if (exchange->mode == WEIR__EXCHANGE_STREAM && exchange->input != WEIR__EXCHANGE_INPUT_ENDED)
        deliver_last(exchange, err);
}

void weir__http_content_discard(weir_http_exchange *exchange)
{
    weir_ctx *ctx = exchange->ctx;
    bool was_streaming = exchange->mode == WEIR__EXCHANGE_STREAM;

    weir__http_content_fail(exchange, WEIR_ECANCELED);
    exchange->mode = WEIR__EXCHANGE_DISCARD;
    exchange->received = 0;
    if (was_streaming)
        weir_ctx_set_auto_read(ctx, true); /* which may deliver the rest: it ends here */
}

void weir__http_content_read(weir_http_exchange *exchange)
{
    if (exchange->connection == NULL || exchange->mode != WEIR__EXCHANGE_STREAM ||
        exchange->input == WEIR__EXCHANGE_INPUT_ENDED)
        return;
    if (exchange->input == WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE)
        weir__http_exchange_continue(exchange);
    /* A piece that is still on its way to the handler is the answer to this request, too. */
    if (exchange->connection != NULL &&
        (exchange->executor == NULL ||
         atomic_load_explicit(&exchange->piece, memory_order_acquire) == NULL))
        weir_request_read(exchange->ctx);
}

const weir_http_headers *weir_http_exchange_trailers(const weir_http_exchange *exchange)
{
    return exchange->end != NULL ? weir_http_end_trailers(exchange->end) : NULL;
}

weir_buf *weir_http_exchange_content(const weir_http_exchange *exchange)
{
    if (exchange->route->given.streaming)
        return NULL;
    return exchange->content != NULL ? exchange->content
                                     : weir__http_router_empty(exchange->router);
}
