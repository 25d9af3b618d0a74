/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo client: sends a message and returns every answer until a megabyte has been echoed. Netty's
 * EchoClient, with an end.
 *     echo-client [--host 127.0.0.1] [--port 8007] [--io auto|epoll|uring|poll|blocking]
 *                 [--tls] [--ca FILE] [--insecure]
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "support/settings.h"

#define MESSAGE_BYTES 256
#define BYTES (1 << 20)

struct ping {
    size_t *received; /* main's */
};

static int init(void *state, const void *options)
{
    ((struct ping *)state)->received = *(size_t *const *)options;
    return 0;
}

static void on_active(weir_ctx *ctx)
{
    weir_buf *buf;
    int err = weir_buf_create(MESSAGE_BYTES, 0, &buf);

    if (err < 0) {
        weir_fire_error(ctx, err, "no memory for the first message");
        return;
    }
    for (int i = 0; i < MESSAGE_BYTES; i++)
        (void)weir_buf_write_u8(buf, (uint8_t)i);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct ping *self = weir_ctx_state(ctx);

    *self->received += weir_buf_readable(weir_buf_of(msg));
    if (*self->received < BYTES) {
        weir_write(ctx, msg, NULL);
    } else {
        weir_msg_release(msg);
        weir_close(ctx, NULL);
    }
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler ping = {
    .name = "ping",
    .state_size = sizeof(struct ping),
    .init = init,
    .active = on_active,
    .read = on_read,
    .read_complete = on_read_complete,
};

static int init_channel(weir_channel *channel, void *received)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &ping, &received);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read_tls(argc, argv, "127.0.0.1", 8007);
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    size_t received = 0;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);

    if (!err)
        err = connect_to(&settings, group, init_channel, &received, &channel);
    if (!err)
        err = weir_channel_await_closed(channel, WEIR_NEVER);
    if (err)
        fprintf(stderr, "echo-client: %s\n", weir_error_text(err));
    else
        printf("%zu bytes came back\n", received);
    weir_channel_release(channel);
    weir_group_release(group); /* joins its thread */
    return err || received < BYTES ? EXIT_FAILURE : EXIT_SUCCESS;
}
