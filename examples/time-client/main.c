/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time client (RFC 868): asks examples/time or another server, and prints the date.
 *     time-client [--host 127.0.0.1] [--port 8037] [--io auto|epoll|uring|poll]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weir/weir.h>

#include "support/settings.h"

#define SECONDS_FROM_1900_TO_1970 2208988800

/* doc:begin handler */
struct hear_time {
    uint8_t bytes[4];
    size_t count;     /* of them have come */
    time_t *ret_time; /* main's */
};

static int init(void *state, const void *options)
{
    ((struct hear_time *)state)->ret_time = *(time_t *const *)options;
    return 0;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct hear_time *self = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);

    while (self->count < sizeof(self->bytes) && weir_buf_readable(buf) > 0)
        (void)weir_buf_read_u8(buf, &self->bytes[self->count++]);
    weir_msg_release(msg);
    if (self->count < sizeof(self->bytes))
        return; /* the rest is under way */
    *self->ret_time = (time_t)weir_load_u32(self->bytes) - SECONDS_FROM_1900_TO_1970;
    weir_close(ctx, NULL);
}

static const weir_handler hear_time = {
    .name = "time",
    .state_size = sizeof(struct hear_time),
    .init = init,
    .read = on_read,
};
/* doc:end */

static int init_channel(weir_channel *channel, void *ret_time)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &hear_time, &ret_time);
}

/* doc:begin main */
int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "127.0.0.1", 8037);
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    time_t now = -1;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);

    if (!err)
        err = weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group,
                                                           .address = settings.address,
                                                           .init = init_channel, .user_data = &now),
                                       &channel);
    if (!err)
        err = weir_channel_await_closed(channel, WEIR_NEVER);
    if (err)
        fprintf(stderr, "time-client: %s\n", weir_error_text(err));
    else if (now != -1)
        printf("%s", ctime(&now));
    weir_channel_release(channel);
    weir_group_release(group); /* joins its thread */
    return err || now == -1 ? EXIT_FAILURE : EXIT_SUCCESS;
}
/* doc:end */
