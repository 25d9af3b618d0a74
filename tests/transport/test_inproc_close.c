/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing in-process channels on stepped executors: the events of both ends, and their order, when
 * one closes, shuts one direction, moves, or loses its executor.
 */
#include <string.h>

#include <weir/pool.h>

#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/transport/opaque_msg.h"
#include "support/transport/pair.h"

/* ---- closing ---- */

/* The order of the two ends is defined on one executor only. */
TEST(inproc, is_inactive_before_its_peer_if_it_closes)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_together);
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.inactive server.inactive");
    pair_close(&pair);

    pair_open_connected(&pair, &pair_together);
    weir_channel_abort(pair.server.channel, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.inactive client.inactive");
    pair_close(&pair);
}

TEST(inproc, closes_its_peer_on_another_executor)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_apart);
    weir_channel_close(pair.client.channel, NULL);
    (void)stepper_run(&pair.near);
    assert_events(&pair.events, "client.inactive");
    (void)stepper_run(&pair.far);
    assert_events(&pair.events, "server.inactive");
    pair_close(&pair);
}

/* The peer's task is in the queue already, and would come before ours. */
TEST(inproc, is_inactive_before_its_peer_though_that_has_something_to_do)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_together);
    weir_channel_set_user_writable(pair.server.channel, 1, false);
    weir_channel_close(pair.client.channel, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.unwritable client.inactive server.inactive");
    pair_close(&pair);
}

static void both_close(const struct pair_options *options)
{
    weir_promise *first, *second;
    struct pair pair;

    pair_open_connected(&pair, options);
    first = pair_promise(&pair, "first");
    second = pair_promise(&pair, "second");
    weir_channel_close(pair.client.channel, first);
    weir_channel_close(pair.server.channel, second);
    pair_run(&pair);
    assert_int_equal(event_log_count(&pair.events, "first=ok"), 1);
    assert_int_equal(event_log_count(&pair.events, "second=ok"), 1);
    assert_int_equal(event_log_count(&pair.events, "client.inactive"), 1);
    assert_int_equal(event_log_count(&pair.events, "server.inactive"), 1);
    weir_promise_release(first);
    weir_promise_release(second);
    pair_close(&pair);
}

TEST(inproc, can_be_closed_from_both_ends)
{
    pair_for_both(both_close);
}

TEST(inproc, can_be_closed_twice)
{
    weir_promise *first, *second;
    struct pair pair;

    pair_open_connected(&pair, NULL);
    first = pair_promise(&pair, "first");
    second = pair_promise(&pair, "second");
    weir_channel_close(pair.client.channel, first);
    weir_channel_close(pair.client.channel, second);
    pair_run(&pair);
    assert_events(&pair.events, "first=ok second=ok client.inactive server.inactive");
    weir_promise_release(first);
    weir_promise_release(second);
    pair_close(&pair);
}

static void close_channel(weir_promise *promise, void *channel)
{
    assert_int_equal(weir_promise_result(promise), 0);
    weir_channel_close(channel, NULL);
}

static void close_in_listener(const struct pair_options *options)
{
    struct pair pair;
    weir_promise *done;

    pair_open_connected(&pair, options);
    done = pair_promise(&pair, "w");
    assert_int_equal(weir_promise_add_listener(done, close_channel, pair.client.channel), 0);
    weir_channel_write_and_flush(pair.client.channel, text_msg("last"), done);
    pair_run(&pair);
    assert_int_equal(event_log_count(&pair.events, "client.inactive"), 1);
    assert_non_null(strstr(pair.events.text, "server.read(last)"));
    assert_non_null(strstr(strstr(pair.events.text, "server.read(last)"), "server.inactive"));
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, peer_gets_what_was_written_before_a_listener_closed)
{
    pair_for_both(close_in_listener);
}

/* Also what was not flushed. */
static void close_sends(const struct pair_options *options)
{
    struct pair_options later = *options;
    struct pair pair;

    later.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);
    pair_open_connected(&pair, &later);
    pair_write(&pair.client, "un", NULL);
    pair_write(&pair.client, "flushed", NULL);
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.inactive");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(unflushed) server.inactive");
    pair_close(&pair);
}

TEST(inproc, peer_gets_what_was_written_before_a_close_whenever_it_reads)
{
    pair_for_both(close_sends);
}

TEST(inproc, waits_for_room_when_it_closes_but_not_for_ever)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1)});
    pair_send(&pair.client, "first", "first");
    pair_send(&pair.client, "second", "second");
    pair_close_end(&pair.client);
    assert_events(&pair.events, "first=ok");
    log_capture_start();
    (void)stepper_advance(&pair.near, weir_seconds(30));
    assert_events(&pair.events, "second=ETIMEDOUT client.inactive");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(first) server.error(ECONNRESET) server.inactive");
    pair_close(&pair);
}

static void write_back(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

/* A client that sends three requests and closes has all of them handled, though not answered. */
TEST(inproc, reads_to_the_end_though_its_answers_fail)
{
    struct pair pair;

    pair_open_connected(&pair,
                        &(const struct pair_options){
                            .apart = true,
                            .server = WEIR_CHANNEL_OPTIONS(.receive_min = 1, .receive_initial = 1,
                                                           .receive_max = 1)});
    pair.server.on_read = write_back;
    pair_write(&pair.client, "1", NULL);
    pair_write(&pair.client, "2", NULL);
    pair_write(&pair.client, "3", NULL);
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.inactive server.read(1) server.read(2) server.read(3) "
                                "server.inactive");
    pair_close(&pair);
}

static void write_to_closed(const struct pair_options *options)
{
    struct pair_options later = *options;
    struct opaque_msg opaque;
    weir_promise *done;
    struct pair pair;

    later.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);
    pair_open_connected(&pair, &later);
    pair_close_end(&pair.client);
    event_log_clear(&pair.events);
    assert_true(weir_channel_is_open(pair.server.channel));
    opaque_msg_init(&opaque);
    done = pair_promise(&pair, "w");
    weir_channel_write_and_flush(pair.server.channel, &opaque.msg, done);
    pair_run(&pair);
    assert_true(opaque.is_gone);
    assert_events(&pair.events, "w=WEIR_ECLOSED");
    assert_string_equal(weir_promise_detail(done), "the peer has closed");
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, write_to_a_closed_peer_fails_and_is_released)
{
    pair_for_both(write_to_closed);
}

/* What waits for room when the peer goes waits no more. */
TEST(inproc, fails_what_waits_when_the_peer_closes)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1),
                   .client = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    pair_send(&pair.client, "first", "first");
    pair_send(&pair.client, "second", "second");
    weir_channel_abort(pair.server.channel, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "first=ok second=WEIR_ECLOSED server.inactive");
    pair_close(&pair);
}

/* ---- half closure ---- */

static const weir_channel_options half_closure = {.size = sizeof(weir_channel_options),
                                                  .half_closure = true};

static void shut_output(const struct pair_options *options)
{
    struct pair_options half = *options;
    weir_promise *done;
    struct pair pair;

    half.server = half.client = &half_closure;
    pair_open_connected(&pair, &half);
    pair_send(&pair.client, "before", NULL);
    done = pair_promise(&pair, "shut");
    weir_channel_shutdown_output(pair.client.channel, done);
    pair_run(&pair);
    assert_int_equal(event_log_count(&pair.events, "shut=ok"), 1);
    assert_int_equal(event_log_count(&pair.events, "server.read(before)"), 1);
    assert_int_equal(event_log_count(&pair.events, "server.input-closed"), 1);
    assert_int_equal(event_log_count(&pair.events, "server.input-closed"), 1);
    assert_int_equal(event_log_count(&pair.events, "client.output-closed"), 1);
    event_log_clear(&pair.events);
    pair_send(&pair.server, "after", "w");
    pair_send(&pair.client, "more", "more");
    pair_run(&pair);
    assert_int_equal(event_log_count(&pair.events, "client.read(after)"), 1);
    assert_int_equal(event_log_count(&pair.events, "w=ok"), 1);
    assert_int_equal(event_log_count(&pair.events, "more=WEIR_ECLOSED"), 1);
    assert_true(weir_channel_is_active(pair.client.channel));
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, can_still_read_when_its_output_is_shut)
{
    pair_for_both(shut_output);
}

TEST(inproc, closes_at_the_end_of_the_stream_without_half_closure)
{
    struct pair pair;

    pair_open_connected(&pair, NULL);
    weir_channel_shutdown_output(pair.client.channel, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "client.output-closed server.inactive client.inactive");
    pair_close(&pair);
}

TEST(inproc, cannot_be_shut_when_it_is_closed)
{
    weir_promise *done;
    struct pair pair;

    pair_open_connected(&pair, NULL);
    pair_close_end(&pair.client);
    event_log_clear(&pair.events);
    done = pair_promise(&pair, "shut");
    weir_channel_shutdown_output(pair.client.channel, done);
    pair_run(&pair);
    assert_events(&pair.events, "shut=WEIR_ECLOSED");
    weir_promise_release(done);
    pair_close(&pair);
}

/* As a socket that has been shut: the writer is not notified. */
TEST(inproc, drops_messages_when_its_input_is_shut)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1),
                   .client = &half_closure});
    pair_send(&pair.client, "before", "before");
    pair_send(&pair.client, "waits", "waits");
    weir_channel_shutdown_input(pair.server.channel, NULL);
    pair_send(&pair.client, "after", "after");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_events(&pair.events, "before=ok server.input-closed waits=ok after=ok");
    pair_send(&pair.server, "back", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "client.read(back)");
    pair_close(&pair);
}

/* With half closure it is the write that finds out, as with a socket. */
TEST(inproc, ends_by_a_write_when_its_peer_has_gone_and_all_is_read)
{
    struct pair pair;

    pair_open_connected(&pair, &(const struct pair_options){.server = &half_closure});
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.inactive server.input-closed");
    pair_send(&pair.server, "x", "w");
    pair_run(&pair);
    assert_events(&pair.events, "w=EPIPE server.inactive");
    pair_close(&pair);
}

/* ---- moving ---- */

static void deregister(struct pair_end *end)
{
    weir_channel_deregister(end->channel, NULL);
    pair_run(end->pair);
    assert_false(weir_channel_is_registered(end->channel));
}

static void register_on(struct pair_end *end, weir_executor *executor)
{
    weir_channel_register(end->channel, executor, NULL);
    pair_run(end->pair);
}

TEST(inproc, can_move_to_another_executor_and_loses_nothing)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_apart);
    deregister(&pair.server);
    pair_send(&pair.client, "meanwhile", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "");
    register_on(&pair.server, pair.near.executor);
    assert_events(&pair.events, "server.read(meanwhile)");
    pair_send(&pair.client, "now", NULL);
    assert_events(&pair.events, "server.read(now)");
    pair_send(&pair.server, "back", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "client.read(back)");
    pair_close(&pair);
}

/* What waited for room goes on, whether the room came while it had no executor or later. */
static void move_writer(bool early)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .apart = true,
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 1)});
    pair_send(&pair.client, "first", NULL);
    pair_send(&pair.client, "second", NULL);
    deregister(&pair.client);
    if (early)
        weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    register_on(&pair.client, pair.far.executor);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(first) server.read(second)");
    pair_close(&pair);
}

TEST(inproc, continues_writing_after_a_move)
{
    move_writer(true);
    move_writer(false);
}

TEST(inproc, sees_after_a_move_that_its_peer_has_closed)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_apart);
    deregister(&pair.server);
    pair_send(&pair.client, "last", NULL);
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.inactive");
    register_on(&pair.server, pair.far.executor);
    assert_events(&pair.events, "server.read(last) server.inactive");
    pair_close(&pair);
}

/* Nobody holds it any more, and no executor has it. */
TEST(inproc, closes_if_it_is_released_without_an_executor)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_apart);
    deregister(&pair.server);
    weir_channel_release(pair.server.channel);
    pair.server.channel = NULL;
    pair_run(&pair);
    assert_events(&pair.events, "server.inactive client.inactive");
    pair_close(&pair);
}

TEST(inproc, listener_can_move_while_others_call)
{
    struct pair pair;

    pair_open(&pair, &pair_apart);
    weir_channel_deregister(pair.listener, NULL);
    pair_run(&pair);
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events, "");
    weir_channel_register(pair.listener, pair.near.executor, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.active connect=ok client.active");
    pair_close(&pair);
}

/* ---- executors that end ---- */

/* The peer's executor was given up with the channel on it; ours goes on. */
TEST(inproc, can_be_written_to_and_closed_though_its_executor_has_ended)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_apart);
    assert_int_equal(weir_executor_shutdown(pair.far.executor, 0, 0), 0);
    (void)stepper_run(&pair.far);
    pair_send(&pair.client, "x", "w");
    pair_run(&pair);
    global_executor_stop();
    pair_close_end(&pair.client);
    global_executor_stop();
    assert_int_equal(event_log_count(&pair.events, "w="), 1);
    assert_int_equal(event_log_count(&pair.events, "client.inactive"), 1);
    weir_channel_abort(pair.server.channel, NULL);
    global_executor_stop();
    assert_int_equal(weir_channel_await_closed(pair.server.channel, TEST_TIMEOUT_NS), 0);
    pair_close(&pair);
}
