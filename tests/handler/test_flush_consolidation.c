/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flush consolidation: Netty's FlushConsolidationHandlerTest, and more.
 */
#include <weir/flow_control.h>

#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

/* A test channel whose recorder "a" is nearer to the head, and sees the flushes that pass. */
static void open_rig(struct test_channel *tc, const weir_flush_consolidation_options *options)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.low_mark = 200, .high_mark = 300));
    tc_add(tc, "a");
    assert_int_equal(weir_flush_consolidation_add(tc->pipeline, options), 0);
    tc_start(tc);
    event_log_clear(&tc->events);
}

static void flush(struct test_channel *tc, unsigned times)
{
    while (times-- > 0)
        weir_channel_flush(tc->channel);
}

#define assert_flushes(tc, expected)                                           \
    do {                                                                       \
        assert_int_equal(event_log_count(&(tc)->events, "a.flush"), expected); \
        event_log_clear(&(tc)->events);                                        \
    } while (0)

TEST(flush_consolidation, merges_flushes_until_the_end_of_the_turn)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    flush(&tc, 10);
    assert_flushes(&tc, 0);
    tc_run(&tc);
    assert_flushes(&tc, 1);
    tc_run(&tc);
    assert_flushes(&tc, 0); /* no flush waits */
    tc_close(&tc);
}

/* The end of a batch comes before that of the turn, and the channel waits for it itself. */
TEST(flush_consolidation, leaves_flushes_inside_a_read_to_the_channel)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    flush(&tc, 1);
    tc_receive(&tc, "x");
    weir_channel_write(tc.channel, text_msg("y"), NULL);
    flush(&tc, 2);
    assert_flushes(&tc, 2); /* the first of them includes the one that waited */
    assert_sent(&tc, "");
    weir__channel_read_complete(tc.channel);
    assert_sent(&tc, "y");
    tc_run(&tc);
    assert_flushes(&tc, 0);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_at_max_flushes)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    flush(&tc, 255);
    assert_flushes(&tc, 0);
    flush(&tc, 1);
    assert_flushes(&tc, 1);
    flush(&tc, 256);
    assert_flushes(&tc, 1);
    tc_run(&tc);
    assert_flushes(&tc, 0);
    tc_close(&tc);

    open_rig(&tc, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.max_flushes = 3));
    flush(&tc, 7);
    assert_flushes(&tc, 2);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_before_a_half_closure)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    weir_channel_write(tc.channel, text_msg("last words"), NULL);
    flush(&tc, 1);
    event_log_clear(&tc.events);
    weir_channel_shutdown_output(tc.channel, NULL);
    assert_int_equal(event_log_count(&tc.events, "a.flush"), 1);
    assert_events(&tc.events, "a.flush a.shutdown_output a.event(output-closed)");
    assert_sent(&tc, "last words");
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_before_a_close)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    weir_channel_write(tc.channel, text_msg("last words"), NULL);
    flush(&tc, 1);
    event_log_clear(&tc.events);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.flush a.close");
    assert_sent(&tc, "last words");
    tc_close(&tc);

    open_rig(&tc, NULL);
    flush(&tc, 1);
    event_log_clear(&tc.events);
    weir_channel_disconnect(tc.channel, NULL);
    assert_int_equal(event_log_count(&tc.events, "a.flush"), 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_when_an_error_passes)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    flush(&tc, 1);
    event_log_clear(&tc.events);
    weir_pipeline_fire_error(tc.pipeline, -EIO, NULL);
    assert_int_equal(event_log_count(&tc.events, "a.flush"), 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_when_the_channel_becomes_unwritable)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    weir_channel_write(tc.channel, text_msg("x"), NULL);
    flush(&tc, 1);
    assert_flushes(&tc, 0);
    weir_channel_write(tc.channel, sized_msg(300), NULL);
    assert_int_equal(event_log_count(&tc.events, "a.flush"), 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_when_removed)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    flush(&tc, 1);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "flush-consolidation", NULL), 0);
    assert_flushes(&tc, 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_when_the_channel_is_registered_again)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    weir_channel_write(tc.channel, text_msg("x"), NULL);
    flush(&tc, 1);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    assert_sent(&tc, "x");
    tc_close(&tc);
}

TEST(flush_consolidation, rejects_a_negative_limit)
{
    weir_flush_consolidation_options options;
    struct test_channel tc;

    options = *WEIR_FLUSH_CONSOLIDATION_OPTIONS();
    open_rig(&tc, &options);
    options.max_flushes = -1;
    assert_int_equal(weir_flush_consolidation_add(tc.pipeline, &options), -EINVAL);
    tc_close(&tc);
}

TEST(flush_consolidation, needs_memory_only_to_be_added)
{
    struct test_channel tc;

    tc_open_with(&tc, NULL, NULL);
    test_memory_fail_at(1);
    assert_int_equal(weir_flush_consolidation_add(tc.pipeline, NULL), -ENOMEM);
    test_memory_fail_at(0);
    tc_close(&tc);
}
