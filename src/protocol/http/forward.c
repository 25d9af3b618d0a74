/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwarding: an exchange and a call on the same loop. Content streams both ways: a piece of it is
 * read when the other side can take it.
 *
 *      exchange  -- on_content --> weir_http_call_write       read while the call is writable
 *      exchange  <-- on_piece ---- call                       read while the exchange is writable
 *
 * Status 100 is not passed on: a call whose request has Expect becomes writable when the origin
 * asks for the content, and the read that follows asks the client for it.
 */
#include <weir/http_forward.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/exchange.h"
#include "protocol/http/forward_tunnel.h"
#include "protocol/http/forwarded.h"
#include "protocol/http/http_client.h"

#define TUNNEL_TIMEOUT_NS weir_seconds(3600)
#define METHOD_MAX 64 /* bytes; longer ones need memory */

/* The content of the request. */
enum content {
    COLLECTED, /* or there is none: it can be sent again */
    STREAMED,
    TAKEN, /* a piece of it, which cannot be taken again */
};

enum reading {
    NOT_READING,
    READING,      /* weir_http_exchange_read is on the stack; */
    READING_MORE, /* and more is wanted when it returns */
};

enum response {
    EXPECTED,
    BEGUN,
    OVER, /* the forwarding has ended */
};

/* One exchange, until its last call has ended. */
struct forwarding {
    weir_http_exchange *exchange; /* these: retained */
    weir_http_client *client;
    weir_http_call *call;         /* NULL = none */
    weir__forward_tunnel *tunnel; /* after status 101; NULL = none */
    weir_http_response *head;     /* of the origin, if it has Connection; NULL */
    weir_http_forward_options options;
    enum content content;
    enum reading reading;
    enum response response;
    bool is_lost;   /* the client is gone, or was answered by others */
    int own_err;    /* why the call was cancelled from here; 0 = it was not */
    unsigned users; /* functions that use this struct; the last one frees it */
};

static const weir_http_call_events call_events;

/* ---- the request ---- */

/* An origin is asked for the path, also if the client has sent a whole URL: "http://host?query". */
static int set_target(weir_http_request *request, const weir_http_request *from)
{
    weir_span target = weir_http_request_target(from);
    weir_span path = weir_http_request_path(from), query = weir_http_request_query(from);
    weir_buf *text;
    int err;

    if (path.length > 0)
        return weir_http_request_set_target(
            request, weir_span_of(path.data, (size_t)(target.data + target.length - path.data)));
    if (query.length == 0)
        return 0; /* "/" */
    err = weir_buf_create(query.length + 2, 0, &text);
    if (err < 0)
        return err;
    err = weir_buf_write_string(text, "/?");
    if (err == 0)
        err = weir_buf_write_bytes(text, query.data, query.length);
    if (err == 0)
        err = weir_http_request_set_target(request, weir_buf_span(text));
    weir_buf_release(text);
    return err;
}

static int create_request(const weir_http_request *from, weir_http_request **ret_request)
{
    weir_span text = weir_http_request_method_text(from);
    char own[METHOD_MAX],
        *method = text.length < sizeof(own) ? own : weir_memory_alloc(text.length + 1);
    int err;

    if (method == NULL)
        return -ENOMEM;
    memcpy(method, text.data, text.length);
    method[text.length] = '\0';
    err = weir_http_request_create(method, "/", ret_request);
    if (method != own)
        weir_memory_free(method);
    return err < 0 ? err : set_target(*ret_request, from);
}

/* WebSockets only: a proxy that passes on every protocol, such as h2c, can be used as a tunnel past
 * itself. */
static bool wants_websocket(const struct forwarding *f)
{
    const weir_http_request *request = f->exchange->request;
    const weir_http_headers *headers = weir_http_request_headers(request);

    return !f->options.no_websockets && weir_http_request_method(request) == WEIR_HTTP_METHOD_GET &&
           weir_http_request_version(request) == WEIR_HTTP_1_1 &&
           weir_http_request_content_length(request) == 0 &&
           weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "upgrade") &&
           weir_http_headers_have_token(headers, WEIR_HTTP_UPGRADE, "websocket");
}

static int copy_headers(const struct forwarding *f, weir_http_headers *headers)
{
    const weir_http_request *from = f->exchange->request;
    weir_span host = weir_http_headers_get(weir_http_request_headers(from), WEIR_HTTP_HOST);
    int err = weir_http_headers_append(headers, weir_http_request_headers(from));

    if (err < 0)
        return err;
    weir_http_headers_remove_hop_by_hop(headers);
    if (!weir_http_request_expects_continue(from) || f->content == COLLECTED)
        (void)weir_http_headers_remove(headers, WEIR_HTTP_EXPECT);
    if (wants_websocket(f))
        err = weir_http_headers_set_text(headers, WEIR_HTTP_UPGRADE, "websocket");
    if (err == 0 && host.data != NULL) /* Connection may have named it */
        err = weir_http_headers_set(headers, WEIR_HTTP_HOST, host);
    return err < 0 ? err
                   : weir__http_forwarded_add(headers, from, weir_ctx_channel(f->exchange->ctx),
                                              f->options.via);
}

static int copy_request(const struct forwarding *f, weir_http_request **ret_request)
{
    const weir_http_forward_events *events = f->options.events;
    weir_http_request *request = NULL;
    int err = create_request(f->exchange->request, &request);

    if (err == 0)
        err = copy_headers(f, weir_http_request_headers(request));
    if (err == 0 && f->content != COLLECTED)
        err = weir_http_request_set_content_length(
            request, weir_http_request_content_length(f->exchange->request));
    if (err == 0 && events != NULL && events->request != NULL)
        err = events->request(f->exchange, request, f->options.user_data);
    if (err == 0)
        *ret_request = request;
    else if (request != NULL)
        weir_msg_release(weir_http_request_msg(request));
    return err;
}

static weir_msg *collected_content(const struct forwarding *f)
{
    weir_buf *content = f->exchange->content;

    return f->content != COLLECTED || content == NULL || weir_buf_readable(content) == 0
               ? NULL
               : weir_buf_msg(weir_buf_retain(content));
}

static int send_to(struct forwarding *f, const char *origin)
{
    weir_http_request *request = NULL;
    int err = copy_request(f, &request);

    if (err < 0)
        return err;
    return weir_http_client_send(
        f->client, request, collected_content(f),
        WEIR_HTTP_CALL_OPTIONS(.events = &call_events, .user_data = f, .origin = origin,
                               .stream_content = f->content != COLLECTED, .read_on_demand = true,
                               .max_redirects = WEIR_OFF, .upgrades = wants_websocket(f)),
        &f->call);
}

/* ---- the end ---- */

/* Around calls that may end the exchange or the call, and with them all of this. */
static void enter(struct forwarding *f)
{
    f->users++;
}

static void leave(struct forwarding *f)
{
    if (--f->users > 0 || f->response != OVER)
        return;
    if (f->head != NULL)
        weir_msg_release(weir_http_response_msg(f->head));
    weir_http_client_release(f->client);
    weir_http_exchange_release(f->exchange);
    weir_memory_free(f);
}

static void cancel(struct forwarding *f, int err)
{
    f->own_err = err;
    if (f->call != NULL)
        weir_http_call_cancel(f->call);
}

static void on_lost(weir_http_exchange *exchange, void *user_data)
{
    struct forwarding *f = user_data;

    (void)exchange;
    f->is_lost = true;
    cancel(f, WEIR_ECANCELED);
}

/* Between enter and leave. Others may have the exchange, too: then callbacks would still come. */
static void end(struct forwarding *f, int err, const char *detail)
{
    const weir_http_forward_events *events = f->options.events;

    f->response = OVER;
    weir_http_exchange_on_lost(f->exchange, NULL, NULL);
    weir_http_exchange_on_writable(f->exchange, NULL, NULL);
    f->exchange->content_fn = NULL;
    if (events != NULL && events->end != NULL)
        events->end(f->exchange, err, detail, f->options.user_data);
}

/* An answer instead of the origin's. */
struct refusal {
    int status;
    const char *detail;
};

static struct refusal refusal_of(int err, bool lacked_connection)
{
    if (lacked_connection)
        return (struct refusal){503, "all connections to the origin are in use"};
    switch (err) {
    case -ETIMEDOUT:
        return (struct refusal){504, "the origin has not answered in time"};
    case WEIR_EFULL:
        return (struct refusal){503, "too many requests wait for a connection to the origin"};
    case -ENOMEM:
        return (struct refusal){503, "no memory to forward the request"};
    case -EMFILE:
    case -ENFILE:
        return (struct refusal){503, "no descriptor for a connection to the origin"};
    case WEIR_EMALFORMED:
        return (struct refusal){502, "the response of the origin is malformed"};
    case WEIR_ETOOLONG:
        return (struct refusal){502, "the response of the origin exceeds the limits"};
    case -ECONNREFUSED:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
        return (struct refusal){502, "the origin cannot be reached"};
    default:
        return (struct refusal){502, "no response of the origin"};
    }
}

static void answer(struct forwarding *f, struct refusal refusal, int err, const char *detail)
{
    if (f->response == BEGUN)
        weir_http_exchange_abort(f->exchange);
    else if (!f->is_lost)
        (void)weir_http_respond_error(f->exchange, refusal.status, refusal.detail);
    end(f, err, detail);
}

/* The request could not be sent. */
static void refuse_request(struct forwarding *f, int err)
{
    struct refusal refusal = {500, NULL};

    if (err == WEIR_ETOOLONG)
        refusal = (struct refusal){431, "the fields of the request are too long to be forwarded"};
    else if (err == -ENOMEM)
        refusal = refusal_of(err, false);
    else if (err == WEIR_ECLOSED || err == WEIR_EREJECTED)
        refusal = (struct refusal){503, "the server is about to stop"};
    answer(f, refusal, err, weir_error_text(err));
}

/* True if the request may be sent to another origin. */
static bool can_repeat(const struct forwarding *f, const weir_http_call *call)
{
    if (f->response != EXPECTED || f->is_lost || f->content == TAKEN || f->own_err < 0)
        return false;
    return !weir_http_call_is_sent(call) || call->is_idempotent;
}

/* True if the request was sent to another origin. */
static bool try_next(struct forwarding *f, int err, const char *detail)
{
    const weir_http_forward_events *events = f->options.events;
    const char *origin = NULL;

    if (events != NULL && events->next != NULL)
        origin = events->next(f->exchange, err, detail, f->options.user_data);
    if (origin == NULL)
        return false;
    err = send_to(f, origin);
    if (err < 0)
        refuse_request(f, err);
    return true;
}

/* ---- trailers ---- */

/* What can be passed on of the trailers behind a head; NULL if there are none, or no memory for
 * them. The codec has dropped those that deceive. X-Forwarded-Host does so behind proxies. */
static weir_http_end *copy_trailers(const weir_http_headers *head,
                                    const weir_http_headers *trailers)
{
    weir_http_end *copy;
    weir_http_headers *to;

    if (trailers == NULL || weir_http_end_create(&copy) < 0)
        return NULL;
    to = weir_http_end_trailers(copy);
    if (weir_http_headers_append(to, trailers) < 0) {
        weir_msg_release(weir_http_end_msg(copy));
        return NULL;
    }
    weir_http_headers_remove_hop_by_hop(to);
    if (head != NULL)
        weir__http_headers_remove_named_by(to, head);
    (void)weir_http_headers_remove_named(to, "X-Forwarded-Host");
    return copy;
}

/* ---- the content of the request ---- */

static bool wants_content(const struct forwarding *f)
{
    return f->call != NULL && weir_http_call_is_writable(f->call);
}

/* A read may call on_content before it returns: the loop keeps the stack flat. */
static void read_content(struct forwarding *f)
{
    if (f->reading != NOT_READING) {
        f->reading = READING_MORE;
        return;
    }
    enter(f);
    do {
        f->reading = READING;
        weir_http_exchange_read(f->exchange);
    } while (f->reading == READING_MORE && wants_content(f));
    f->reading = NOT_READING;
    leave(f);
}

static int end_request(struct forwarding *f)
{
    const weir_http_headers *head = weir_http_request_headers(f->exchange->request);

    return weir_http_call_end(f->call,
                              copy_trailers(head, weir_http_exchange_trailers(f->exchange)));
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct forwarding *f = user_data;
    bool has_piece = msg != NULL;
    int written = 0;

    enter(f);
    f->content = TAKEN;
    if (f->call == NULL)
        weir_msg_release(msg);
    else if (msg != NULL)
        written = weir_http_call_write(f->call, msg, NULL);
    else if (err == 0)
        written = end_request(f);
    else if (err != WEIR_ECANCELED) /* the client is gone, or has sent too much */
        on_lost(exchange, f);
    if (written < 0)
        cancel(f, written);
    if (has_piece && wants_content(f))
        read_content(f);
    leave(f);
}

static void on_call_writable(weir_http_call *call, void *user_data)
{
    struct forwarding *f = user_data;

    (void)call;
    if (f->tunnel != NULL)
        weir__forward_tunnel_writable(f->tunnel);
    else
        read_content(f);
}

/* ---- the response ---- */

static void on_informational(weir_http_call *call, weir_http_response *from, void *user_data)
{
    struct forwarding *f = user_data;
    weir_http_response *response;
    int status = weir_http_response_status(from);

    (void)call;
    if (status == 100 || weir_http_response_create(status, &response) < 0)
        return;
    if (weir_http_headers_append(weir_http_response_headers(response),
                                 weir_http_response_headers(from)) < 0) {
        weir_msg_release(weir_http_response_msg(response));
        return;
    }
    weir_http_headers_remove_hop_by_hop(weir_http_response_headers(response));
    enter(f);
    weir__http_exchange_inform(f->exchange, response);
    leave(f);
}

/* The answer that follows must not have fields of the origin's response. */
static int give_up_response(weir_http_exchange *exchange, int err)
{
    if (weir_http_exchange_headers(exchange) == NULL)
        return err;
    weir__http_headers_deinit(&exchange->headers);
    weir__http_headers_init(&exchange->headers, exchange->values, (uint8_t *)exchange->values);
    return err;
}

static int copy_response(struct forwarding *f, const weir_http_response *response)
{
    const weir_http_forward_events *events = f->options.events;
    weir_http_headers *headers = weir_http_exchange_headers(f->exchange);
    int status = weir_http_response_status(response), err;

    if (headers == NULL) /* somebody else has answered */
        return -EALREADY;
    err = weir_http_headers_append(headers, weir_http_response_headers(response));
    if (err < 0)
        return err;
    weir_http_headers_remove_hop_by_hop(headers);
    if (events != NULL && events->response != NULL)
        events->response(f->exchange, status, headers, f->options.user_data);
    return status == 101 ? weir_http_headers_set_text(headers, WEIR_HTTP_UPGRADE, "websocket") : 0;
}

static int begin_response(struct forwarding *f, weir_http_response *response)
{
    int status = weir_http_response_status(response);
    int err = copy_response(f, response);

    if (err == 0 && status == 101)
        err = weir__forward_tunnel_begin(f->exchange, f->call, f->options.tunnel_timeout_ns,
                                         &f->tunnel);
    else if (err == 0)
        err = weir_http_exchange_begin(f->exchange, status,
                                       weir_http_response_content_length(response));
    return err < 0 ? give_up_response(f->exchange, err) : 0;
}

static void on_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct forwarding *f = user_data;
    int err;

    enter(f);
    if (weir_http_headers_get(weir_http_response_headers(response), WEIR_HTTP_CONNECTION).data !=
        NULL)
        f->head = weir_http_response_of(weir_msg_retain(weir_http_response_msg(response)));
    err = begin_response(f, response);
    if (err < 0)
        cancel(f, err);
    else if (f->response == EXPECTED)
        f->response = BEGUN;
    if (err == 0 && f->tunnel == NULL)
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

static void on_piece(weir_http_call *call, weir_msg *msg, void *user_data)
{
    struct forwarding *f = user_data;
    int err;

    if (f->tunnel != NULL) {
        weir__forward_tunnel_piece(f->tunnel, msg);
        return;
    }
    enter(f);
    err = weir_http_exchange_write(f->exchange, msg, NULL);
    if (err < 0)
        cancel(f, err);
    else if (weir_http_exchange_is_writable(f->exchange))
        weir_http_call_read(call);
    else
        weir_http_exchange_on_writable(f->exchange, on_exchange_writable, f);
    leave(f);
}

static void end_response(struct forwarding *f, const weir_http_headers *trailers)
{
    const weir_http_headers *head = f->head != NULL ? weir_http_response_headers(f->head) : NULL;

    (void)weir_http_exchange_end(f->exchange, copy_trailers(head, trailers));
}

static void on_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    struct forwarding *f = user_data;
    bool repeats = err < 0 && can_repeat(f, call);

    enter(f);
    f->call = NULL;
    if (err < 0 && f->own_err < 0)
        err = f->is_lost ? WEIR_ECANCELED : f->own_err;
    if (f->tunnel != NULL) {
        weir__forward_tunnel_end(f->tunnel, err);
        end(f, err, detail);
    } else if (err == 0) {
        end_response(f, weir_http_call_trailers(call));
        end(f, 0, "");
    } else if (!repeats || !try_next(f, err, detail)) {
        answer(f, refusal_of(err, call->lacked_connection), err, detail);
    }
    weir_http_call_release(call);
    leave(f);
}

static const weir_http_call_events call_events = {
    .informational = on_informational,
    .head = on_head,
    .content = on_piece,
    .writable = on_call_writable,
    .end = on_end,
};

/* ---- exchanges ---- */

static int check(const weir_http_exchange *exchange, weir_http_client *client)
{
    if (exchange->executor == NULL && weir_in_executor(exchange->loop) &&
        weir__http_client_is_here(client))
        return 0;
    return weir__options_reject("http", exchange->route->given.path,
                                "weir_http_forward runs on a loop of the server that is one of the "
                                "client's, too");
}

int weir_http_forward(weir_http_exchange *exchange, weir_http_client *client, const char *origin,
                      const weir_http_forward_options *given)
{
    weir_http_forward_options options;
    struct forwarding *f;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = weir__options_check("http", exchange->route->given.path,
                                  WEIR__OPTION_FROM(&options, tunnel_timeout_ns, WEIR_OFF));
    if (err == 0)
        err = check(exchange, client);
    if (err < 0)
        return err;
    f = weir_memory_alloc(sizeof(*f));
    if (f == NULL)
        return -ENOMEM;
    *f = (struct forwarding){.options = options, .client = client};
    if (options.via == NULL)
        f->options.via = "weir";
    if (options.tunnel_timeout_ns == 0)
        f->options.tunnel_timeout_ns = TUNNEL_TIMEOUT_NS;
    if (exchange->route->given.streaming &&
        weir_http_request_content_length(exchange->request) != 0)
        f->content = STREAMED;
    f->exchange = weir_http_exchange_retain(exchange);
    (void)weir_http_client_retain(client);
    enter(f);
    err = send_to(f, origin);
    if (err == -EINVAL || err == -EPROTONOSUPPORT) { /* the origin */
        f->response = OVER;
        leave(f);
        return err;
    }
    weir_http_exchange_on_lost(exchange, on_lost, f);
    if (f->content != COLLECTED)
        weir_http_exchange_on_content(exchange, on_content, f);
    if (err < 0)
        refuse_request(f, err);
    leave(f);
    return 0;
}
