/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a channel reads, and the events that it fires.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "os/thread.h"
#include "support/channel/test_channel.h"

static const weir_channel_options *on_demand = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);

TEST(reading, continues_unless_it_is_on_demand)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_true(weir_channel_auto_read(tc.channel));
    assert_true(tc_receive(&tc, "1"));
    assert_true(tc_receive(&tc, "2"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "a.read(1) a.read(2) a.read_complete a.request_read");
    tc_close(&tc);
}

TEST(reading, waits_for_a_request_when_it_is_on_demand)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, on_demand);
    assert_false(tc.wire->reads);
    weir_channel_request_read(tc.channel);
    assert_events(&tc.events, "a.request_read READ_ONCE");
    assert_false(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "a.read(1) a.read_complete");
    assert_false(tc.wire->reads);
    weir_channel_request_read(tc.channel);
    weir_channel_request_read(tc.channel);
    assert_events(&tc.events, "a.request_read READ_ONCE a.request_read");
    tc_close(&tc);
}

TEST(reading, honours_a_request_from_before_it_was_active)
{
    struct test_channel tc;
    weir_address address;

    tc_open_started(&tc, &(struct wire_options){.idle = true}, on_demand);
    weir_channel_request_read(tc.channel);
    assert_events(&tc.events, "a.request_read");
    assert_int_equal(weir_address_parse("127.0.0.1:1", &address), 0);
    weir_channel_connect(tc.channel, &address, NULL, NULL);
    weir__channel_connected(tc.channel, 0);
    assert_events(&tc.events, "a.connect CONNECT a.active READ_ONCE");
    tc_close(&tc);
}

static void stop_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_set_auto_read(ctx, false);
    weir_fire_read(ctx, msg);
}

TEST(reading, stops_at_once_when_it_is_switched_off_within_a_read)
{
    static const weir_handler stopper = {.name = "stopper", .read = stop_in_read};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_pipeline_add_first(tc.pipeline, &stopper, NULL), 0);
    assert_false(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "STOP a.read(1) a.read_complete");
    weir_channel_request_read(tc.channel);
    assert_events(&tc.events, "a.request_read READ_ONCE");
    weir_channel_set_auto_read(tc.channel, true);
    assert_events(&tc.events, "a.request_read READ");
    tc_close(&tc);
}

static void ask_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_request_read(ctx);
    weir_request_read(ctx);
    weir_fire_read(ctx, msg);
}

TEST(reading, is_asked_for_once_however_often_within_a_read)
{
    static const weir_handler asker = {.name = "asker", .read = ask_in_read};
    struct test_channel tc;

    tc_open_started(&tc, NULL, on_demand);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &asker, NULL), 0);
    weir_channel_request_read(tc.channel);
    event_log_clear(&tc.events);
    assert_false(tc_receive(&tc, "1"));
    assert_events(&tc.events, "a.read(1) a.request_read READ_ONCE a.request_read");
    tc_close(&tc);

    tc_open_started(&tc, NULL, NULL); /* and changes nothing if it reads by itself */
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &asker, NULL), 0);
    assert_true(tc_receive(&tc, "1"));
    assert_events(&tc.events, "a.read(1) a.request_read a.request_read");
    tc_close(&tc);
}

TEST(reading, fires_the_end_of_the_stream_once_with_half_closure)
{
    struct test_channel tc;
    weir_promise *shut;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    (void)tc_receive(&tc, "last");
    assert_false(weir_channel_has_peer_ended(tc.channel));
    tc_end_input(&tc);
    assert_true(weir_channel_has_peer_ended(tc.channel));
    weir__channel_input_ended(tc.channel, 0);
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "a.read(last) a.event(input-closed) a.read_complete a.request_read");
    assert_true(weir_channel_is_open(tc.channel));
    weir_channel_request_read(tc.channel);
    assert_events(&tc.events, "a.request_read");
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_input(tc.channel, shut);
    assert_events(&tc.events, "shut=ok");
    tc_write(&tc, "still", "still");
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "still");
    weir_promise_release(shut);
    tc_close(&tc);
}

TEST(reading, can_be_shut)
{
    struct test_channel tc;
    weir_promise *shut;

    tc_open_started(&tc, NULL, NULL);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_input(tc.channel, shut);
    assert_events(&tc.events, "STOP SHUT_INPUT shut=ok a.event(input-closed)");
    weir_promise_release(shut);
    tc_close(&tc);
}

static void close_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
    weir_fire_read(ctx, msg);
}

TEST(reading, ends_when_the_channel_is_closed_within_a_read)
{
    static const weir_handler closer = {.name = "closer", .read = close_in_read};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_pipeline_add_first(tc.pipeline, &closer, NULL), 0);
    assert_false(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "CLOSE a.read(1)");
    tc_close(&tc);
}

typedef void deliver_fn(weir_channel *channel, weir_msg *msg);

static void deliver_in_general(weir_channel *channel, weir_msg *msg)
{
    (void)weir__channel_received(channel, msg);
}

/* Messages while the channel reads, after it was asked for one, and after its close. */
static void deliver_in_each_state(deliver_fn *deliver, const weir_channel_options *options,
                                  struct test_channel *tc)
{
    tc_open_started(tc, NULL, options);
    deliver(tc->channel, text_msg("1"));
    weir_channel_request_read(tc->channel);
    deliver(tc->channel, text_msg("2"));
    deliver(tc->channel, text_msg("3"));
    weir__channel_read_complete(tc->channel);
    weir_channel_close(tc->channel, NULL);
    deliver(tc->channel, text_msg("4"));
}

TEST(reading, delivers_the_same_by_both_ways)
{
    for (int i = 0; i < 2; i++) {
        struct test_channel fast, general;

        deliver_in_each_state(weir__channel_fast_received, i == 0 ? NULL : on_demand, &fast);
        deliver_in_each_state(deliver_in_general, i == 0 ? NULL : on_demand, &general);
        assert_true(event_log_count(&fast.events, "a.read(2)") == 1);
        assert_true(event_log_count(&fast.events, "a.read(4)") == 0);
        assert_string_equal(general.events.text, fast.events.text);
        tc_close(&fast);
        tc_close(&general);
    }
}

/* Each handler that has paused it resumes it. */
TEST(reading, is_paused_until_the_last_handler_resumes_it)
{
    struct test_channel tc;
    weir_ctx *a, *b;

    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "b");
    a = weir_pipeline_find(tc.pipeline, "a");
    b = weir_pipeline_find(tc.pipeline, "b");
    event_log_clear(&tc.events);
    assert_int_equal(weir_ctx_pause_input(a), 0);
    assert_int_equal(weir_ctx_pause_input(b), 0);
    assert_events(&tc.events, "STOP");
    weir_ctx_resume_input(a);
    assert_events(&tc.events, "");
    weir_ctx_resume_input(b);
    assert_events(&tc.events, "READ");
    tc_close(&tc);
}

TEST(reading, has_events_that_are_released_like_other_messages)
{
    weir_msg *event = weir_msg_retain(weir_event_output_closed());

    assert_ptr_equal(event, weir_event_output_closed());
    assert_ptr_not_equal(event, weir_event_input_closed());
    assert_int_equal(weir_msg_size(event), 0);
    weir_msg_release(event);
    assert_int_equal(weir_msg_refs(event), WEIR_MSG_STATIC); /* threads share it */
}

/* ---- before the first registration ---- */

static void check_switched_before(bool on)
{
    struct test_channel tc;

    tc_open_with(&tc, NULL, on ? on_demand : NULL);
    tc_add(&tc, "a");
    weir_channel_set_auto_read(tc.channel, on);
    tc_start(&tc);
    assert_int_equal(tc.wire->reads, on);
    assert_int_equal(event_log_count(&tc.events, "a.request_read"), on);
    tc_close(&tc);
}

TEST(reading, may_be_switched_before_the_registration)
{
    check_switched_before(true);
    check_switched_before(false);
}

TEST(reading, that_was_switched_on_and_off_before_the_registration_is_off)
{
    struct test_channel tc;

    tc_open_with(&tc, NULL, on_demand);
    assert_int_equal(
        weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.read_on_demand = false)), 0);
    weir_channel_set_auto_read(tc.channel, false);
    tc_start(&tc);
    assert_false(tc.wire->reads);
    tc_close(&tc);
}

enum { SWITCHES = 50, ROUNDS = 200 };

static void switch_often(void *channel)
{
    for (int i = 0; i <= SWITCHES; i++)
        weir_channel_set_auto_read(channel, i % 2 == 0);
}

/* Whoever comes first: the last word is what the channel does. */
TEST(reading, may_be_switched_from_another_thread_during_the_registration)
{
    weir__thread thread;
    struct test_channel tc;

    for (int i = 0; i < ROUNDS; i++) {
        tc_open_with(&tc, &(const struct wire_options){.silent = true}, on_demand);
        (void)weir_channel_retain(tc.channel); /* for the thread */
        assert_int_equal(weir__thread_start("switch", switch_often, tc.channel, &thread), 0);
        tc_start(&tc);
        weir__thread_join(&thread);
        weir_channel_release(tc.channel);
        tc_run(&tc);
        assert_true(tc.wire->reads);
        tc_close(&tc);
    }
}
