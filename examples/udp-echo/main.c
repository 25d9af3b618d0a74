/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP echo server, until SIGINT or SIGTERM. Each loop has its own socket, and the kernel
 * distributes the senders. udp-echo [--port 8007] [--io auto|epoll|uring|poll] [--threads N]
 */
#include <weir/weir.h>

#include "support/settings.h"

/* doc:begin handler */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx); /* returns a whole batch at once */
}

static const weir_handler echo = {
    .name = "udp-echo",
    .read = on_read,
    .read_complete = on_read_complete,
};
/* doc:end */

static int init_server(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8007);

    return serve_datagrams(&settings, init_server);
}
