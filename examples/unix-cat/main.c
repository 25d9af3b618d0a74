/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes an open file to unix-echo and prints the answer: the content of the file, which the server
 * itself may not be allowed to open.
 *     unix-cat [--path /tmp/weir-echo.sock] [--file FILE]      without one: the standard input
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/settings.h"

/* doc:begin pass */
static int keep_file(void *state, const void *file)
{
    *(int *)state = *(const int *)file;
    return 0;
}

static void on_active(weir_ctx *ctx)
{
    weir_descriptors *descriptors;
    int err = weir_descriptors_create_one(*(int *)weir_ctx_state(ctx), &descriptors);

    if (err) {
        weir_fire_error(ctx, err, "the file cannot be passed");
        return;
    }
    weir_write(ctx, weir_descriptors_msg(descriptors), NULL);
    weir_shutdown_output(ctx, NULL); /* nothing more to send */
}
/* doc:end */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    (void)ctx;
    (void)fwrite(weir_buf_bytes(buf), 1, weir_buf_readable(buf), stdout);
    weir_msg_release(msg);
}

static const weir_handler cat = {
    .name = "cat",
    .state_size = sizeof(int),
    .init = keep_file,
    .active = on_active,
    .read = on_read,
};

static int init_channel(weir_channel *channel, void *file)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &cat, file);
}

int main(int argc, char **argv)
{
    const char *path = settings_take(&argc, argv, "--path");
    const char *name = settings_take(&argc, argv, "--file");
    struct settings settings = settings_read(argc, argv, "-", 0);
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    int err = file < 0 ? -errno : 0;
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_group *group = NULL;
    weir_channel *channel = NULL;

    (void)snprintf(address, sizeof(address), "unix:%s", path ? path : "/tmp/weir-echo.sock");
    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);
    if (!err)
        err =
            weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = address,
                                                         .init = init_channel, .user_data = &file),
                                     &channel);
    if (!err)
        err = weir_channel_await_closed(channel, WEIR_NEVER);
    if (err)
        fprintf(stderr, "unix-cat: %s: %s\n", file < 0 && name ? name : address,
                weir_error_text(err));
    weir_channel_release(channel);
    weir_group_release(group); /* joins its thread */
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
