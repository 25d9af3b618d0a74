/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_forward.h - forwarding: an exchange of a server is answered by another server, the
 * origin, through a client. For reverse proxies and gateways.
 *
 *      static void forward(weir_http_exchange *exchange, void *user_data)
 *      {
 *          weir_http_forward(exchange, user_data, "http://127.0.0.1:8080", NULL);
 *      }
 *
 *      {"*", "/{path*}", forward, client, .streaming = true, .encoded_slashes = true}
 *
 * The group of the client has to be that of the server: so a request stays on its loop. Options
 * that suit a client that forwards:
 *
 *      WEIR_HTTP_CLIENT_OPTIONS(.group = workers, .max_connections = WEIR_OFF, .max_idle = 256,
 *                               .max_redirects = WEIR_OFF, .user_agent = "",
 *                               .no_decompression = true)
 *
 * Content streams both ways, under back-pressure. A request whose content is still arriving has a
 * connection to the origin, so with a limit of connections slow clients keep others waiting. In a
 * route that is not streaming the content is collected first.
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_FORWARD_H
#define WEIR_HTTP_FORWARD_H

#include <weir/http_client.h>
#include <weir/http_server.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The events of a forwarded exchange, on its loop; any of them may be NULL. */
typedef struct weir_http_forward_events {
    /* The request, with all of its fields, before it is sent; may be changed. Again for each
     * origin. An error answers the exchange with 500. */
    int (*request)(weir_http_exchange *exchange, weir_http_request *request, void *user_data);
    /* The origin has answered; the fields of the response, which may be changed. */
    void (*response)(weir_http_exchange *exchange, int status, weir_http_headers *headers,
                     void *user_data);
    /* The origin has failed before it has answered, and the request can be sent again: nothing of
     * it was sent, or it is idempotent and none of its content is gone. Returns another origin,
     * or NULL. */
    const char *(*next)(weir_http_exchange *exchange, int err, const char *detail, void *user_data);
    /* The last one, once: the response was passed on whole, with err 0, or why not. `detail` is
     * that of the call; WEIR_ECANCELED: the client has gone. */
    void (*end)(weir_http_exchange *exchange, int err, const char *detail, void *user_data);
    void *reserved[4];
} weir_http_forward_events;

/* Zero means default. Build with WEIR_HTTP_FORWARD_OPTIONS(...). */
typedef struct weir_http_forward_options {
    size_t size;
    const weir_http_forward_events *events; /* must live as long as the exchange */
    void *user_data;                        /* for them */
    const char *via;                        /* the name in Via; must live as long as the exchange;
                                               default "weir"; "" = no Via */
    bool no_websockets;                     /* Upgrade is not passed on */
    int64_t tunnel_timeout_ns;              /* closes a WebSocket through which nothing has passed
                                               for this long, or up to twice; default one hour;
                                               WEIR_OFF = never */
} weir_http_forward_options;

#define WEIR_HTTP_FORWARD_OPTIONS(...) WEIR_OPTIONS(weir_http_forward_options, __VA_ARGS__)

/*
 * Forwards an exchange to an origin, "http://127.0.0.1:8080", and its response back.
 *
 * The request has the client's target, without scheme and authority, and its Host. Fields that are
 * for one connection only are removed in both directions. The peer is added to Forwarded,
 * X-Forwarded-For and Via, behind all that they have, in one line; a Forwarded that is malformed is
 * replaced. X-Forwarded-Proto and X-Forwarded-Host are set, unless a trusted proxy of the server
 * has set them. A client that waits for status 100 gets it when the origin asks for the content, or
 * after a second; other responses of status 1xx are passed on, as are trailers, except those that
 * Connection names or that would forge an address, and those of a request whose content was
 * collected. A request to upgrade to "websocket" is passed on, and after status 101 the bytes of
 * both sides; other protocols are not offered to the origin.
 *
 * The client gets 502 if the origin cannot be reached, breaks off or sends what is no valid
 * response; 504 if it takes longer than the timeouts of `client`; 503 if there is no connection,
 * memory or descriptor for the request; 431 if the fields do not fit any more. The content of these
 * says why. If the origin breaks off after its head, the client's connection is reset.
 *
 * Thread: the loop of the exchange, in the route's handler.  Keeps: exchange, client.  Lends until
 * it returns: origin, options.  Fails: -EINVAL (options; the exchange is not on a loop of the
 * client), -ENOMEM; then the exchange is not answered, and no event follows.
 */
WEIR_API int weir_http_forward(weir_http_exchange *exchange, weir_http_client *client,
                               const char *origin, const weir_http_forward_options *options);

#ifdef __cplusplus
}
#endif

#endif
