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

TEST(flush_consolidation, passes_flushes_outside_reads)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    flush(&tc, 3);
    assert_flushes(&tc, 3);
    tc_close(&tc);
}

TEST(flush_consolidation, merges_flushes_inside_a_read)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    tc_receive(&tc, "x");
    flush(&tc, 2);
    tc_receive(&tc, "y");
    flush(&tc, 1);
    assert_flushes(&tc, 0);
    weir_pipeline_fire_read_complete(tc.pipeline);
    assert_flushes(&tc, 1);
    weir_pipeline_fire_read_complete(tc.pipeline);
    assert_flushes(&tc, 0); /* no flush waits */
    flush(&tc, 1);
    assert_flushes(&tc, 1);
    tc_close(&tc);
}

static void flush_when_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
    weir_fire_read_complete(ctx);
}

TEST(flush_consolidation, merges_flushes_of_read_complete)
{
    static const weir_handler flusher = {.name = "flusher", .read_complete = flush_when_complete};
    struct test_channel tc;

    open_rig(&tc, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &flusher, NULL), 0);
    tc_receive(&tc, "x");
    flush(&tc, 1);
    weir_pipeline_fire_read_complete(tc.pipeline);
    assert_flushes(&tc, 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_at_max_flushes)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    tc_receive(&tc, "x");
    flush(&tc, 255);
    assert_flushes(&tc, 0);
    flush(&tc, 1);
    assert_flushes(&tc, 1);
    flush(&tc, 256);
    assert_flushes(&tc, 1);
    weir_pipeline_fire_read_complete(tc.pipeline);
    assert_flushes(&tc, 0);
    tc_close(&tc);

    open_rig(&tc, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.max_flushes = 3));
    tc_receive(&tc, "x");
    flush(&tc, 7);
    assert_flushes(&tc, 2);
    tc_close(&tc);
}

TEST(flush_consolidation, always_waits_for_the_end_of_the_turn)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));
    flush(&tc, 10);
    assert_flushes(&tc, 0);
    tc_run(&tc);
    assert_flushes(&tc, 1);
    flush(&tc, 256); /* at once, and nothing is left to do */
    assert_flushes(&tc, 1);
    tc_run(&tc);
    assert_flushes(&tc, 0);
    tc_close(&tc);
}

TEST(flush_consolidation, a_turn_that_ends_inside_a_read_does_not_flush)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));
    flush(&tc, 1);
    tc_receive(&tc, "x");
    tc_run(&tc);
    assert_flushes(&tc, 0);
    weir_pipeline_fire_read_complete(tc.pipeline);
    assert_flushes(&tc, 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_before_a_half_closure)
{
    struct test_channel tc;

    open_rig(&tc, NULL);
    tc_receive(&tc, "x");
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
    tc_receive(&tc, "x");
    weir_channel_write(tc.channel, text_msg("last words"), NULL);
    flush(&tc, 1);
    event_log_clear(&tc.events);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.flush a.close");
    assert_sent(&tc, "last words");
    tc_close(&tc);

    open_rig(&tc, NULL);
    tc_receive(&tc, "x");
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
    tc_receive(&tc, "x");
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
    tc_receive(&tc, "x");
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
    tc_receive(&tc, "x");
    flush(&tc, 1);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "flush-consolidation", NULL), 0);
    assert_flushes(&tc, 1);
    tc_close(&tc);
}

TEST(flush_consolidation, flushes_when_the_channel_is_registered_again)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));
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
