/* SPDX-License-Identifier: Apache-2.0 */
#include "forward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/flow_control.h>

#include "forwarded.h"

#define METHOD_MAX 32

/* One exchange with a client, on its loop. Freed when the last call to an upstream has ended. */
struct forwarding {
    struct forwarder *forwarder;
    weir_http_exchange *exchange;
    weir_http_call *call;
    struct upstream *upstream;
    uint64_t tried; /* upstreams */
    bool is_idempotent;
    bool has_content;
    bool took_content; /* a piece of it, which cannot be taken again */
    bool is_reading;   /* content */
    bool has_piece;    /* since the last read */
    bool has_begun;    /* the response */
    bool is_lost;      /* the client is gone */
    bool is_over;
    unsigned users; /* functions that use this struct; the last one frees it */
};

static const weir_http_call_events events;

/* ---- the request ---- */

/* An origin server is asked for the path, also if the client has sent a whole URL. */
static weir_span target_of(const weir_http_request *request)
{
    weir_span target = weir_http_request_target(request);
    weir_span path = weir_http_request_path(request);

    if (path.length == 0)
        return weir_span_of("/", 1);
    return weir_span_of(path.data, (size_t)(target.data + target.length - path.data));
}

static int create_request(const weir_http_request *from, weir_http_request **ret_request)
{
    weir_span text = weir_http_request_method_text(from);
    char method[METHOD_MAX];
    int err;

    if (text.length >= sizeof(method))
        return -EINVAL;
    memcpy(method, text.data, text.length);
    method[text.length] = '\0';
    err = weir_http_request_create(method, "/", ret_request);
    return err < 0 ? err : weir_http_request_set_target(*ret_request, target_of(from));
}

static int copy_request(const struct forwarding *f, weir_http_request **ret_request)
{
    const weir_http_request *from = weir_http_exchange_request(f->exchange);
    weir_http_request *request = NULL;
    weir_http_headers *headers;
    int err = create_request(from, &request);

    if (request == NULL)
        return err;
    headers = weir_http_request_headers(request);
    if (err == 0)
        err = weir_http_headers_append(headers, weir_http_request_headers(from));
    if (err == 0) {
        weir_http_headers_remove_hop_by_hop(headers);
        (void)weir_http_headers_remove(headers, WEIR_HTTP_EXPECT); /* reading answers it */
        err = weir_http_request_set_content_length(request, weir_http_request_content_length(from));
    }
    if (err == 0)
        err = forwarded_add(request, weir_http_exchange_channel(f->exchange), f->forwarder->is_tls);
    if (err < 0)
        weir_msg_release(weir_http_request_msg(request));
    else
        *ret_request = request;
    return err;
}

static int send_to(struct forwarding *f, struct upstream *upstream)
{
    weir_http_request *request = NULL;
    int err = copy_request(f, &request);

    if (err < 0)
        return err;
    err = weir_http_client_send(
        f->forwarder->client, request, NULL,
        WEIR_HTTP_CALL_OPTIONS(.events = &events, .user_data = f, .origin = upstream->address,
                               .stream_content = f->has_content, .read_on_demand = true),
        &f->call);
    if (err == 0) {
        f->upstream = upstream;
        atomic_fetch_add(&upstream->connections, 1);
    }
    return err;
}

/* ---- the end ---- */

/* Around calls that may end the exchange or the call, and with them all of this. */
static void enter(struct forwarding *f)
{
    f->users++;
}

static void leave(struct forwarding *f)
{
    if (--f->users > 0 || !f->is_over)
        return;
    weir_http_exchange_release(f->exchange);
    free(f);
}

static void on_lost(weir_http_exchange *exchange, void *user_data)
{
    struct forwarding *f = user_data;

    (void)exchange;
    f->is_lost = true;
    if (f->call != NULL)
        weir_http_call_cancel(f->call);
}

/* Between enter and leave. */
static void end(struct forwarding *f)
{
    f->is_over = true;
    weir_http_exchange_on_lost(f->exchange, NULL, NULL);
}

static void refuse(struct forwarding *f, int err)
{
    int status = err == -ETIMEDOUT ? 504 : err == WEIR_EFULL || err == -ENOMEM ? 503 : 502;

    if (f->has_begun)
        weir_http_exchange_abort(f->exchange);
    else if (!f->is_lost)
        (void)weir_http_respond_error(f->exchange, status, NULL);
    end(f);
}

static void try_next(struct forwarding *f, int err)
{
    struct upstream *upstream = upstreams_choose(&f->forwarder->upstreams, &f->tried);

    if (upstream != NULL)
        err = send_to(f, upstream);
    if (upstream == NULL || err < 0)
        refuse(f, err);
}

/* ---- the content of the request ---- */

/* A read may call on_content before it returns: the loop keeps the stack flat. */
static void read_content(struct forwarding *f)
{
    if (f->is_reading)
        return;
    enter(f);
    f->is_reading = true;
    do {
        f->has_piece = false;
        weir_http_exchange_read(f->exchange);
    } while (f->has_piece && f->call != NULL && weir_http_call_is_writable(f->call));
    f->is_reading = false;
    leave(f);
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct forwarding *f = user_data;

    enter(f);
    f->took_content = true;
    f->has_piece = msg != NULL;
    if (f->call == NULL)
        weir_msg_release(msg);
    else if (msg != NULL)
        (void)weir_http_call_write(f->call, msg, NULL);
    else if (err == 0)
        (void)weir_http_call_end(f->call, NULL);
    else if (err != WEIR_ECANCELED)
        on_lost(exchange, f);
    if (f->has_piece && f->call != NULL && weir_http_call_is_writable(f->call))
        read_content(f);
    leave(f);
}

static void on_call_writable(weir_http_call *call, void *user_data)
{
    (void)call;
    read_content(user_data);
}

/* ---- the response ---- */

static void on_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct forwarding *f = user_data;
    weir_http_headers *headers = weir_http_exchange_headers(f->exchange);
    int err = weir_http_headers_append(headers, weir_http_response_headers(response));

    enter(f);
    upstream_note(f->upstream, 1, NULL);
    if (err == 0) {
        weir_http_headers_remove_hop_by_hop(headers);
        err = weir_http_exchange_begin(f->exchange, weir_http_response_status(response),
                                       weir_http_response_content_length(response));
        f->has_begun = err == 0;
    }
    if (err < 0)
        weir_http_call_cancel(call);
    else
        weir_http_call_read(call);
    leave(f);
}

static void on_exchange_writable(weir_http_exchange *exchange, void *user_data)
{
    struct forwarding *f = user_data;

    (void)exchange;
    if (f->call != NULL)
        weir_http_call_read(f->call);
}

static void on_response_content(weir_http_call *call, weir_msg *msg, void *user_data)
{
    struct forwarding *f = user_data;

    enter(f);
    if (weir_http_exchange_write(f->exchange, msg, NULL) < 0)
        weir_http_call_cancel(call);
    else if (weir_http_exchange_is_writable(f->exchange))
        weir_http_call_read(call);
    else
        weir_http_exchange_on_writable(f->exchange, on_exchange_writable, f);
    leave(f);
}

/* Whether the request may be sent to another upstream. */
static bool can_repeat(const struct forwarding *f, const weir_http_call *call)
{
    if (f->has_begun || f->is_lost || f->took_content)
        return false;
    return !weir_http_call_is_sent(call) || f->is_idempotent;
}

static void on_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    struct forwarding *f = user_data;
    bool repeats = err < 0 && can_repeat(f, call);

    enter(f);
    atomic_fetch_sub(&f->upstream->connections, 1);
    if (err < 0 && !f->is_lost && err != WEIR_EFULL && err != WEIR_ECANCELED) {
        upstream_note(f->upstream, f->forwarder->fall, detail);
        weir_log_write(WEIR_LOG_WARN, "reverse-proxy", f->upstream->address, "%s", detail);
    }
    weir_http_call_release(f->call);
    f->call = NULL;
    if (repeats) {
        try_next(f, err);
    } else if (err < 0) {
        refuse(f, err);
    } else {
        (void)weir_http_exchange_end(f->exchange, NULL);
        end(f);
    }
    leave(f);
}

static const weir_http_call_events events = {
    .head = on_head,
    .content = on_response_content,
    .writable = on_call_writable,
    .end = on_end,
};

/* ---- exchanges ---- */

static bool is_idempotent(enum weir_http_method method)
{
    return method == WEIR_HTTP_METHOD_GET || method == WEIR_HTTP_METHOD_HEAD ||
           method == WEIR_HTTP_METHOD_PUT || method == WEIR_HTTP_METHOD_DELETE ||
           method == WEIR_HTTP_METHOD_OPTIONS;
}

void forward(weir_http_exchange *exchange, void *user_data)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    struct forwarding *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        (void)weir_http_respond_error(exchange, 503, NULL);
        return;
    }
    enter(f);
    f->forwarder = user_data;
    f->exchange = weir_http_exchange_retain(exchange);
    f->is_idempotent = is_idempotent(weir_http_request_method(request));
    f->has_content = weir_http_request_content_length(request) != 0;
    weir_http_exchange_on_lost(exchange, on_lost, f);
    if (f->has_content)
        weir_http_exchange_on_content(exchange, on_content, f);
    try_next(f, WEIR_ECLOSED);
    leave(f);
}

/* Head and content of a response often come in one read from the upstream: they are sent together.
 */
int forward_init_connection(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err =
        weir_flush_consolidation_add(pipeline, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));

    (void)user_data;
    return err ? err : forwarded_listen(pipeline);
}
