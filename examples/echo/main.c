/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo server, until SIGINT or SIGTERM. Netty's EchoServer.
 *     echo [--port 8007] [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N]
 *          [--adaptive] [--tls] [--cert FILE] [--key FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "support/settings.h"
#include "support/tls.h"

/* doc:begin read */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL); /* passed on: released when it has been sent */
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}
/* doc:end */

/* doc:begin writability */
static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
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

static int init_child(weir_channel *channel, void *tls)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = tls_add(pipeline, tls); /* adds nothing without --tls */

    return err ? err : weir_pipeline_add_last(pipeline, &echo, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8007);
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    weir_tls_context *tls = NULL;
    int err = settings_make_groups(&settings, &boss, &workers);

    if (!err)
        err = tls_make_server(&settings, &tls);
    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers,
                                                    .address = settings.address,
                                                    .acceptors = settings.boss_threads,
                                                    .init_child = init_child, .user_data = tls),
                                &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server); /* until a signal; then drains both groups */
    }
    if (err)
        fprintf(stderr, "echo: %s\n", weir_error_text(err));
    weir_server_release(server); /* NULL is ignored, here and below */
    weir_group_release(workers);
    weir_group_release(boss);
    tls_release(tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
