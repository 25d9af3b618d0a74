/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler that makes exchanges of requests: the last one of a pipeline. There is one exchange
 * at a time: codecs pass on a request when the response to the one before has ended.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/http_uri.h>

#include "base/keep_frame.h"
#include "base/no_stack_protector.h"
#include "protocol/http/blocking_routes.h"
#include "protocol/http/exchange.h"

/* ---- answers without a route ---- */

static void answer(weir_http_exchange *exchange, int status)
{
    (void)weir_http_respond_error(exchange, status, NULL);
}

static void answer_bad_request(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    answer(exchange, 400);
}

static void answer_not_found(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    answer(exchange, 404);
}

static void answer_not_allowed(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    answer(exchange, 405);
}

static void answer_not_implemented(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    answer(exchange, 501);
}

static void answer_options(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond(exchange, 204, NULL);
}

/* Their path is what weir_http_exchange_route returns and the log names. */
static const weir__http_route bad_request = {.given = {"*", "(400)", answer_bad_request}};
static const weir__http_route not_found = {.given = {"*", "(404)", answer_not_found}};
static const weir__http_route not_allowed = {.given = {"*", "(405)", answer_not_allowed}};
static const weir__http_route not_implemented = {.given = {"*", "(501)", answer_not_implemented}};
static const weir__http_route options = {.given = {"*", "(options)", answer_options}};

/* ---- finding the route ---- */

/*
 * Decodes the segments of a path, each by itself, so that an encoded "/" does not separate. They
 * are separated by NUL, which must not be in a segment.
 */
static int decode_path(weir_span path, uint8_t *to, size_t *ret_length)
{
    const uint8_t *at = path.data, *end = path.data + path.length;
    uint8_t *out = to;

    for (;;) {
        const uint8_t *slash = memchr(at, '/', (size_t)(end - at));
        const uint8_t *stop = slash != NULL ? slash : end;
        ssize_t length = weir_http_percent_decode(weir_span_of(at, (size_t)(stop - at)), out);

        if (length < 0)
            return (int)length;
        if (memchr(out, '\0', (size_t)length) != NULL)
            return WEIR_EMALFORMED;
        out += length;
        if (slash == NULL)
            break;
        *out++ = '\0';
        at = slash + 1;
    }
    *ret_length = (size_t)(out - to);
    return 0;
}

/*
 * The value of a rest has slashes again. It is in the exchange's own copy of the path. An encoded
 * slash in it was part of a segment, which no literal of a more specific route could match; the
 * handler would see the path of that route. So only routes that allow it are found. Other
 * parameters may have one, which files do not take for a separator either.
 */
static const weir__http_route *restore_slashes(weir_http_exchange *exchange,
                                               const weir__http_route *route)
{
    weir_span value;
    uint8_t *bytes;

    for (size_t i = route->has_rest ? route->parameter_count - 1 : 0; i < route->parameter_count;
         i++)
        if (weir_span_find(exchange->values[i], '/') >= 0)
            exchange->has_encoded_slash = true;
    if (!route->has_rest)
        return route;
    value = exchange->values[route->parameter_count - 1];
    if (exchange->has_encoded_slash && !route->given.encoded_slashes)
        return &not_found;
    bytes = weir__http_exchange_extra(exchange);
    bytes += value.data - bytes;
    for (size_t i = 0; i < value.length; i++)
        if (bytes[i] == '\0')
            bytes[i] = '/';
    return route;
}

/* Rare, and not to be inlined: its array would cost every request a stack protector.
 *
 * Sets Allow, to the methods of a path or, without one, of all routes. */
__attribute__((noinline)) static const weir__http_route *allow(weir_http_exchange *exchange,
                                                               const weir__http_route_query *query)
{
    const weir__http_route_tree *tree = weir__http_router_tree(exchange->router);
    char text[256];
    size_t length = weir__http_route_tree_allow(tree, query, text, sizeof(text));

    /* Without memory for the field, the answer is still right. */
    (void)weir_http_headers_set(weir_http_exchange_headers(exchange), WEIR_HTTP_ALLOW,
                                weir_span_of(text, length));
    return weir_http_request_method(exchange->request) == WEIR_HTTP_METHOD_OPTIONS ? &options
                                                                                   : &not_allowed;
}

WEIR__NO_STACK_PROTECTOR
static const weir__http_route *find_route(weir_http_exchange *exchange, weir_span path,
                                          bool is_encoded)
{
    enum weir_http_method method = weir_http_request_method(exchange->request);
    weir__http_route_query query = {.method = method, .separator = '/'};
    weir__http_route_match match;

    if (method == WEIR_HTTP_METHOD_OPTIONS && path.length == 1 && path.data[0] == '*')
        return allow(exchange, NULL);
    if (path.length == 0)
        path = weir_span_of_text("/"); /* its data may be NULL */
    if (path.data[0] != '/')
        return &bad_request;
    path = weir_span_of(path.data + 1, path.length - 1);
    if (is_encoded) {
        uint8_t *decoded = weir__http_exchange_extra(exchange);

        if (decode_path(path, decoded, &path.length) < 0)
            return &bad_request;
        path.data = decoded;
        query.separator = '\0';
    }
    if (method == WEIR_HTTP_METHOD_OTHER)
        query.method_text = weir_http_request_method_text(exchange->request);
    query.path = path.data;
    query.end = path.data + path.length;
    match = weir__http_route_tree_match(weir__http_router_tree(exchange->router), &query,
                                        exchange->values);
    if (match.route == NULL) {
        if (method == WEIR_HTTP_METHOD_CONNECT)
            return &not_implemented;
        return match.is_known ? allow(exchange, &query) : &not_found;
    }
    return is_encoded ? restore_slashes(exchange, match.route) : match.route;
}

static bool is_builtin(const weir__http_route *route)
{
    return route->given.path[0] == '(';
}

/* ---- events ---- */

WEIR__NO_STACK_PROTECTOR
static void on_request(struct weir__exchange_connection *connection, weir_http_request *request)
{
    weir_span target = weir__http_request_target(request);
    weir_span path = weir_span_of(target.data + request->path, request->path_length);
    bool is_encoded = request->is_encoded;
    weir_http_exchange *exchange;
    int err;

    if (connection->exchange != NULL) {
        weir_msg_release(weir_http_request_msg(request));
        weir_fire_error(connection->ctx, -EPROTO, "a request before the response to the last one");
        return;
    }
    err = weir__http_exchange_create(connection, request, is_encoded ? path.length : 0, &exchange);
    if (err < 0) {
        weir_fire_error(connection->ctx, err, "no memory for a request");
        return;
    }
    exchange->route = find_route(exchange, path, is_encoded);
    if (is_builtin(exchange->route) && weir_http_request_content_length(request) != 0) {
        /* The content is not read for it, except what is on its way. */
        if (weir_http_request_expects_continue(request))
            exchange->input = WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE;
        exchange->use = WEIR__EXCHANGE_CALLED;
        weir__http_exchange_run(exchange);
    } else {
        weir__http_content_begin(exchange);
    }
}

WEIR__NO_STACK_PROTECTOR
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);
    weir_http_request *request = weir_http_request_of(msg);

    if (request != NULL) {
        on_request(connection, request);
    } else if (weir_http_end_of(msg) != NULL) {
        if (connection->exchange != NULL)
            weir__http_content_end(connection->exchange, msg);
        else
            weir_msg_release(msg);
    } else if (connection->upgrade.init != NULL) { /* of the next protocol */
        weir__http_upgrade_finish(ctx);
        weir_fire_read(ctx, msg);
    } else if (connection->exchange == NULL) {
        weir_msg_release(msg); /* of a request that was lost */
    } else {
        weir__http_content_piece(connection->exchange, msg);
    }
    weir__keep_frame();
}

static void on_writability(weir_ctx *ctx)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);

    if (connection->exchange != NULL && connection->exchange->is_shared)
        weir__http_exchange_check(connection->exchange);
    weir_fire_writability(ctx);
}

static void lose(weir_ctx *ctx)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);

    if (connection->exchange != NULL)
        weir__http_exchange_lose(connection->exchange);
}

static void end_connection(weir_ctx *ctx)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);

    lose(ctx);
    weir__http_upgrade_cancel(weir_ctx_channel(ctx), &connection->upgrade);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (weir_http_refusal_of(event) != NULL)
        lose(ctx); /* the request was answered in the middle of its content */
    weir_fire_event(ctx, event);
}

static void on_inactive(weir_ctx *ctx)
{
    end_connection(ctx);
    weir_fire_inactive(ctx);
}

static void on_draining(weir_ctx *ctx)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);

    connection->is_draining = true;
    weir_fire_draining(ctx);
}

static int init(void *state, const void *given)
{
    const struct weir__exchange_handler_options *own = given;
    struct weir__exchange_connection *connection = state;

    connection->router = weir_http_router_retain(own->router);
    connection->max_content = own->max_content;
    return 0;
}

static void deinit(void *state)
{
    struct weir__exchange_connection *connection = state;

    weir_http_router_release(connection->router);
}

static void on_added(weir_ctx *ctx)
{
    struct weir__exchange_connection *connection = weir_ctx_state(ctx);

    connection->ctx = ctx;
}

const weir_handler weir__http_exchange_handler = {
    .name = "http-exchanges",
    .state_size = sizeof(struct weir__exchange_connection),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .removed = end_connection,
    .inactive = on_inactive,
    .read = on_read,
    .event = on_event,
    .writability = on_writability,
    .draining = on_draining,
    .stays_on_loop = true,
    .blocked = weir__http_routes_blocked,
};
