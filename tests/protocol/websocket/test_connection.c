/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from its opening to its end: reading, writing, adding and removing.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <string.h>

#include <weir/metric.h>

#include "support/protocol/websocket/ws_fixture.h"

#define FIN 0x80u

TEST(connection, echoes_messages)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client, .echoes = true};

        ws_open(&fixture, NULL);
        ws_receive_frame(&fixture, FIN | 1, "hello");
        ws_receive_frame(&fixture, FIN | 2, "");
        ws_receive_frame(&fixture, FIN | 9, "x");
        ws_receive_frame(&fixture, 1, "a");
        ws_receive_frame(&fixture, FIN | 0, "b");
        assert_ws_seen(&fixture, "opened text(hello) binary() text(ab)");
        assert_ws_sent(&fixture, "text(hello) binary() pong(x) text(ab)");
        ws_receive_frame(&fixture, FIN | 8,
                         "\x03\xe8"
                         "bye");
        assert_ws_sent(&fixture, "close(1000)");
        weir_embedded_end_input(fixture.embedded);
        assert_ws_seen(&fixture, "closed(1000,bye) inactive");
        ws_close(&fixture);
    }
}

/* ---- reading ---- */

static void receive_three(struct ws_fixture *fixture)
{
    weir_buf *bytes;

    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    ws_put_frame(fixture, bytes, FIN | 1, "a", 1);
    ws_put_frame(fixture, bytes, FIN | 9, "p", 1);
    ws_put_frame(fixture, bytes, FIN | 1, "b", 1);
    ws_put_frame(fixture, bytes, FIN | 1, "c", 1);
    ws_receive(fixture, bytes, SIZE_MAX);
}

TEST(connection, reads_one_message_for_each_request)
{
    struct ws_fixture fixture = {0};

    ws_open(&fixture, NULL);
    weir_channel_set_auto_read(weir_embedded_channel(fixture.embedded), false);
    receive_three(&fixture);
    assert_ws_seen(&fixture, "opened");
    weir_channel_request_read(weir_embedded_channel(fixture.embedded));
    assert_ws_seen(&fixture, "text(a)");
    assert_ws_sent(&fixture, "");
    weir_channel_request_read(weir_embedded_channel(fixture.embedded));
    assert_ws_seen(&fixture, "text(b)");
    assert_ws_sent(&fixture, "pong(p)");
    weir_embedded_end_input(fixture.embedded);
    assert_ws_seen(&fixture, "");
    weir_channel_set_auto_read(weir_embedded_channel(fixture.embedded), true);
    assert_ws_seen(&fixture, "text(c) closed(1006,lost) inactive");
    ws_close(&fixture);
}

TEST(connection, a_lost_peer_leaves_no_part_behind)
{
    for (int streams = 0; streams < 2; streams++) {
        struct ws_fixture fixture = {0};

        ws_open(&fixture, WEIR_WS_OPTIONS(.stream = streams));
        ws_receive_frame(&fixture, 1, "part");
        weir_embedded_end_input(fixture.embedded);
        assert_ws_seen(&fixture, streams ? "opened text(part* closed(1006,lost) inactive"
                                         : "opened closed(1006,lost) inactive");
        assert_ws_sent(&fixture, "");
        ws_close(&fixture);
    }
}

/* ---- a handler below ---- */

static weir_embedded *read_from;
static bool was_sent_in_read;

static void watch_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg *sent;

    weir_fire_read(ctx, msg);
    sent = weir_embedded_read_outbound(read_from);
    was_sent_in_read = was_sent_in_read || sent != NULL;
    weir_msg_release(sent);
}

static const weir_handler below = {.name = "below", .read = watch_read};

TEST(connection, answers_all_frames_of_a_read_at_once)
{
    struct ws_fixture fixture = {.echoes = true};

    ws_open(&fixture, NULL);
    assert_int_equal(
        weir_pipeline_add_first(weir_embedded_pipeline(fixture.embedded), &below, NULL), 0);
    read_from = fixture.embedded;
    was_sent_in_read = false;
    receive_three(&fixture);
    assert_false(was_sent_in_read);
    assert_ws_sent(&fixture, "text(a) pong(p) text(b) text(c)");
    weir_ws_send_text(weir_embedded_channel(fixture.embedded), "d", NULL);
    assert_ws_sent(&fixture, "text(d)");
    ws_close(&fixture);
}

TEST(connection, a_drain_goes_away)
{
    struct ws_fixture fixture = {0};

    ws_open(&fixture, NULL);
    assert_int_equal(
        weir_pipeline_add_first(weir_embedded_pipeline(fixture.embedded), &below, NULL), 0);
    read_from = fixture.embedded;
    weir_ws_send_text(weir_embedded_channel(fixture.embedded), "before", NULL);
    weir_fire_draining(weir_pipeline_find(weir_embedded_pipeline(fixture.embedded), "below"));
    assert_ws_sent(&fixture, "text(before) close(1001)");
    ws_receive_frame(&fixture, FIN | 1, "last words");
    ws_receive_frame(&fixture, FIN | 8, "\x03\xe9");
    assert_ws_seen(&fixture, "opened text(last words) closed(1001) inactive");
    ws_close(&fixture);
}

/* ---- adding and removing ---- */

TEST(connection, removal_passes_the_rest_on_and_ends_a_close)
{
    struct ws_fixture fixture = {0};
    weir_promise *done;
    weir_ctx *ctx;

    ws_open(&fixture, NULL);
    assert_int_equal(
        weir_promise_create(weir_channel_executor(weir_embedded_channel(fixture.embedded)), &done),
        0);
    weir_channel_close(weir_embedded_channel(fixture.embedded), done);
    assert_ws_sent(&fixture, "close(1000)");
    assert_false(weir_promise_is_done(done));
    ctx = weir_pipeline_find(weir_embedded_pipeline(fixture.embedded), "websocket");
    assert_non_null(ctx);
    weir_ctx_remove(ctx);
    weir_embedded_run(fixture.embedded);
    assert_true(weir_promise_is_done(done));
    assert_ws_seen(&fixture, "opened inactive");
    weir_promise_release(done);
    ws_close(&fixture);
}

static void leave(weir_ctx *ctx, weir_msg *msg)
{
    weir_ws_write_text(ctx, "last words", NULL);
    weir_ctx_remove(weir_pipeline_find(weir_ctx_pipeline(ctx), "websocket"));
    weir_msg_release(msg);
}

static int64_t open_connections(void)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read("websocket.connections_open{side=\"server\"}", &value), 0);
    return value.value;
}

/* While it reads, when flushes wait. */
TEST(connection, removal_sends_what_was_flushed_and_ends_the_count)
{
    static const weir_handler leaving = {.name = "leaving", .read = leave};
    int64_t before = open_connections();
    struct ws_fixture fixture = {0};

    ws_open(&fixture, NULL);
    assert_int_equal(open_connections(), before + 1);
    assert_int_equal(weir_pipeline_add_before(weir_embedded_pipeline(fixture.embedded),
                                              "application", &leaving, NULL),
                     0);
    ws_receive_frame(&fixture, FIN | 1, "hello");
    assert_ws_sent(&fixture, "text(last words)");
    assert_int_equal(open_connections(), before);
    ws_close(&fixture);
    assert_int_equal(open_connections(), before);
}

static int fail_init(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return -EPERM;
}

static int close_channel(weir_channel *channel, void *user_data)
{
    (void)user_data;
    weir_channel_close(channel, NULL);
    return 0;
}

static int open_with_init(weir_init_fn *init)
{
    const weir__ws_agreed agreed = {0};
    weir_embedded *embedded;
    weir_ws_options options;
    int err;

    assert_int_equal(weir__ws_read_options(WEIR_WS_OPTIONS(.init = init), &options), 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    err = weir__ws_open(weir_embedded_channel(embedded),
                        &(weir__ws_setup){.options = &options, .agreed = &agreed});
    weir_embedded_release(embedded);
    return err;
}

TEST(connection, init_may_fail_or_close)
{
    assert_int_equal(open_with_init(fail_init), -EPERM);
    assert_int_equal(open_with_init(close_channel), 0);
}

TEST(connection, options_are_checked)
{
    weir_ws_options options;

    assert_int_equal(weir__ws_read_options(WEIR_WS_OPTIONS(.init = NULL), &options), -EINVAL);
    assert_int_equal(
        weir__ws_read_options(WEIR_WS_OPTIONS(.init = fail_init, .ping_interval_ns = -7), &options),
        -EINVAL);
    assert_int_equal(weir__ws_read_options(
                         WEIR_WS_OPTIONS(.init = fail_init, .deflate_window_bits = 8), &options),
                     -EINVAL);
    assert_int_equal(weir__ws_read_options(WEIR_WS_OPTIONS(.init = fail_init), &options), 0);
    assert_int_equal(options.max_message, 16 * 1024 * 1024);
    assert_int_equal(options.ping_interval_ns, weir_seconds(30));
    assert_int_equal(options.close_timeout_ns, weir_seconds(5));
}
