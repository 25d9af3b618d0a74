/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a channel reads, and what it is told.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "os/thread.h"
#include "support/channel/test_channel.h"

static const weir_channel_options *on_demand = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);

TEST(reading, goes_on_by_itself_unless_it_is_on_demand)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    assert_true(weir_channel_auto_read(rig.channel));
    assert_true(rig_receive(&rig, "1"));
    assert_true(rig_receive(&rig, "2"));
    weir__channel_read_complete(rig.channel);
    assert_diary(&rig.diary, "a.read(1) a.read(2) a.read_complete a.request_read");
    rig_close(&rig);
}

/* D 81 */
TEST(reading, waits_for_a_request_when_it_is_on_demand)
{
    struct rig rig;

    rig_open_started(&rig, NULL, on_demand);
    assert_false(rig.wire->reads);
    weir_channel_request_read(rig.channel);
    assert_diary(&rig.diary, "a.request_read READ_ONCE");
    assert_false(rig_receive(&rig, "1"));
    weir__channel_read_complete(rig.channel);
    assert_diary(&rig.diary, "a.read(1) a.read_complete");
    assert_false(rig.wire->reads);
    weir_channel_request_read(rig.channel);
    weir_channel_request_read(rig.channel);
    assert_diary(&rig.diary, "a.request_read READ_ONCE a.request_read");
    rig_close(&rig);
}

/* D 81 */
TEST(reading, honours_a_request_from_before_it_was_active)
{
    struct rig rig;
    weir_address address;

    rig_open_started(&rig, &(struct wire_options){.idle = true}, on_demand);
    weir_channel_request_read(rig.channel);
    assert_diary(&rig.diary, "a.request_read");
    assert_int_equal(weir_address_parse("127.0.0.1:1", &address), 0);
    weir_channel_connect(rig.channel, &address, NULL, NULL);
    weir__channel_connected(rig.channel, 0);
    assert_diary(&rig.diary, "a.connect CONNECT a.active READ_ONCE");
    rig_close(&rig);
}

static void stop_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_set_auto_read(ctx, false);
    weir_fire_read(ctx, msg);
}

/* D 79 */
TEST(reading, stops_at_once_when_it_is_switched_off_within_a_read)
{
    static const weir_handler stopper = {.name = "stopper", .read = stop_in_read};
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_first(rig.pipeline, &stopper, NULL), 0);
    assert_false(rig_receive(&rig, "1"));
    weir__channel_read_complete(rig.channel);
    assert_diary(&rig.diary, "STOP a.read(1) a.read_complete");
    weir_channel_request_read(rig.channel);
    assert_diary(&rig.diary, "a.request_read READ_ONCE");
    weir_channel_set_auto_read(rig.channel, true);
    assert_diary(&rig.diary, "a.request_read READ");
    rig_close(&rig);
}

static void ask_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_request_read(ctx);
    weir_request_read(ctx);
    weir_fire_read(ctx, msg);
}

/* D 80 */
TEST(reading, is_asked_for_once_however_often_within_a_read)
{
    static const weir_handler asker = {.name = "asker", .read = ask_in_read};
    struct rig rig;

    rig_open_started(&rig, NULL, on_demand);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &asker, NULL), 0);
    weir_channel_request_read(rig.channel);
    diary_clear(&rig.diary);
    assert_false(rig_receive(&rig, "1"));
    assert_diary(&rig.diary, "a.read(1) a.request_read READ_ONCE a.request_read");
    rig_close(&rig);

    rig_open_started(&rig, NULL, NULL); /* and changes nothing if it reads by itself */
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &asker, NULL), 0);
    assert_true(rig_receive(&rig, "1"));
    assert_diary(&rig.diary, "a.read(1) a.request_read a.request_read");
    rig_close(&rig);
}

/* D 89 */
TEST(reading, tells_the_end_of_the_stream_once_with_half_closure)
{
    struct rig rig;
    weir_promise *shut;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    (void)rig_receive(&rig, "last");
    assert_false(weir_channel_has_peer_ended(rig.channel));
    rig_end_input(&rig);
    assert_true(weir_channel_has_peer_ended(rig.channel));
    weir__channel_input_ended(rig.channel, 0);
    assert_diary(&rig.diary, "a.read(last) a.event(input-closed) a.event(input-drained)");
    assert_true(weir_channel_is_open(rig.channel));
    weir_channel_request_read(rig.channel);
    assert_diary(&rig.diary, "a.request_read");
    shut = rig_promise(&rig, "shut");
    weir_channel_shutdown_input(rig.channel, shut);
    assert_diary(&rig.diary, "shut=ok");
    rig_write(&rig, "still", "still");
    weir_channel_flush(rig.channel);
    assert_sent(&rig, "still");
    weir_promise_release(shut);
    rig_close(&rig);
}

TEST(reading, can_be_shut)
{
    struct rig rig;
    weir_promise *shut;

    rig_open_started(&rig, NULL, NULL);
    shut = rig_promise(&rig, "shut");
    weir_channel_shutdown_input(rig.channel, shut);
    assert_diary(&rig.diary,
                 "STOP SHUT_INPUT shut=ok a.event(input-closed) a.event(input-drained)");
    weir_promise_release(shut);
    rig_close(&rig);
}

static void close_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
    weir_fire_read(ctx, msg);
}

TEST(reading, ends_when_the_channel_is_closed_within_a_read)
{
    static const weir_handler closer = {.name = "closer", .read = close_in_read};
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_first(rig.pipeline, &closer, NULL), 0);
    assert_false(rig_receive(&rig, "1"));
    weir__channel_read_complete(rig.channel);
    assert_diary(&rig.diary, "CLOSE a.read(1)");
    rig_close(&rig);
}

TEST(reading, has_events_that_are_released_like_other_messages)
{
    weir_msg *event = weir_msg_retain(weir_event_output_closed());

    assert_ptr_equal(event, weir_event_output_closed());
    assert_ptr_not_equal(event, weir_event_input_closed());
    assert_ptr_not_equal(event, weir_event_input_drained());
    assert_int_equal(weir_msg_size(event), 0);
    weir_msg_release(event);
    assert_int_equal(weir_msg_refs(event), 1);
}

/* ---- before the first registration ---- */

static void check_switched_before(bool on)
{
    struct rig rig;

    rig_open_with(&rig, NULL, on ? on_demand : NULL);
    rig_add(&rig, "a");
    weir_channel_set_auto_read(rig.channel, on);
    rig_start(&rig);
    assert_int_equal(rig.wire->reads, on);
    assert_int_equal(diary_count(&rig.diary, "a.request_read"), on);
    rig_close(&rig);
}

TEST(reading, may_be_switched_before_the_registration)
{
    check_switched_before(true);
    check_switched_before(false);
}

TEST(reading, that_was_switched_on_and_off_before_the_registration_is_off)
{
    struct rig rig;

    rig_open_with(&rig, NULL, on_demand);
    assert_int_equal(
        weir_channel_set_options(rig.channel, WEIR_CHANNEL_OPTIONS(.read_on_demand = false)), 0);
    weir_channel_set_auto_read(rig.channel, false);
    rig_start(&rig);
    assert_false(rig.wire->reads);
    rig_close(&rig);
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
    struct rig rig;

    for (int i = 0; i < ROUNDS; i++) {
        rig_open_with(&rig, &(const struct wire_options){.silent = true}, on_demand);
        assert_int_equal(weir__thread_start("switch", switch_often, rig.channel, &thread), 0);
        rig_start(&rig);
        weir__thread_join(&thread);
        rig_run(&rig);
        assert_true(rig.wire->reads);
        rig_close(&rig);
    }
}
