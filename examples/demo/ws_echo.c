/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/ws_echo.h"

#include <weir/websocket.h>
#include <weir/weir.h>

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

static const weir_handler ws_echo = {
    .name = "ws-echo",
    .read = on_message,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int add_ws_echo(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &ws_echo, NULL);
}

void open_ws_echo(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_ws_accept(
        exchange, WEIR_WS_OPTIONS(.init = add_ws_echo, .max_message = (uint64_t)16 << 20,
                                  .deflate = true, .deflate_level = 1)); /* 16 MiB in a turn */
}
