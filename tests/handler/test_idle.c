/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle handler: Netty's IdleStateHandlerTest, and more.
 */
#include <weir/timeouts.h>

#include <errno.h>

#include <weir/embedded.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

/* Records "reader", or "reader!" for the first event. */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    static const char *const kinds[] = {"reader", "writer", "both"};
    const weir_idle_event *idle = weir_idle_event_of(event);
    struct event_recorder *self = weir_ctx_state(ctx);

    if (idle != NULL)
        event_log_write(self->events, "%s%s", kinds[weir_idle_event_kind(idle)],
                        weir_idle_event_is_first(idle) ? "!" : "");
    weir_msg_release(event);
}

static int init_listener(void *state, const void *options)
{
    *(struct event_recorder *)state = *(const struct event_recorder *)options;
    return 0;
}

static const weir_handler listener = {
    .name = "listener",
    .state_size = sizeof(struct event_recorder),
    .init = init_listener,
    .event = on_event,
};

static void open_rig(struct test_channel *tc, const weir_idle_options *options)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_idle_add(tc->pipeline, options), 0);
    assert_int_equal(
        weir_pipeline_add_last(tc->pipeline, &listener, EVENT_RECORDER(&tc->events, "")), 0);
    tc_start(tc);
    event_log_clear(&tc->events);
}

static void pass(struct test_channel *tc, int64_t ms)
{
    while (ms-- > 0)
        stepper_advance(&tc->stepper, weir_ms(1));
}

static void receive(struct test_channel *tc)
{
    tc_receive(tc, "x");
    weir__channel_read_complete(tc->channel);
}

static void transmit(struct test_channel *tc, const char *text)
{
    weir_channel_write_and_flush(tc->channel, text_msg(text), NULL);
    tc_run(tc);
}

TEST(idle, reader_event_repeats_until_something_is_read)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "reader!");
    pass(&tc, 10);
    assert_events(&tc.events, "reader");
    transmit(&tc, "x"); /* does not affect the reader */
    pass(&tc, 5);
    receive(&tc);
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "reader!");
    tc_close(&tc);
}

TEST(idle, writer_event_repeats_until_something_is_sent)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10)));
    receive(&tc); /* does not affect the writer */
    pass(&tc, 10);
    assert_events(&tc.events, "writer!");
    transmit(&tc, "x");
    pass(&tc, 10); /* the timer runs from the event, the limit from the write */
    assert_events(&tc.events, "writer!");
    pass(&tc, 5);
    transmit(&tc, "x");
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "writer!");
    pass(&tc, 10);
    assert_events(&tc.events, "writer");
    tc_close(&tc);
}

TEST(idle, both_fires_if_neither_happens)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.both_ns = weir_ms(10)));
    pass(&tc, 6);
    receive(&tc);
    pass(&tc, 6);
    transmit(&tc, "x");
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "both!");
    pass(&tc, 10);
    assert_events(&tc.events, "both");
    receive(&tc);
    pass(&tc, 10);
    assert_events(&tc.events, "both!");
    tc_close(&tc);
}

TEST(idle, limits_are_independent)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(30), .writer_ns = weir_ms(20),
                                    .both_ns = weir_ms(50)));
    pass(&tc, 29);
    assert_events(&tc.events, "writer!");
    pass(&tc, 31);
    assert_events(&tc.events, "reader! writer both! reader writer");
    tc_close(&tc);
}

/* A write counts when it is sent, not when it is written. */
TEST(idle, a_stalled_write_is_idle)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10)));
    tc.wire->room = 0;
    pass(&tc, 5);
    transmit(&tc, "abc");
    pass(&tc, 5);
    assert_events(&tc.events, "writer!");
    pass(&tc, 5);
    tc_make_room(&tc, 3);
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "writer!");
    tc_close(&tc);
}

TEST(idle, observing_the_output_sees_slow_progress)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10), .observe_output = true));
    tc.wire->room = 0;
    transmit(&tc, "abc");
    for (int i = 0; i < 3; i++) {
        pass(&tc, 9);
        tc_make_room(&tc, 1);
    }
    assert_events(&tc.events, "");
    pass(&tc, 10);
    assert_events(&tc.events, "writer!");
    tc_close(&tc);
}

TEST(idle, without_observing_it_only_whole_messages_count)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10)));
    tc.wire->room = 0;
    transmit(&tc, "abc");
    for (int i = 0; i < 3; i++) {
        pass(&tc, 8);
        tc_make_room(&tc, 1);
    }
    assert_events(&tc.events, "writer! writer");
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "writer!");
    tc_close(&tc);
}

TEST(idle, nothing_is_idle_in_the_middle_of_a_read)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10), .both_ns = weir_ms(10)));
    tc_receive(&tc, "x");
    pass(&tc, 35);
    assert_events(&tc.events, "");
    weir_pipeline_fire_read_complete(tc.pipeline);
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "reader! both!");
    tc_close(&tc);
}

TEST(idle, a_read_complete_without_a_read_does_not_count)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    pass(&tc, 5);
    weir_pipeline_fire_read_complete(tc.pipeline);
    pass(&tc, 5);
    assert_events(&tc.events, "reader!");
    tc_close(&tc);
}

TEST(idle, starts_when_the_channel_becomes_active)
{
    struct event_log events;
    weir_address address;
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    event_log_open(&events);
    assert_int_equal(weir_address_parse("inproc:x", &address), 0);
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.connect_later = true), &embedded),
                     0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10))), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &listener, EVENT_RECORDER(&events, "")), 0);
    weir_embedded_advance(embedded, weir_ms(100));
    assert_events(&events, "");
    weir_channel_connect(weir_embedded_channel(embedded), &address, NULL, NULL);
    weir_embedded_advance(embedded, weir_ms(9));
    assert_events(&events, "");
    weir_embedded_advance(embedded, weir_ms(1));
    assert_events(&events, "reader!");
    weir_embedded_release(embedded);
    event_log_close(&events);
}

TEST(idle, ends_with_the_channel_and_with_the_handler)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "idle", NULL), 0);
    pass(&tc, 100);
    assert_events(&tc.events, "");
    tc_close(&tc);

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    pass(&tc, 100);
    assert_events(&tc.events, "");
    tc_close(&tc);
}

TEST(idle, continues_when_the_channel_is_registered_again)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    pass(&tc, 100);
    assert_events(&tc.events, "");
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_events(&tc.events, "reader!");
    tc_close(&tc);
}

TEST(idle, rejects_negative_limits_and_can_be_off)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = WEIR_OFF));
    assert_int_equal(weir_idle_add(tc.pipeline, WEIR_IDLE_OPTIONS(.reader_ns = -2)), -EINVAL);
    assert_int_equal(weir_idle_add(tc.pipeline, WEIR_IDLE_OPTIONS(.writer_ns = -2)), -EINVAL);
    assert_int_equal(weir_idle_add(tc.pipeline, WEIR_IDLE_OPTIONS(.both_ns = INT64_MIN)), -EINVAL);
    pass(&tc, 100000);
    assert_events(&tc.events, "");
    tc_close(&tc);
}

TEST(idle, limits_are_a_millisecond_at_least)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IDLE_OPTIONS(.reader_ns = 1));
    pass(&tc, 3);
    assert_events(&tc.events, "reader! reader reader");
    tc_close(&tc);
}

TEST(idle, options_can_be_made_by_hand)
{
    weir_idle_options options;
    struct test_channel tc;

    options = *WEIR_IDLE_OPTIONS();
    options.reader_ns = weir_ms(5);
    open_rig(&tc, &options);
    pass(&tc, 5);
    assert_events(&tc.events, "reader!");
    assert_int_equal(weir_idle_add(tc.pipeline, NULL), 0); /* all limits are off */
    tc_close(&tc);
}

TEST(idle, other_events_are_not_idle_events)
{
    weir_msg *other = text_msg("x");

    assert_null(weir_idle_event_of(other));
    weir_msg_release(other);
}

TEST(idle, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = NULL;
        bool failed;
        int err;

        assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
        test_memory_fail_at(n);
        err = weir_idle_add(weir_embedded_pipeline(embedded),
                            WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(1), .writer_ns = weir_ms(1)));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        weir_embedded_advance(embedded, weir_ms(3));
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
}
