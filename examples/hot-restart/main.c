/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo server that reports its process id. On SIGUSR2 it starts its program again and hands the
 * listener over: no client is refused or cut off. As a systemd service it uses the socket of its
 * unit. The environment variable HOT_RESTART_PROBATION_MS is the time it runs beside its successor.
 *     hot-restart [--port 8007] [--io auto|epoll|uring|poll] [--threads N] [--boss-threads N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/settings.h"

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf;
    int err = weir_buf_create(32, 32, &buf);

    if (err < 0) {
        weir_fire_error(ctx, err, "no memory for a number");
        weir_msg_release(msg);
        return;
    }
    (void)weir_buf_printf(buf, "%d: ", getpid());
    weir_write(ctx, weir_buf_msg(buf), NULL);
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static int64_t probation_ns(void)
{
    const char *text = getenv("HOT_RESTART_PROBATION_MS");

    return text != NULL ? weir_ms(strtol(text, NULL, 10)) : 0;
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8007);
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err = settings_make_groups(&settings, &boss, &workers);

    /* doc:begin restart */
    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings.address,
                                .acceptors = settings.boss_threads, .init_child = init_child,
                                .inherit = true, /* the listeners of the previous process */
                                .restart_argv = argv, .restart_probation_ns = probation_ns()),
            &server);
    /* doc:end */
    if (!err) {
        printf("process %d\n", getpid());
        print_address(server);
        err = weir_server_run(server); /* until a signal, or until the next process is ready */
    }
    if (err)
        fprintf(stderr, "hot-restart: %s\n", weir_error_text(err));
    weir_server_release(server); /* NULL is ignored, here and below */
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
