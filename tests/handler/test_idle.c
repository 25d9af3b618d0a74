/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle handler: IdleStateHandlerTest of Netty, and more. D "Others".
 */
#include <weir/timeouts.h>

#include <errno.h>

#include <weir/embedded.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

/* Writes "reader", or "reader!" if it is the first. */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    static const char *const kinds[] = {"reader", "writer", "both"};
    const weir_idle_event *idle = weir_idle_event_of(event);
    struct spy *self = weir_ctx_state(ctx);

    if (idle != NULL)
        diary_write(self->diary, "%s%s", kinds[weir_idle_event_kind(idle)],
                    weir_idle_event_is_first(idle) ? "!" : "");
    weir_msg_release(event);
}

static int init_listener(void *state, const void *options)
{
    *(struct spy *)state = *(const struct spy *)options;
    return 0;
}

static const weir_handler listener = {
    .name = "listener",
    .state_size = sizeof(struct spy),
    .init = init_listener,
    .event = on_event,
};

static void open_rig(struct rig *rig, const weir_idle_options *options)
{
    rig_open_with(rig, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_idle_add(rig->pipeline, options), 0);
    assert_int_equal(weir_pipeline_add_last(rig->pipeline, &listener, SPY(&rig->diary, "")), 0);
    rig_start(rig);
    diary_clear(&rig->diary);
}

static void pass(struct rig *rig, int64_t ms)
{
    while (ms-- > 0)
        stepper_advance(&rig->stepper, weir_ms(1));
}

static void receive(struct rig *rig)
{
    rig_receive(rig, "x");
    weir_pipeline_fire_read_complete(rig->pipeline);
}

static void transmit(struct rig *rig, const char *text)
{
    weir_channel_write_and_flush(rig->channel, text_msg(text), NULL);
    rig_run(rig);
}

TEST(idle, reader_is_told_again_and_again_until_something_is_read)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "reader!");
    pass(&rig, 10);
    assert_diary(&rig.diary, "reader");
    transmit(&rig, "x"); /* is nothing to a reader */
    pass(&rig, 5);
    receive(&rig);
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "reader!");
    rig_close(&rig);
}

TEST(idle, writer_is_told_until_something_is_sent)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10)));
    receive(&rig); /* is nothing to a writer */
    pass(&rig, 10);
    assert_diary(&rig.diary, "writer!");
    transmit(&rig, "x");
    pass(&rig, 10); /* counts from the event, for the timer, and from the write */
    assert_diary(&rig.diary, "writer!");
    pass(&rig, 5);
    transmit(&rig, "x");
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "writer!");
    pass(&rig, 10);
    assert_diary(&rig.diary, "writer");
    rig_close(&rig);
}

TEST(idle, both_is_told_if_neither_happens)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.both_ns = weir_ms(10)));
    pass(&rig, 6);
    receive(&rig);
    pass(&rig, 6);
    transmit(&rig, "x");
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "both!");
    pass(&rig, 10);
    assert_diary(&rig.diary, "both");
    receive(&rig);
    pass(&rig, 10);
    assert_diary(&rig.diary, "both!");
    rig_close(&rig);
}

TEST(idle, limits_run_side_by_side)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(30), .writer_ns = weir_ms(20),
                                     .both_ns = weir_ms(50)));
    pass(&rig, 29);
    assert_diary(&rig.diary, "writer!");
    pass(&rig, 31);
    assert_diary(&rig.diary, "reader! writer both! reader writer");
    rig_close(&rig);
}

/* A write counts when it is sent, not when it is written. */
TEST(idle, what_waits_for_room_is_idle)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10)));
    rig.wire->room = 0;
    pass(&rig, 5);
    transmit(&rig, "abc");
    pass(&rig, 5);
    assert_diary(&rig.diary, "writer!");
    pass(&rig, 5);
    rig_make_room(&rig, 3);
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "writer!");
    rig_close(&rig);
}

TEST(idle, observing_the_output_sees_slow_progress)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10), .observe_output = true));
    rig.wire->room = 0;
    transmit(&rig, "abc");
    for (int i = 0; i < 3; i++) {
        pass(&rig, 9);
        rig_make_room(&rig, 1);
    }
    assert_diary(&rig.diary, "");
    pass(&rig, 10);
    assert_diary(&rig.diary, "writer!");
    rig_close(&rig);
}

TEST(idle, without_observing_it_only_whole_messages_count)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.writer_ns = weir_ms(10)));
    rig.wire->room = 0;
    transmit(&rig, "abc");
    for (int i = 0; i < 3; i++) {
        pass(&rig, 8);
        rig_make_room(&rig, 1);
    }
    assert_diary(&rig.diary, "writer! writer");
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "writer!");
    rig_close(&rig);
}

TEST(idle, nothing_is_idle_in_the_middle_of_a_read)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10), .both_ns = weir_ms(10)));
    rig_receive(&rig, "x");
    pass(&rig, 35);
    assert_diary(&rig.diary, "");
    weir_pipeline_fire_read_complete(rig.pipeline);
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "reader! both!");
    rig_close(&rig);
}

TEST(idle, a_read_complete_without_a_read_is_no_read)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    pass(&rig, 5);
    weir_pipeline_fire_read_complete(rig.pipeline);
    pass(&rig, 5);
    assert_diary(&rig.diary, "reader!");
    rig_close(&rig);
}

TEST(idle, begins_when_the_channel_becomes_active)
{
    struct diary diary;
    weir_address address;
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    diary_open(&diary);
    assert_int_equal(weir_address_parse("inproc:x", &address), 0);
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.not_active = true), &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10))), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &listener, SPY(&diary, "")), 0);
    weir_embedded_advance(embedded, weir_ms(100));
    assert_diary(&diary, "");
    weir_channel_connect(weir_embedded_channel(embedded), &address, NULL, NULL);
    weir_embedded_advance(embedded, weir_ms(9));
    assert_diary(&diary, "");
    weir_embedded_advance(embedded, weir_ms(1));
    assert_diary(&diary, "reader!");
    weir_embedded_release(embedded);
    diary_close(&diary);
}

TEST(idle, ends_with_the_channel_and_with_the_handler)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "idle", NULL), 0);
    pass(&rig, 100);
    assert_diary(&rig.diary, "");
    rig_close(&rig);

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    pass(&rig, 100);
    assert_diary(&rig.diary, "");
    rig_close(&rig);
}

TEST(idle, goes_on_when_the_channel_is_registered_again)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = weir_ms(10)));
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    pass(&rig, 100);
    assert_diary(&rig.diary, "");
    weir_channel_register(rig.channel, rig.stepper.executor, NULL);
    rig_run(&rig);
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_diary(&rig.diary, "reader!");
    rig_close(&rig);
}

TEST(idle, refuses_negative_limits_and_can_be_off)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = WEIR_OFF));
    assert_int_equal(weir_idle_add(rig.pipeline, WEIR_IDLE_OPTIONS(.reader_ns = -2)), -EINVAL);
    assert_int_equal(weir_idle_add(rig.pipeline, WEIR_IDLE_OPTIONS(.writer_ns = -2)), -EINVAL);
    assert_int_equal(weir_idle_add(rig.pipeline, WEIR_IDLE_OPTIONS(.both_ns = INT64_MIN)), -EINVAL);
    pass(&rig, 100000);
    assert_diary(&rig.diary, "");
    rig_close(&rig);
}

TEST(idle, limits_are_a_millisecond_at_least)
{
    struct rig rig;

    open_rig(&rig, WEIR_IDLE_OPTIONS(.reader_ns = 1));
    pass(&rig, 3);
    assert_diary(&rig.diary, "reader! reader reader");
    rig_close(&rig);
}

TEST(idle, options_can_be_made_by_hand)
{
    weir_idle_options options;
    struct rig rig;

    options = *WEIR_IDLE_OPTIONS();
    options.reader_ns = weir_ms(5);
    open_rig(&rig, &options);
    pass(&rig, 5);
    assert_diary(&rig.diary, "reader!");
    assert_int_equal(weir_idle_add(rig.pipeline, NULL), 0); /* watches nothing */
    rig_close(&rig);
}

TEST(idle, events_of_others_are_not_its_own)
{
    weir_msg *other = text_msg("x");

    assert_null(weir_idle_event_of(other));
    weir_msg_release(other);
}

TEST(idle, survives_every_lack_of_memory)
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
