/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that echoes tiny frames, and a client that sends many and never reads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/frames.h>
#include <weir/pool.h>

#include "support/memory.h"
#include "support/timeout.h"
#include "support/transport/connection.h"

#define FRAME 5 /* a length of 4 bytes, and one byte */
#define FRAMES (1 << 18)
#define HIGH_MARK 65536

static uint8_t frames[FRAMES * FRAME];
static _Atomic int64_t in_use_before, in_use_most;

static int64_t memory_in_use(void)
{
    weir_pool_stats pool;

    weir_pool_read_stats(&pool);
    return (int64_t)(pool.in_use_bytes + test_memory_live_bytes());
}

/* ---- the server: echo with back-pressure, as in the guide ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    int64_t in_use = memory_in_use();

    if (in_use_before == 0) /* after the first read, which allocates the buffers of a ring */
        in_use_before = in_use;
    if (in_use > in_use_most)
        in_use_most = in_use;
    weir_flush(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(
        ctx, weir_ctx_is_writable(ctx)); /* stop reading from a client that does not read */
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

/* The connection's own handler comes before the codec, and passes everything on. */
static void add_handlers(weir_ctx *ctx)
{
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);

    if (weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.strip = 4)) < 0 ||
        weir_length_prepender_add(pipeline, NULL) < 0)
        abort();
    IGNORE_RESULT(weir_pipeline_add_last(pipeline, &echo, NULL));
}

static void open_echo(struct connection *connection)
{
    connection_prepare(
        connection,
        &(const struct connection_options){
            .listener = WEIR_CHANNEL_OPTIONS(.send_buffer = 16384, .receive_buffer = 16384),
            .server = WEIR_CHANNEL_OPTIONS(.receive_max = 4096, .send_buffer = 16384,
                                           .receive_buffer = 16384),
            .client = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .send_buffer = 16384,
                                           .receive_buffer = 16384)});
    connection->server.on_active = add_handlers;
    connection->server.on_read = weir_fire_read;
    connection->server.on_read_complete = weir_fire_read_complete;
    connection->server.on_writability = weir_fire_writability;
    connection_connect(connection);
}

/* ---- the test ---- */

static weir_msg *frame(void)
{
    weir_buf *buf;

    assert_int_equal(weir_buf_wrap_static(frames, FRAME, &buf), 0);
    return weir_buf_msg(buf);
}

TEST_EACH_CONNECTION(never_reading, takes_little_more_memory_than_the_high_mark)
{
    weir_promise *sent;
    weir_buf *all;

    for (size_t i = 0; i < sizeof(frames); i += FRAME)
        memcpy(frames + i, "\0\0\0\1x", FRAME);
    open_echo(connection);
    assert_int_equal(weir_buf_wrap_static(frames, sizeof(frames), &all), 0);
    in_use_before = in_use_most = 0;
    weir_channel_write_and_flush(connection->client.channel, frame(), NULL);
    assert_true(call_counter_await(&connection->server.completes, 1));
    sent = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, weir_buf_msg(all), sent);
    assert_int_equal(weir_promise_await(sent, weir_ms(50)), -ETIMEDOUT); /* and never ends */
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    assert_true(connection_result(sent) < 0);
    connection_await(&connection->server, "inactive", 1);
    assert_in_range(in_use_most - in_use_before, 1, 3 * HIGH_MARK);
}
