/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a file to every client, limited to a rate per connection and to one for all together.
 *     send-file --file FILE [--rate BYTES-PER-SECOND] [--total-rate BYTES-PER-SECOND] [--port 8026]
 *               [--io auto|epoll|uring|poll|blocking] [--threads N] [--boss-threads N]
 *               [--tls] [--cert FILE] [--key FILE]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/settings.h"

#define PIECE_MAX (32 * 1024)
#define MAX_DELAY weir_seconds(3600) /* many clients may share a low rate */

static const char *file;
static int64_t rate;        /* of each; 0 = no limit */
static weir_traffic *total; /* of all */

/* The chunk size: a tenth of a second at the configured rate. */
static size_t piece_size(void)
{
    return rate > 0 && rate / 10 < PIECE_MAX ? (size_t)(rate / 10 + 1) : PIECE_MAX;
}

/* doc:begin send */
/* Reads the file while it is sent: a few chunks are in memory at any time. */
static int open_file(weir_chunks **ret_chunks)
{
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (descriptor < 0)
        return -errno;
    if (fstat(descriptor, &status) < 0) {
        close(descriptor);
        return -EIO;
    }
    return weir_chunks_create_file(descriptor, 0, status.st_size, WEIR_FILE_RANGE_CLOSE,
                                   piece_size(), ret_chunks);
}

static void on_active(weir_ctx *ctx)
{
    weir_chunks *chunks;
    int err = open_file(&chunks);

    if (err) {
        weir_fire_error(ctx, err, "cannot send the file"); /* the tail closes the channel */
        return;
    }
    weir_write_and_flush(ctx, weir_chunks_msg(chunks), NULL);
    weir_close(ctx, NULL); /* when it has been sent */
}
/* doc:end */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg); /* input is ignored */
}

static const weir_handler sender = {.name = "sender", .active = on_active, .read = on_read};

/* doc:begin limits */
static int add_limits(weir_pipeline *pipeline)
{
    weir_traffic *own = NULL;
    int err = weir_traffic_create(
        WEIR_TRAFFIC_OPTIONS(.write_rate = rate, .max_delay_ns = MAX_DELAY), &own);

    if (!err)
        err = weir_traffic_shaping_add(pipeline, total);
    if (!err)
        err = weir_traffic_shaping_add(pipeline, own);
    weir_traffic_release(own);
    return err;
}

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = add_limits(pipeline);

    (void)user_data;
    if (!err)
        err = weir_chunked_writing_add(pipeline);
    return err ? err : weir_pipeline_add_last(pipeline, &sender, NULL);
}
/* doc:end */

int main(int argc, char **argv)
{
    const char *own_rate = settings_take(&argc, argv, "--rate");
    const char *total_rate = settings_take(&argc, argv, "--total-rate");
    struct settings settings;
    int result, err;

    file = settings_take(&argc, argv, "--file");
    settings = settings_read_tls(argc, argv, "0.0.0.0", 8026);
    if (file == NULL || access(file, R_OK) < 0) {
        fprintf(stderr, "send-file: cannot open %s\n", file ? file : "(--file FILE)");
        return 2;
    }
    rate = own_rate ? atoll(own_rate) : 0;
    err = weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = total_rate ? atoll(total_rate) : 0,
                                                   .max_delay_ns = MAX_DELAY),
                              &total);
    if (err || rate < 0) {
        fprintf(stderr, "send-file: %s\n", weir_error_text(err ? err : -EINVAL));
        return EXIT_FAILURE;
    }
    result = serve(&settings, init_child);
    weir_traffic_release(total);
    return result;
}
