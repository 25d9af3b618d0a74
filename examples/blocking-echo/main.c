/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo server that writes each message to disk before it answers. Every connection has a thread of
 * its own, so its handler may wait for the disk without delaying others. Netty's OIO.
 *     blocking-echo [--port 8007] [--journal FILE]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/settings.h"

static FILE *journal; /* shared by all connections; stdio locks it */

/* doc:begin block */
static void give_up(weir_ctx *ctx)
{
    weir_fire_error(ctx, -errno, "cannot write the journal");
    weir_channel_abort(weir_ctx_channel(ctx), NULL); /* nothing is echoed that is not on disk */
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    if (fwrite(weir_buf_bytes(buf), weir_buf_readable(buf), 1, journal) != 1)
        give_up(ctx);
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    if (fflush(journal) != 0 || fdatasync(fileno(journal)) < 0) /* this waits for the disk */
        give_up(ctx);
    else
        weir_flush(ctx);
}
/* doc:end */

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
}

static const weir_handler journaling_echo = {
    .name = "journaling-echo",
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &journaling_echo, NULL);
}

int main(int argc, char **argv)
{
    const char *path = settings_take(&argc, argv, "--journal");
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8007);
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err;

    journal = path != NULL ? fopen(path, "a") : tmpfile();
    if (journal == NULL) {
        perror(settings.program);
        return EXIT_FAILURE;
    }
    /* doc:begin group */
    err =
        weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING, .max_channels = 1000), &group);
    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = group, .address = settings.address,
                                                    .init_child = init_child),
                                &server);
    /* doc:end */
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "%s: %s\n", settings.program, weir_error_text(err));
    weir_server_release(server); /* NULL is ignored, here and below */
    weir_group_release(group);
    fclose(journal);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
