/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time server (RFC 868): sends four bytes, the seconds since 1900, to every client.
 *     time [--port 8037] [--io auto|epoll|uring|poll] [--threads N] [--boss-threads N] [--adaptive]
 */
#include <time.h>
#include <weir/weir.h>

#include "support/settings.h"

#define SECONDS_FROM_1900_TO_1970 2208988800

/* doc:begin handler */
static void on_active(weir_ctx *ctx)
{
    weir_buf *buf;
    int err = weir_buf_create(4, 4, &buf);

    if (err < 0) {
        weir_fire_error(ctx, err, "no memory for the time");
        return;
    }
    (void)weir_buf_write_u32(buf, (uint32_t)(time(NULL) + SECONDS_FROM_1900_TO_1970));
    weir_write(ctx, weir_buf_msg(buf), NULL);
    weir_close(ctx, NULL); /* after sending what was written */
}

static const weir_handler tell_time = {.name = "time", .active = on_active};
/* doc:end */

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &tell_time, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "0.0.0.0", 8037);

    return serve(&settings, init_child);
}
