/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo server on a Unix socket, until SIGINT or SIGTERM. Answers a passed descriptor with the
 * content of its file; the client is unix-cat. unix-echo [--path /tmp/weir-echo.sock] [--io
 * auto|epoll|uring|poll] [--threads N]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <weir/weir.h>

#include "support/settings.h"

static void on_active(weir_ctx *ctx)
{
    weir_unix_peer peer;

    if (weir_unix_read_peer(weir_ctx_channel(ctx), &peer) == 0)
        printf("process %d of user %u is here\n", (int)peer.pid, (unsigned)peer.uid);
    fflush(stdout);
}

/* doc:begin content */
static int write_content(weir_ctx *ctx, int file)
{
    struct stat status;
    weir_file_range *range;
    int err = fstat(file, &status) < 0 ? -errno : 0;

    if (!err) /* the range owns the file, also on failure */
        err = weir_file_range_create(file, 0, status.st_size, WEIR_FILE_RANGE_CLOSE, &range);
    if (!err)
        weir_write(ctx, weir_file_range_msg(range), NULL);
    return err;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_descriptors *passed = weir_descriptors_of(msg);
    int err = 0;

    if (passed == NULL) {
        weir_write(ctx, msg, NULL);
        return;
    }
    for (size_t i = 0; i < weir_descriptors_count(passed) && !err; i++)
        err = write_content(ctx, weir_descriptors_take(passed, i));
    weir_msg_release(msg); /* closes descriptors that were not taken */
    if (err)
        weir_fire_error(ctx, err, "the file cannot be sent");
}
/* doc:end */

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static const weir_handler echo = {
    .name = "echo",
    .active = on_active,
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

int main(int argc, char **argv)
{
    const char *path = settings_take(&argc, argv, "--path");
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 0);
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    char address[WEIR_ADDRESS_TEXT_SIZE];
    int err = settings_make_groups(&settings, &boss, &workers);

    (void)snprintf(address, sizeof(address), "unix:%s", path ? path : "/tmp/weir-echo.sock");
    /* doc:begin start */
    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = address,
                                .options = WEIR_CHANNEL_OPTIONS(.unix_mode = 0600),
                                .child_options = WEIR_CHANNEL_OPTIONS(.receive_descriptors = true),
                                .init_child = init_child),
            &server);
    /* doc:end */
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "unix-echo: %s\n", weir_error_text(err));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
