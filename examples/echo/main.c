/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends back what it gets, until SIGINT or SIGTERM: Netty's EchoServer.
 *     echo [--port 8007] [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N]
 *          [--adaptive]
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "support/settings.h"

/* doc:begin read */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL); /* given away: it is released when it has been sent */
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}
/* doc:end */

/* doc:begin writability */
static void on_writability(weir_ctx *ctx)
{
    weir_set_auto_read(ctx, weir_is_writable(ctx)); /* who does not read is not read from */
}
/* doc:end */

/* doc:begin table */
static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};
/* doc:end */

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8007);
    weir_group *boss = NULL, *workers = NULL;
    weir_channel *server = NULL;
    int err = settings_make_groups(&settings, &boss, &workers);

    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers,
                                                    .address = settings.address, .backlog = 100,
                                                    .acceptors = settings.boss_threads,
                                                    .init_child = init_child),
                                &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server); /* until a signal; then it drains both groups */
    }
    if (err)
        fprintf(stderr, "echo: %s\n", weir_error_text(err));
    weir_channel_release(server); /* NULL is fine, here and below */
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
