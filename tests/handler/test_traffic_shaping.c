/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic shaping with a manual clock: the rate is 1000 bytes per second, one byte per millisecond,
 * without bursts.
 */
#include <weir/traffic.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/chunks.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/transport/connection.h"

static weir_traffic *make(int64_t read_rate, int64_t write_rate)
{
    weir_traffic *traffic = NULL;

    assert_int_equal(
        weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.read_rate = read_rate, .write_rate = write_rate,
                                                 .burst_ns = WEIR_OFF),
                            &traffic),
        0);
    return traffic;
}

static void open_with(struct test_channel *tc, weir_traffic *traffic)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    assert_int_equal(weir_traffic_shaping_add(tc->pipeline, traffic), 0);
    tc_start(tc);
}

/* A channel with its own limit. */
static void open_rig(struct test_channel *tc, int64_t read_rate, int64_t write_rate)
{
    weir_traffic *traffic = make(read_rate, write_rate);

    open_with(tc, traffic);
    weir_traffic_release(traffic);
}

static void transmit(struct test_channel *tc, const char *text, const char *name)
{
    weir_promise *promise = name != NULL ? tc_promise(tc, name) : NULL;

    weir_channel_write_and_flush(tc->channel, text_msg(text), promise);
    weir_promise_release(promise);
    tc_run(tc);
}

static void pass(struct test_channel *tc, int64_t ms)
{
    while (ms-- > 0)
        stepper_advance(&tc->stepper, weir_ms(1));
}

/* ---- writing ---- */

TEST(traffic_shaping, delays_a_message_until_earlier_ones_are_paid)
{
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", "one");
    transmit(&tc, "abcde", "two");
    transmit(&tc, "x", "three");
    assert_sent(&tc, "0123456789");
    assert_events(&tc.events, "one=ok");
    pass(&tc, 9);
    assert_sent(&tc, "");
    pass(&tc, 2);
    assert_sent(&tc, "abcde");
    assert_events(&tc.events, "two=ok");
    pass(&tc, 6);
    assert_sent(&tc, "x");
    assert_events(&tc.events, "three=ok");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

TEST(traffic_shaping, holds_the_rate_over_time)
{
    struct test_channel tc;
    size_t sent = 0;

    open_rig(&tc, 0, 1000);
    for (int i = 0; i < 100; i++)
        transmit(&tc, "0123456789", NULL);
    for (int i = 0; i < 900; i++) {
        pass(&tc, 1);
        sent += tc.wire->sent_length;
        tc.wire->sent_length = 0;
        assert_in_range(sent, (size_t)i > 20 ? (size_t)i - 20 : 0, (size_t)i + 11); /* smooth */
    }
    tc_close(&tc);
}

TEST(traffic_shaping, counts_waiting_writes_against_the_marks)
{
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    for (int i = 0; i < 10; i++)
        transmit(&tc, "0123456789", NULL);
    assert_false(weir_channel_is_writable(tc.channel));
    pass(&tc, 200);
    assert_true(weir_channel_is_writable(tc.channel));
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

/* The first delayed write makes the channel unwritable, and the event acts at once. */

static void write_more(weir_ctx *ctx)
{
    if (!weir_ctx_is_writable(ctx))
        weir_channel_write(weir_ctx_channel(ctx), text_msg("y"), NULL);
}

static void remove_shaping(weir_ctx *ctx)
{
    if (!weir_ctx_is_writable(ctx))
        assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "traffic-shaping", NULL), 0);
}

/* The first write passes, the second is delayed and above the mark. */
static void write_over_the_mark(struct test_channel *tc, const weir_handler *observer)
{
    weir_channel_write(tc->channel, text_msg("x"), NULL);
    assert_int_equal(weir_pipeline_add_last(tc->pipeline, observer, NULL), 0);
    weir_channel_write(tc->channel, sized_msg(1000), NULL);
    weir_channel_flush(tc->channel);
}

TEST(traffic_shaping, supports_writes_from_within_the_first_delayed_write)
{
    static const weir_handler observer = {.name = "observer", .writability = write_more};
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    write_over_the_mark(&tc, &observer);
    assert_int_equal(tc.wire->sent_length, 1);
    pass(&tc, 2);
    assert_int_equal(tc.wire->sent_length, 1001);
    pass(&tc, 1000);
    assert_int_equal(tc.wire->sent_length, 1002);
    tc_close(&tc);
}

TEST(traffic_shaping, supports_removal_from_within_the_first_delayed_write)
{
    static const weir_handler observer = {.name = "observer", .writability = remove_shaping};
    weir_traffic *traffic = make(0, 1000);
    weir_traffic_stats stats;
    struct test_channel tc;

    open_with(&tc, traffic);
    write_over_the_mark(&tc, &observer);
    tc_run(&tc);
    assert_int_equal(tc.wire->sent_length, 1001);
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_waiting, 0);
    assert_int_equal(stats.bytes_written, 1001);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

static void write_last(weir_ctx *ctx)
{
    if (weir_ctx_is_writable(ctx))
        weir_channel_write_and_flush(weir_ctx_channel(ctx), text_msg("3"), NULL);
}

/* Cancelled writes no longer count when they are passed on. */
TEST(traffic_shaping, keeps_the_order_when_removed)
{
    static const weir_handler observer = {.name = "observer", .writability = write_last};
    weir_promise *promise;
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    promise = tc_promise(&tc, "cancelled");
    transmit(&tc, "1", NULL);
    weir_channel_write(tc.channel, sized_msg(1000), promise);
    transmit(&tc, "2", NULL);
    assert_false(weir_channel_is_writable(tc.channel));
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &observer, NULL), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "traffic-shaping", NULL), 0);
    tc_run(&tc);
    assert_sent(&tc, "123");
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(traffic_shaping, sends_only_flushed_writes)
{
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    weir_channel_write(tc.channel, text_msg("x"), NULL);
    assert_sent(&tc, "0123456789");
    pass(&tc, 100);
    assert_sent(&tc, "");
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "x");
    tc_close(&tc);
}

TEST(traffic_shaping, delayed_writes_can_be_cancelled)
{
    weir_promise *promise;
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    promise = tc_promise(&tc, "c");
    weir_channel_write_and_flush(tc.channel, text_msg("no"), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
    transmit(&tc, "x", NULL);
    pass(&tc, 100);
    assert_sent(&tc, "0123456789x");
    tc_close(&tc);
}

TEST(traffic_shaping, follows_a_change_of_the_rate)
{
    weir_traffic *traffic = make(0, 10);
    weir_traffic_stats stats;
    struct test_channel tc;

    open_with(&tc, traffic);
    transmit(&tc, "0", NULL); /* 100 ms */
    transmit(&tc, "1", NULL);
    transmit(&tc, "2", NULL);
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_waiting, 2);
    assert_int_equal(weir_traffic_set_rates(traffic, 0, 0), 0);
    pass(&tc, 99);
    assert_sent(&tc, "0");
    pass(&tc, 2); /* the first one's time has passed, the others follow */
    assert_sent(&tc, "12");
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_waiting, 0);
    assert_int_equal(stats.bytes_written, 3);
    assert_int_equal(stats.writes_delayed, 2);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

TEST(traffic_shaping, counts_an_empty_message_that_waits_once)
{
    weir_traffic *traffic = make(0, 1000);
    weir_traffic_stats stats;
    struct test_channel tc;

    open_with(&tc, traffic);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "", "empty");
    pass(&tc, 20);
    assert_events(&tc.events, "empty=ok");
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.writes_delayed, 1);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

/* ---- refused and cancelled ---- */

#define assert_traffic(traffic, written, delayed, waiting) \
    do {                                                   \
        weir_traffic_stats stats_;                         \
        weir_traffic_read_stats(traffic, &stats_);         \
        assert_int_equal(stats_.bytes_written, written);   \
        assert_int_equal(stats_.writes_delayed, delayed);  \
        assert_int_equal(stats_.bytes_waiting, waiting);   \
    } while (0)

static void open_capped(struct test_channel *tc, weir_traffic *traffic, int64_t cap)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.write_cap = cap));
    assert_int_equal(weir_traffic_shaping_add(tc->pipeline, traffic), 0);
    tc_start(tc);
}

TEST(traffic_shaping, does_not_count_rejected_writes)
{
    weir_traffic *traffic = make(0, 1000);
    struct test_channel tc;

    open_capped(&tc, traffic, 2 * (10 + WEIR__OUTBOUND_COST));
    transmit(&tc, "0123456789", "sent");
    transmit(&tc, "abcdefghij", "one");
    transmit(&tc, "klmnopqrst", "two");
    assert_traffic(traffic, 10, 2, 20);
    transmit(&tc, "refused", "three");
    assert_events(&tc.events, "sent=ok three=WEIR_EFULL");
    assert_traffic(traffic, 10, 2, 20);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 2 * (10 + WEIR__OUTBOUND_COST));
    pass(&tc, 30);
    assert_events(&tc.events, "one=ok two=ok");
    assert_traffic(traffic, 30, 2, 0);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

/* The first delayed write has already reserved its time. */
TEST(traffic_shaping, does_not_count_a_rejected_first_write)
{
    weir_traffic *traffic = make(0, 1000);
    struct test_channel tc;

    open_capped(&tc, traffic, 10 + WEIR__OUTBOUND_COST);
    transmit(&tc, "0123456789", "sent");
    transmit(&tc, "more than the cap", "refused");
    assert_events(&tc.events, "sent=ok refused=WEIR_EFULL");
    assert_traffic(traffic, 10, 0, 0);
    transmit(&tc, "abc", "next");
    pass(&tc, 50);
    assert_events(&tc.events, "next=ok");
    assert_traffic(traffic, 13, 1, 0);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

TEST(traffic_shaping, does_not_count_a_write_without_memory)
{
    weir_traffic *traffic = make(0, 1000);
    weir_msg *msgs[100];
    struct test_channel tc;

    tc_open_with(&tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    assert_int_equal(weir_traffic_shaping_add(tc.pipeline, traffic), 0);
    tc_start(&tc);
    log_capture_start();
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "y", NULL);
    for (int i = 0; i < 100; i++)
        msgs[i] = text_msg("x");
    test_memory_fail_at(1); /* a node, once the thread has none cached */
    for (int i = 0; i < 100; i++)
        weir_channel_write(tc.channel, msgs[i], NULL);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_traffic(traffic, 10, 100, 100);
    pass(&tc, 300);
    assert_traffic(traffic, 110, 100, 0);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

/* They affect neither the counters nor the rate. */
TEST(traffic_shaping, does_not_count_cancelled_writes)
{
    weir_traffic *traffic = make(0, 1000);
    weir_promise *promises[3];
    struct test_channel tc;

    open_with(&tc, traffic);
    transmit(&tc, "0123456789", NULL);
    for (int i = 0; i < 3; i++) {
        promises[i] = tc_promise(&tc, i == 1 ? "kept" : "cancelled");
        weir_channel_write_and_flush(tc.channel, text_msg("0123456789"), promises[i]);
    }
    assert_traffic(traffic, 10, 3, 30);
    assert_int_equal(weir_promise_cancel(promises[0]), 0);
    assert_int_equal(weir_promise_cancel(promises[2]), 0);
    pass(&tc, 22);
    assert_events(&tc.events, "cancelled=WEIR_ECANCELED cancelled=WEIR_ECANCELED kept=ok");
    assert_traffic(traffic, 20, 3, 0);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    for (int i = 0; i < 3; i++)
        weir_promise_release(promises[i]);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

TEST(traffic_shaping, counts_no_waiting_bytes_after_the_channel_ended)
{
    weir_traffic *traffic = make(0, 1000);
    struct test_channel tc;

    open_with(&tc, traffic);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "abc", "lost");
    assert_traffic(traffic, 10, 1, 3);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "lost=WEIR_ECLOSED");
    assert_traffic(traffic, 10, 1, 0);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

static weir_file_range *make_range(int64_t length)
{
    char path[] = "/tmp/weir-traffic-XXXXXX";
    int file = mkstemp(path);
    weir_file_range *range = NULL;

    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir_file_range_create(file, 0, length, WEIR_FILE_RANGE_CLOSE, &range), 0);
    return range;
}

TEST(traffic_shaping, counts_the_bytes_of_files)
{
    weir_traffic *traffic = make(0, 1000);
    weir_traffic_stats stats;
    struct test_channel tc;

    open_with(&tc, traffic);
    weir_channel_write(tc.channel, weir_file_range_msg(make_range(500)), NULL);
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_written, 500);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

/* ---- the end ---- */

TEST(traffic_shaping, sends_everything_before_a_close)
{
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    weir_channel_write(tc.channel, text_msg("abc"), NULL);
    weir_channel_close(tc.channel, NULL);
    transmit(&tc, "late", "late");
    assert_events(&tc.events, "late=WEIR_ECLOSED");
    pass(&tc, 5);
    assert_true(weir_channel_is_open(tc.channel));
    pass(&tc, 10);
    assert_sent(&tc, "0123456789abc");
    tc_end_input(&tc);
    assert_false(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

TEST(traffic_shaping, sends_everything_before_a_half_closure)
{
    struct test_channel tc;
    weir_promise *shut;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    weir_channel_write(tc.channel, text_msg("abc"), NULL);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    transmit(&tc, "late", "late");
    assert_events(&tc.events, "late=WEIR_ECLOSED");
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 2);
    assert_sent(&tc, "0123456789abc");
    assert_events(&tc.events, "shut=ok");
    assert_true(weir_channel_is_open(tc.channel));
    transmit(&tc, "late", "late"); /* fails in its turn */
    pass(&tc, 5);
    assert_events(&tc.events, "late=WEIR_ECLOSED");
    weir_promise_release(shut);
    tc_close(&tc);
}

TEST(traffic_shaping, sends_everything_when_it_is_removed_before_a_half_closure)
{
    struct test_channel tc;
    weir_promise *shut;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "abc", NULL);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "traffic-shaping", NULL), 0);
    tc_run(&tc);
    assert_sent(&tc, "0123456789abc");
    assert_events(&tc.events, "shut=ok");
    weir_promise_release(shut);
    tc_close(&tc);
}

TEST(traffic_shaping, fails_a_deferred_half_closure_when_aborted)
{
    struct test_channel tc;
    weir_promise *shut;

    open_rig(&tc, 0, 1000);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "abc", "abc");
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "abc=WEIR_ECLOSED shut=WEIR_ECLOSED");
    weir_promise_release(shut);
    tc_close(&tc);
}

TEST(traffic_shaping, fails_waiting_writes_when_aborted)
{
    weir_traffic *traffic = make(0, 1000);
    weir_traffic_stats stats;
    struct test_channel tc;

    open_with(&tc, traffic);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "x", "x");
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "x=WEIR_ECLOSED");
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_waiting, 0);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

TEST(traffic_shaping, sends_everything_when_removed)
{
    struct test_channel tc;

    open_rig(&tc, 1000, 1000);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "x", NULL);
    tc_receive(&tc, "0123456789");
    assert_false(tc.wire->reads);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "traffic-shaping", NULL), 0);
    assert_true(tc.wire->reads);
    weir__channel_read_complete(tc.channel);
    assert_sent(&tc, "0123456789x");
    tc_close(&tc);
}

TEST(traffic_shaping, continues_when_the_channel_is_registered_again)
{
    struct test_channel tc;

    open_rig(&tc, 1000, 1000);
    transmit(&tc, "0123456789", NULL);
    transmit(&tc, "x", NULL);
    tc_receive(&tc, "0123456789");
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    pass(&tc, 50);
    assert_sent(&tc, "0123456789");
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    pass(&tc, 1);
    assert_sent(&tc, "x");
    assert_true(tc.wire->reads);
    tc_close(&tc);
}

/* ---- reading ---- */

TEST(traffic_shaping, pauses_reads_until_paid)
{
    weir_traffic *traffic = make(1000, 0);
    weir_traffic_stats stats;
    struct test_channel tc;

    open_with(&tc, traffic);
    assert_true(tc.wire->reads);
    tc_receive(&tc, "0123456789");
    assert_false(tc.wire->reads);
    assert_true(weir_channel_auto_read(tc.channel)); /* unchanged: it belongs to the user */
    pass(&tc, 9);
    assert_false(tc.wire->reads);
    pass(&tc, 2);
    assert_true(tc.wire->reads);
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_read, 10);
    assert_int_equal(stats.reads_paused, 1);
    tc_close(&tc);
    weir_traffic_release(traffic);
}

TEST(traffic_shaping, leaves_reads_on_demand_to_the_requester)
{
    struct test_channel tc;

    open_rig(&tc, 1000, 0);
    weir_channel_set_auto_read(tc.channel, false);
    tc_run(&tc);
    weir_channel_request_read(tc.channel);
    tc_run(&tc);
    assert_true(tc.wire->reads);
    tc_receive(&tc, "0123456789");
    weir_channel_request_read(tc.channel); /* too early: it is kept */
    tc_run(&tc);
    assert_false(tc.wire->reads);
    pass(&tc, 11);
    assert_true(tc.wire->reads);
    tc_close(&tc);
}

TEST(traffic_shaping, several_pauses_end_with_the_last)
{
    weir_traffic *short_one = make(1000, 0), *long_one = make(100, 0);
    struct test_channel tc;

    open_with(&tc, short_one);
    assert_int_equal(weir_traffic_shaping_add(tc.pipeline, long_one), 0);
    tc_receive(&tc, "0123456789");
    pass(&tc, 50);
    assert_false(tc.wire->reads);
    pass(&tc, 51);
    assert_true(tc.wire->reads);
    tc_close(&tc);
    weir_traffic_release(short_one);
    weir_traffic_release(long_one);
}

/* ---- many channels ---- */

TEST(traffic_shaping, channels_that_share_a_limit_take_turns)
{
    weir_traffic *traffic = make(0, 1000);
    struct test_channel rigs[2];

    for (int i = 0; i < 2; i++) {
        open_with(&rigs[i], traffic);
        for (int j = 0; j < 20; j++)
            transmit(&rigs[i], "0123456789", NULL);
    }
    for (int ms = 0; ms < 210; ms++)
        for (int i = 0; i < 2; i++)
            pass(&rigs[i], 1); /* their clocks run alike */
    assert_in_range(rigs[0].wire->sent_length, 90, 120);
    assert_in_range(rigs[1].wire->sent_length, 90, 120);
    assert_in_range(rigs[0].wire->sent_length + rigs[1].wire->sent_length, 190, 220);
    for (int i = 0; i < 2; i++)
        tc_close(&rigs[i]);
    weir_traffic_release(traffic);
}

/* ---- real sockets, two loops ---- */

#define MESSAGES 32
#define MESSAGE_SIZE 32768

/* To the handlers behind the connection's own. */
static void pass_on(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
}

struct counter {
    struct connection_end *end;
    uint64_t bytes;
};

static void count(weir_ctx *ctx, weir_msg *msg)
{
    struct counter *self = weir_ctx_state(ctx);

    self->bytes += weir_msg_size(msg);
    weir_msg_release(msg);
    if (self->bytes == MESSAGES * MESSAGE_SIZE)
        connection_note(self->end, "all");
}

static int init_counter(void *state, const void *options)
{
    ((struct counter *)state)->end = *(struct connection_end *const *)options;
    return 0;
}

static const weir_handler counter = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .init = init_counter,
    .read = count,
};

TEST_EACH_PAIR(traffic_shaping, two_loops_share_a_limit)
{
    weir_traffic *traffic = make(20000000, 20000000);
    struct connection_end *server = &connection->server;
    weir_traffic_stats stats;
    weir_promise *added;

    connection_open(connection, NULL);
    connection->server.on_read = pass_on;
    assert_int_equal(
        weir_traffic_shaping_add(weir_channel_pipeline(connection->server.channel), traffic), 0);
    added = connection_promise(server);
    assert_int_equal(weir_pipeline_add(weir_channel_pipeline(server->channel),
                                       WEIR_PLACE(.done = added), &counter, &server),
                     0);
    assert_int_equal(connection_result(added), 0); /* both exist before data arrives */
    assert_int_equal(
        weir_traffic_shaping_add(weir_channel_pipeline(connection->client.channel), traffic), 0);
    for (int i = 0; i < MESSAGES; i++)
        weir_channel_write_and_flush(connection->client.channel, sized_msg(MESSAGE_SIZE), NULL);
    connection_await(&connection->server, "all", 1);
    weir_traffic_read_stats(traffic, &stats);
    assert_int_equal(stats.bytes_read, MESSAGES * MESSAGE_SIZE);
    assert_int_equal(stats.bytes_written, MESSAGES * MESSAGE_SIZE);
    assert_int_equal(stats.bytes_waiting, 0);
    assert_true(stats.reads_paused > 0);
    assert_true(stats.writes_delayed > 0);
    connection_close(connection);
    weir_traffic_release(traffic);
}

/* ---- with chunks ---- */

static int make_chunk(void *source, weir_msg **ret_chunk)
{
    unsigned *left = source;

    if (*left == 0)
        return WEIR_CHUNKS_END;
    (*left)--;
    *ret_chunk = text_msg("0123456789");
    return WEIR_CHUNKS_READY;
}

TEST(traffic_shaping, limits_chunks_one_by_one)
{
    static const weir_chunk_source source = {.next = make_chunk};
    weir_chunks *chunks = NULL;
    unsigned left = 100;
    struct test_channel tc;

    open_rig(&tc, 0, 1000);
    assert_int_equal(weir_chunked_writing_add(tc.pipeline), 0);
    assert_int_equal(weir_chunks_create(&source, &left, 1000, &chunks), 0);
    weir_channel_write_and_flush(tc.channel, weir_chunks_msg(chunks), NULL);
    tc_run(&tc);
    assert_in_range(left, 80, 99); /* at most what the marks allow */
    pass(&tc, 500);
    assert_in_range(tc.wire->sent_length, 480, 520);
    pass(&tc, 510);
    assert_int_equal(tc.wire->sent_length, 1000);
    tc_close(&tc);
}

/* Longer than the channel's close timeout for each chunk: only the limit delays them. */
TEST(traffic_shaping, sends_all_chunks_before_a_close)
{
    static const weir_chunk_source source = {.next = make_chunk};
    weir_chunks *chunks = NULL;
    unsigned left = 20;
    struct test_channel tc;

    open_rig(&tc, 0, 2);
    assert_int_equal(weir_chunked_writing_add(tc.pipeline), 0);
    assert_int_equal(weir_chunks_create(&source, &left, 200, &chunks), 0);
    weir_channel_write_and_flush(tc.channel, weir_chunks_msg(chunks), NULL);
    weir_channel_close(tc.channel, NULL);
    tc_run(&tc);
    for (int i = 0; i < 1000; i++)
        stepper_advance(&tc.stepper, weir_ms(100));
    assert_int_equal(tc.wire->sent_length, 200);
    tc_close(&tc);
}

/* ---- lack of memory ---- */

static bool shape_without(unsigned n)
{
    weir_traffic *traffic = make(1000, 1000);
    weir_msg *msgs[3];
    struct test_channel tc;
    bool failed;
    int err;

    for (int i = 0; i < 3; i++)
        msgs[i] = text_msg("0123456789");
    tc_open_with(&tc, &(const struct wire_options){.silent = true}, NULL);
    test_memory_fail_at(n);
    err = weir_traffic_shaping_add(tc.pipeline, traffic);
    failed = test_memory_failed();
    if (failed)
        test_memory_fail_at(0);
    assert_int_equal(err, failed ? -ENOMEM : 0);
    test_memory_fail_at(0);
    tc_start(&tc);
    if (!failed)
        test_memory_fail_at(n);
    for (int i = 0; i < 3; i++)
        weir_channel_write_and_flush(tc.channel, msgs[i], NULL);
    failed = failed || test_memory_failed();
    test_memory_fail_at(0);
    pass(&tc, 50);
    tc_close(&tc);
    weir_traffic_release(traffic);
    return failed;
}

TEST(traffic_shaping, survives_allocation_failures)
{
    for (unsigned n = 1; shape_without(n); n++)
        ;
}

TEST(traffic_shaping, rejects_null_traffic)
{
    struct test_channel tc;

    open_rig(&tc, 0, 0);
    assert_int_equal(weir_traffic_shaping_add(tc.pipeline, NULL), -EINVAL);
    tc_close(&tc);
}
