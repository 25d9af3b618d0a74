/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel through an HTTP proxy (RFC 9110 9.3.6).
 *
 *      socket <-> [http1-client] <-> [http-tunnel] <-> [tls] <-> ...
 *
 * The codec in front of it writes CONNECT and reads the response; at a success it removes itself
 * and passes on what follows. The handlers behind see the connection become active when the tunnel
 * is open, and so write nothing before that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "protocol/http/http_client.h"

#define TIMEOUT_NS weir_seconds(10)

struct setup {
    const char *target;
    const char *authorization; /* NULL = none */
};

struct tunnel {
    weir_http_request *request; /* until it is sent */
    bool is_accepted;           /* the head of the response has arrived */
    bool is_open;               /* and its end, when the codec lets everything pass */
    weir_timer timer;
};

static int init(void *state, const void *options)
{
    struct tunnel *tunnel = state;
    const struct setup *setup = options;
    weir_http_headers *headers;
    int err = weir_http_request_create("CONNECT", setup->target, &tunnel->request);

    if (err < 0)
        return err;
    headers = weir_http_request_headers(tunnel->request);
    err = weir_http_headers_add_text(headers, WEIR_HTTP_HOST, setup->target);
    if (err == 0 && setup->authorization != NULL)
        err = weir_http_headers_add_text(headers, WEIR_HTTP_PROXY_AUTHORIZATION,
                                         setup->authorization);
    if (err < 0)
        weir_msg_release(weir_http_request_msg(tunnel->request));
    return err;
}

static void deinit(void *state)
{
    struct tunnel *tunnel = state;

    if (tunnel->request != NULL)
        weir_msg_release(weir_http_request_msg(tunnel->request));
}

static void fail(weir_ctx *ctx, int err, const char *detail)
{
    weir_fire_error(ctx, err, detail);
    if (!weir_ctx_is_removed(ctx))
        weir_close(ctx, NULL);
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    fail(ctx, -ETIMEDOUT, "the proxy did not answer CONNECT in time");
}

static void on_active(weir_ctx *ctx)
{
    struct tunnel *tunnel = weir_ctx_state(ctx);
    weir_msg *request = weir_http_request_msg(tunnel->request);

    tunnel->request = NULL;
    (void)weir_ctx_timer_start(ctx, &tunnel->timer, TIMEOUT_NS, on_timer);
    weir_write(ctx, request, NULL);
    if (!weir_ctx_is_removed(ctx))
        weir_write_and_flush(ctx, weir_http_end_static(), NULL);
}

/* A status below 200 announces another response. */
static void on_response(weir_ctx *ctx, struct tunnel *tunnel, const weir_http_response *response)
{
    int status = weir_http_response_status(response);
    char detail[64];

    if (status >= 300) {
        (void)snprintf(detail, sizeof(detail), "the proxy answered CONNECT with %d", status);
        fail(ctx, status == 407 ? -EACCES : -ECONNREFUSED, detail);
    }
    tunnel->is_accepted = status >= 200 && status < 300;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct tunnel *tunnel = weir_ctx_state(ctx);
    const weir_http_response *response = weir_http_response_of(msg);

    if (tunnel->is_open) {
        weir_fire_read(ctx, msg);
        return;
    }
    if (response != NULL) {
        on_response(ctx, tunnel, response);
    } else if (tunnel->is_accepted && weir_http_end_of(msg) != NULL &&
               weir_channel_is_open(weir_ctx_channel(ctx))) {
        tunnel->is_open = true;
        (void)weir_timer_stop(&tunnel->timer);
        weir_fire_active(ctx);
    }
    weir_msg_release(msg);
}

static const weir_handler handler = {
    .name = "http-tunnel",
    .stays_on_loop = true,
    .state_size = sizeof(struct tunnel),
    .init = init,
    .deinit = deinit,
    .active = on_active,
    .read = on_read,
};

int weir__http_tunnel_add(weir_pipeline *pipeline, const char *target, const char *authorization)
{
    int err = weir_http1_client_add(pipeline, NULL);

    return err < 0 ? err
                   : weir_pipeline_add_last(pipeline, &handler,
                                            &(const struct setup){target, authorization});
}
