/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends each WebSocket message back, on any path, until SIGINT or SIGTERM.
 *     ws-echo [--deflate] [--port 8080] [--io auto|epoll|uring|poll|blocking] [--threads N]
 *             [--boss-threads N] [--tls] [--cert FILE] [--key FILE]
 *     ws-client ws://localhost:8080/
 */
#include <weir/websocket.h>

#include "support/http.h"

static bool deflate;

/* doc:begin echo */
static void on_message(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

/* A client that does not read is not read from. */
static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_message,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int add_echo(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static void open_echo(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_echo, .deflate = deflate));
}

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/{path*}", open_echo),
                                         WEIR_HTTP_ROUTES_END};
/* doc:end */

int main(int argc, char **argv)
{
    struct settings settings;

    deflate = settings_take_switch(&argc, argv, "--deflate");
    settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    return serve_http(&settings, WEIR_HTTP_SERVER_OPTIONS(.routes = routes));
}
