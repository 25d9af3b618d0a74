/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_server.h - HTTP servers: routes, exchanges, and what runs them.
 *
 *      static void hello(weir_http_exchange *exchange, void *user_data)
 *      {
 *          weir_http_respond_text(exchange, 200, "Hello, World!\n");
 *      }
 *
 *      static const weir_http_route routes[] = {
 *          {"GET", "/hello", hello},
 *          {"GET", "/users/{id}", show_user},
 *          {"POST", "/upload", upload, .streaming = true},
 *          {"GET", "/slow", query_database, .group = &blocking},
 *          {0}};
 *
 *      err = weir_http_server_start(
 *          WEIR_HTTP_SERVER_OPTIONS(.address = "0.0.0.0:8080", .routes = routes), &server);
 *      err = weir_http_server_run(server);
 *
 * An exchange is one request and its response. The route's handler answers it: at once, or later
 * and from any thread, with a reference. An exchange that is released unanswered is answered with
 * 500, and the log names the route.
 */
#ifndef WEIR_HTTP_SERVER_H
#define WEIR_HTTP_SERVER_H

#include <weir/http.h>
#include <weir/http1.h>
#include <weir/http_filters.h>
#include <weir/loop.h>
#include <weir/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- routes ----------------------------------------------------------------------------------- */

typedef struct weir_http_exchange weir_http_exchange;

/* Answers a request. The exchange is borrowed: retain it to answer later. */
typedef void weir_http_handler_fn(weir_http_exchange *exchange, void *user_data);

/*
 * A row of the table of routes. The path is matched segment by segment: "{name}" matches one
 * segment that is not empty, "{name*}" the rest of the path, perhaps empty, and only as the last
 * segment; everything else matches itself, after percent-decoding. Literal segments win over
 * parameters, parameters over the rest, among the routes that have the method. An encoded slash
 * ("%2F") is no separator, so "private%2Fkey" does not match a route for "/private/{name*}". A
 * "{name*}" that it would match instead answers 404, unless that route has encoded_slashes: a
 * handler cannot tell it from a slash in the value. A path that no route
 * has is answered with 404, a method that its routes do not have with 405 and Allow. HEAD is
 * answered by the GET route, OPTIONS by the server, unless there are routes for them. CONNECT,
 * which has no path, finds the path "/", and without a route is answered with 501.
 *
 * gcc and clang warn about rows without all members with -Wextra: -Wno-missing-field-initializers.
 */
typedef struct weir_http_route {
    const char *method; /* "GET"; "*" = any but CONNECT and TRACE */
    const char *path;   /* "/users/{id}", "/files/{path*}" */
    weir_http_handler_fn *handler;
    void *user_data;
    bool streaming;           /* runs at the head; the handler reads the content on demand */
    weir_group *const *group; /* the handler runs on an executor of this group, where it may block;
                                 read when the server starts; default the connection's loop */
    uint64_t max_content;     /* bytes of content, more is 413; default the server's, but unlimited
                                 in a streaming route */
    bool encoded_slashes;     /* "{name*}" accepts "%2F"; its value has "/" instead */
} weir_http_route;

/*
 * An element of a table of routes: method, path, handler, and further members by name. So compilers
 * do not warn about those that are left out. In C++ before C++20, further members are user_data
 * alone, by position.
 *
 *      static const weir_http_route routes[] = {
 *          WEIR_HTTP_ROUTE("GET", "/", hello),
 *          WEIR_HTTP_ROUTE("POST", "/upload", receive, .user_data = &uploads, .streaming = true),
 *          WEIR_HTTP_ROUTES_END};
 */
#if !defined(__cplusplus) || __cplusplus >= 202002L
#define WEIR_HTTP_ROUTE(route_method, route_path, ...)                            \
    WEIR_ELEMENT(weir_http_route, .method = (route_method), .path = (route_path), \
                 .handler = __VA_ARGS__)
#define WEIR_HTTP_ROUTES_END WEIR_ELEMENT(weir_http_route, .method = NULL)
#else
/*
 * WEIR_HTTP_ROUTE without designated initializers. Private.
 * Thread: any.
 */
static inline weir_http_route weir__http_route(const char *method, const char *path,
                                               weir_http_handler_fn *handler,
                                               void *user_data = NULL)
{
    weir_http_route route = weir_http_route();

    route.method = method;
    route.path = path;
    route.handler = handler;
    route.user_data = user_data;
    return route;
}
#define WEIR_HTTP_ROUTE(...) weir__http_route(__VA_ARGS__)
#define WEIR_HTTP_ROUTES_END weir_http_route()
#endif

/* --- exchanges: the request ------------------------------------------------------------------- */

/*
 * Retains or releases a reference. NULL is ignored by release. A handler borrows its exchange: it
 * releases only what it has retained. Debug builds assert that.
 * Thread: any; the first retain, the handler's.  Takes: exchange (release).
 */
WEIR_API weir_http_exchange *weir_http_exchange_retain(weir_http_exchange *exchange);
WEIR_API void weir_http_exchange_release(weir_http_exchange *exchange);

/*
 * The head of the request, borrowed until the exchange is released.
 * Thread: any.
 */
WEIR_API const weir_http_request *weir_http_exchange_request(const weir_http_exchange *exchange);

/*
 * The value of the route's "{name}", percent-decoded; data is NULL if the route has no such
 * parameter.
 * Thread: any.  Lends until the exchange is released: the value.
 */
WEIR_API weir_span weir_http_exchange_parameter(const weir_http_exchange *exchange,
                                                const char *name);

/*
 * The first value of a name in the query string, decoded; data is NULL if there is none.
 * Thread: the handler's.  Lends until the exchange is released: the value.
 */
WEIR_API weir_span weir_http_exchange_query(weir_http_exchange *exchange, const char *name);

/*
 * The whole content, borrowed; empty if there is none. NULL in a streaming route.
 * Thread: any.
 */
WEIR_API weir_buf *weir_http_exchange_content(const weir_http_exchange *exchange);

/*
 * The trailers of the request, borrowed; NULL if there are none, and in a streaming route until the
 * last call of its content function. Fields about framing, routing, authentication, content and
 * forwarding are not among them.
 * Thread: the handler's.
 */
WEIR_API const weir_http_headers *weir_http_exchange_trailers(const weir_http_exchange *exchange);

/*
 * The connection's channel, borrowed until the exchange is released; and the path of the route that
 * matched.
 * Thread: any.
 */
WEIR_API weir_channel *weir_http_exchange_channel(const weir_http_exchange *exchange);
WEIR_API const char *weir_http_exchange_route(const weir_http_exchange *exchange);

/*
 * The address of the client: that of the PROXY header or of the connection; if this is a trusted
 * proxy of the server, what the proxies report, read from the right up to the first that is no
 * trusted proxy. Limits per client and the access log use the same one.
 * Thread: any.  Fails: as weir_channel_remote_address.
 */
WEIR_API WEIR_MUST_USE int weir_http_exchange_client(const weir_http_exchange *exchange,
                                                     weir_address *ret_address);

/*
 * A streaming route's content: `msg` is a piece, which the function takes; NULL at the end, with
 * err 0, or if the rest will not come, with an error: WEIR_ECLOSED (the connection is gone),
 * WEIR_ETOOLONG (413 was sent), WEIR_ECANCELED (the response has ended: the rest is discarded).
 * After the last call it is not called again, nor after the last reference to the exchange was
 * released.
 * Thread: that of the route's handler.
 */
typedef void weir_http_content_fn(weir_http_exchange *exchange, weir_msg *msg, int err,
                                  void *user_data);

/*
 * Sets the function for the content. To be called by the handler of a streaming route before it
 * returns; without one the content is not read until the response has ended. Then each
 * weir_http_exchange_read requests one piece, or the end; several requests before a piece count as
 * one. The first one sends status 100 to a client that waits for it, unless a response has begun.
 * On the connection's loop, the function may be called before this returns.
 * Thread: on_content: that of the handler; read: any.
 */
WEIR_API void weir_http_exchange_on_content(weir_http_exchange *exchange, weir_http_content_fn *fn,
                                            void *user_data);
WEIR_API void weir_http_exchange_read(weir_http_exchange *exchange);

/* Called once. */
typedef void weir_http_exchange_fn(weir_http_exchange *exchange, void *user_data);

/*
 * Sets the function that is called when the connection is lost before the response has ended: also
 * if the client has ended its stream meanwhile, unless `keep_half_closed` of weir_http1_options is
 * set, and whether the content is read or not. If it is lost already, the function is called soon.
 * NULL removes it: on the thread of the route's handler, it is not called after that. The handler
 * has to retain the exchange.
 * Thread: any.  The function runs on that of the route's handler.
 */
WEIR_API void weir_http_exchange_on_lost(weir_http_exchange *exchange, weir_http_exchange_fn *fn,
                                         void *user_data);

/* --- exchanges: the response ------------------------------------------------------------------ */

/*
 * The headers of the response, to be filled before it is begun; NULL after that.
 * Thread: one at a time.
 */
WEIR_API weir_http_headers *weir_http_exchange_headers(weir_http_exchange *exchange);

/*
 * Answer with one call: with a body, which may be NULL; with a text as text/plain; with copied
 * bytes of any type; with JSON, which is not checked; with a redirection; with an error as
 * text/plain ("detail" or the reason phrase). A Content-Type that is already set is kept. The
 * length of a body that is not a weir_buf, weir_composite or weir_file_range is unknown.
 *
 * Within a read event of the connection, responses are sent together at its end; otherwise at once.
 * If the request has not been read to its end, its rest is discarded, up to 64 KiB; if there is
 * more, the connection is closed.
 * Thread: any.  Takes: body, json.  Fails: -EALREADY (a response has begun), WEIR_ECLOSED (the
 * connection is gone), -ENOMEM, -EINVAL (status below 200 or above 599). If it fails, the exchange
 * is answered with 500 when it is released.
 */
WEIR_API int weir_http_respond(weir_http_exchange *exchange, int status, weir_msg *body);
WEIR_API int weir_http_respond_text(weir_http_exchange *exchange, int status, const char *text);
WEIR_API int weir_http_respond_bytes(weir_http_exchange *exchange, int status,
                                     const char *content_type, const void *bytes, size_t length);
WEIR_API int weir_http_respond_json(weir_http_exchange *exchange, int status, weir_buf *json);
WEIR_API int weir_http_respond_redirect(weir_http_exchange *exchange, int status,
                                        const char *location);
WEIR_API int weir_http_respond_error(weir_http_exchange *exchange, int status, const char *detail);

/*
 * Begins a streamed response, of a known length or WEIR_HTTP_UNKNOWN_LENGTH.
 * Thread: any.  Fails: as weir_http_respond.
 */
WEIR_API int weir_http_exchange_begin(weir_http_exchange *exchange, int status, int64_t length);

/*
 * Writes a piece of content, and flushes. `done`, which may be NULL, completes when it has been
 * sent. A response to HEAD ignores content.
 * Thread: any.  Takes: msg.  Keeps: done.  Fails: -EINVAL (no response has begun), -EALREADY (it
 * has ended), WEIR_ECLOSED, -ENOMEM; `done` then fails, too.
 */
WEIR_API int weir_http_exchange_write(weir_http_exchange *exchange, weir_msg *msg,
                                      weir_promise *done);

/*
 * Ends a streamed response, with trailers or NULL. If its length was known and not reached, the
 * connection is reset, so that the client notices.
 * Thread: any.  Takes: end.  Fails: -EINVAL (no response has begun), -EALREADY, WEIR_ECLOSED,
 * -ENOMEM.
 */
WEIR_API int weir_http_exchange_end(weir_http_exchange *exchange, weir_http_end *end);

/*
 * Aborts a response that has begun and cannot be completed: the connection is reset.
 * Thread: any.
 */
WEIR_API void weir_http_exchange_abort(weir_http_exchange *exchange);

/*
 * Back-pressure: true if more should be written now, also if the connection is lost: the write
 * reports it. `fn` is called once, when that is so again, or when the response has ended. A second
 * one replaces the first, NULL removes it. The handler has to retain the exchange.
 * Thread: any.  The function runs on that of the route's handler.
 */
WEIR_API bool weir_http_exchange_is_writable(const weir_http_exchange *exchange);
WEIR_API void weir_http_exchange_on_writable(weir_http_exchange *exchange,
                                             weir_http_exchange_fn *fn, void *user_data);

/*
 * Hands the connection over to another protocol: answers 101 with the headers of the exchange,
 * which must have Upgrade; then removes the HTTP handlers, except those of init_connection, and
 * calls `init`, on the loop, to add others in their place. Bytes that the client sent behind its
 * request are read by these. If `init` fails, the connection is reset. After a success `init` is
 * called exactly once: with a channel that is closed if the connection is lost meanwhile.
 * Thread: any.  Lends until `init` was called: user_data.  Fails: -EINVAL (no Upgrade, or the
 * request has content), -ENOTSUP (not HTTP/1.1), and as weir_http_respond.
 */
WEIR_API int weir_http_exchange_upgrade(weir_http_exchange *exchange, weir_init_fn *init,
                                        void *user_data);

/* --- routers ---------------------------------------------------------------------------------- */

/* A table of routes, compiled to a tree: a match costs the same for ten routes and for a thousand.
 * It cannot be changed. */
typedef struct weir_http_router weir_http_router;

/*
 * Compiles routes, up to one whose path is NULL; copies them.
 * Thread: any.  Gives: router.  Fails: -ENOMEM, -EINVAL (the log names the route: a path without
 * "/", an unclosed "{", "{name*}" in the middle, a parameter twice, no handler), -EEXIST (two
 * routes with the same method and path).
 */
WEIR_API WEIR_MUST_USE int weir_http_router_create(const weir_http_route *routes,
                                                   weir_http_router **ret_router);
WEIR_API weir_http_router *weir_http_router_retain(weir_http_router *router);
WEIR_API void weir_http_router_release(weir_http_router *router);

/*
 * Adds the handler that makes exchanges of requests and calls the routes: the last one of a
 * pipeline, behind a codec and filters. This is all that a server adds for exchanges, so handlers
 * can be tested with an embedded channel.
 * Thread: any.  Keeps: router.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_router_add(weir_pipeline *pipeline, weir_http_router *router,
                                                uint64_t max_content);

/* --- servers ---------------------------------------------------------------------------------- */

typedef struct weir_http_server weir_http_server;
typedef struct weir_tls_context weir_tls_context;

/* Zero means default. Build with WEIR_HTTP_SERVER_OPTIONS(.address = ..., .routes = ...). */
typedef struct weir_http_server_options {
    size_t size;
    const char *address;              /* as those of weir_server_options */
    const char *const *addresses;     /* more, NULL-terminated */
    const char *tls_address;          /* HTTPS */
    const char *const *tls_addresses; /* more, NULL-terminated */
    weir_tls_context *tls;            /* a server's; required for TLS; lent until the release. Its
                                         .alpn has http/1.1 and http/1.0 by default, and nothing
                                         else */
    int (*add_tls)(weir_pipeline *pipeline,
                   weir_tls_context *context); /* weir_tls_add; called once at the start, for a
                                                  channel that is not connected */
    const weir_http_route *routes;             /* copied */
    weir_http_router *router;                  /* instead of routes */
    uint64_t max_content;                      /* bytes of a request's content; default 1 MiB */
    const weir_http1_options *http1;           /* copied */
    weir_group *boss;                          /* default: none, each worker accepts */
    weir_group *workers; /* default: a group of its own, shut down with the server */
    int threads;         /* of that group; default as that of weir_group_options */
    enum weir_io io;     /* of that group */
    int acceptors;       /* as that of weir_server_options */
    const weir_channel_options *child_options; /* half_closure and report_hangup are always on */
    bool proxy_protocol;                       /* connections begin with a PROXY header */
    const char *const *trusted_proxies; /* networks of proxies whose Forwarded or X-Forwarded-For
                                           counts for weir_http_exchange_client: "10.0.0.0/8",
                                           "::1", "unix" = Unix sockets; NULL-terminated; default
                                           none */
    enum weir_http_name trusted_field;  /* WEIR_HTTP_FORWARDED or WEIR_HTTP_X_FORWARDED_FOR: that
                                           which these proxies append to; default either: if a
                                           request has both and they differ, neither counts */

    /* Filters; NULL = none. Copied. */
    const weir_http_compression_options *compression;
    const weir_http_cors_options *cors;
    const weir_http_security_options *security;
    const weir_http_client_limit_options *client_limits;
    weir_http_access_log *access_log; /* retained */
    bool request_ids;

    weir_group *offload_when_blocking; /* retained; routes whose handler, or function for the
                                          content, the watchdog sees blocking run on this group, as
                                          with their `group`; so do handlers of init_connection and
                                          of WebSockets; sets that of child_options */
    weir_init_fn *init_connection;     /* adds handlers between the filters and the routes */
    void *user_data;                   /* for it */
    bool inherit; /* these two as those of weir_server_options; inherited sockets
                     are in the order of the addresses, those with TLS last */
    char *const *restart_argv;
    int64_t drain_timeout_ns; /* of weir_http_server_run; default 10 s */
    weir_executor *loop;      /* instead of the groups, as that of weir_server_options */
} weir_http_server_options;

#define WEIR_HTTP_SERVER_OPTIONS(...) WEIR_OPTIONS(weir_http_server_options, __VA_ARGS__)

/*
 * Starts a server and waits until all addresses are bound.
 * Thread: any that may wait.  Gives: server.  Fails: -EINVAL (the log says why), -EPROTONOSUPPORT
 * (.tls has other protocols than http/1.1 and http/1.0; the log names them), and as
 * weir_http_router_create, weir_group_create and weir_server_start.
 */
WEIR_API WEIR_MUST_USE int weir_http_server_start(const weir_http_server_options *options,
                                                  weir_http_server **ret_server);

/*
 * Serves until SIGINT or SIGTERM; then drains and returns, as weir_server_run and
 * weir_http_server_stop.
 * Thread: any that may wait; best the main one.  Fails: as weir_server_run.
 */
WEIR_API WEIR_MUST_USE int weir_http_server_run(weir_http_server *server);

/*
 * Drains: stops accepting, answers every request whose head has been read, begins to close idle
 * connections at once and the others after their response, and waits for that, at most for
 * `timeout_ns`. A connection that has had no request yet may still send one, until its
 * head_timeout_ns is over. Every close waits for the client to close its end, for close_timeout_ns
 * of `child_options` (3 s) at most. Then the groups have ended, as after weir_server_stop.
 * Thread: any that may wait.  Fails: as weir_server_stop.
 */
WEIR_API int weir_http_server_stop(weir_http_server *server, int64_t timeout_ns);

/*
 * Releases the server. NULL is ignored. One that still runs is stopped first, with a timeout of
 * 10 s.
 * Thread: any that may wait.  Takes: server.
 */
WEIR_API void weir_http_server_release(weir_http_server *server);

/*
 * Adds routes to a server that runs: new connections have them. `released`, which may be NULL, is
 * called with `arg` when the server is freed, or before this returns an error.
 * Thread: any.  Fails: as weir_http_router_create.
 */
WEIR_API WEIR_MUST_USE int weir_http_server_add_routes(weir_http_server *server,
                                                       const weir_http_route *routes,
                                                       void (*released)(void *arg), void *arg);

/*
 * The server below, borrowed: its listeners and their addresses.
 * Thread: any.
 */
WEIR_API weir_server *weir_http_server_server(const weir_http_server *server);

#ifdef __cplusplus
}
#endif

#endif
