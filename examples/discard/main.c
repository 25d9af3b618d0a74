/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discard server (RFC 863): counts the bytes it receives.
 *     discard [--port 8009] [--io auto|epoll|uring|poll|blocking] [--threads N]
 *             [--boss-threads N] [--adaptive] [--tls] [--cert FILE] [--key FILE]
 */
#include <inttypes.h>
#include <stdio.h>
#include <weir/weir.h>

#include "support/settings.h"

/* doc:begin state */
struct discard {
    uint64_t bytes;
};
/* doc:end */

/* doc:begin read */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct discard *self = weir_ctx_state(ctx);

    self->bytes += weir_buf_readable(weir_buf_of(msg));
    weir_msg_release(msg);
}
/* doc:end */

/* doc:begin inactive */
static void on_inactive(weir_ctx *ctx)
{
    struct discard *self = weir_ctx_state(ctx);

    printf("%" PRIu64 " bytes discarded\n", self->bytes);
    fflush(stdout);
    weir_fire_inactive(ctx);
}
/* doc:end */

/* doc:begin error */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    fprintf(stderr, "discard: %s\n", detail != NULL ? detail : weir_error_text(err));
    weir_close(ctx, NULL);
}
/* doc:end */

/* doc:begin table */
static const weir_handler discard = {
    .name = "discard",
    .state_size = sizeof(struct discard),
    .read = on_read,
    .inactive = on_inactive,
    .error = on_error,
};
/* doc:end */

/* doc:begin init */
static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &discard, NULL);
}
/* doc:end */

int main(int argc, char **argv)
{
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8009);

    return serve(&settings, init_child);
}
