/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flush consolidation: FlushConsolidationHandlerTest of Netty, and more. D "Others".
 */
#include <weir/flow_control.h>

#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

/* A rig whose spy "a" is nearer to the wire, and sees the flushes that pass. */
static void open_rig(struct rig *rig, const weir_flush_consolidation_options *options)
{
    rig_open_with(rig, &(const struct wire_options){.silent = true},
                  WEIR_CHANNEL_OPTIONS(.low_mark = 200, .high_mark = 300));
    rig_add(rig, "a");
    assert_int_equal(weir_flush_consolidation_add(rig->pipeline, options), 0);
    rig_start(rig);
    diary_clear(&rig->diary);
}

static void flush(struct rig *rig, unsigned times)
{
    while (times-- > 0)
        weir_channel_flush(rig->channel);
}

#define assert_flushes(rig, expected)                                      \
    do {                                                                   \
        assert_int_equal(diary_count(&(rig)->diary, "a.flush"), expected); \
        diary_clear(&(rig)->diary);                                        \
    } while (0)

TEST(flush_consolidation, lets_flushes_outside_reads_pass)
{
    struct rig rig;

    open_rig(&rig, NULL);
    flush(&rig, 3);
    assert_flushes(&rig, 3);
    rig_close(&rig);
}

TEST(flush_consolidation, makes_one_of_those_inside_a_read)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    flush(&rig, 2);
    rig_receive(&rig, "y");
    flush(&rig, 1);
    assert_flushes(&rig, 0);
    weir_pipeline_fire_read_complete(rig.pipeline);
    assert_flushes(&rig, 1);
    weir_pipeline_fire_read_complete(rig.pipeline);
    assert_flushes(&rig, 0); /* nothing waits */
    flush(&rig, 1);
    assert_flushes(&rig, 1);
    rig_close(&rig);
}

static void flush_when_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
    weir_fire_read_complete(ctx);
}

TEST(flush_consolidation, takes_what_is_flushed_in_read_complete)
{
    static const weir_handler flusher = {.name = "flusher", .read_complete = flush_when_complete};
    struct rig rig;

    open_rig(&rig, NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &flusher, NULL), 0);
    rig_receive(&rig, "x");
    flush(&rig, 1);
    weir_pipeline_fire_read_complete(rig.pipeline);
    assert_flushes(&rig, 1);
    rig_close(&rig);
}

TEST(flush_consolidation, waits_no_longer_than_the_limit)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    flush(&rig, 255);
    assert_flushes(&rig, 0);
    flush(&rig, 1);
    assert_flushes(&rig, 1);
    flush(&rig, 256);
    assert_flushes(&rig, 1);
    weir_pipeline_fire_read_complete(rig.pipeline);
    assert_flushes(&rig, 0);
    rig_close(&rig);

    open_rig(&rig, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.limit = 3));
    rig_receive(&rig, "x");
    flush(&rig, 7);
    assert_flushes(&rig, 2);
    rig_close(&rig);
}

TEST(flush_consolidation, always_waits_for_the_end_of_the_turn)
{
    struct rig rig;

    open_rig(&rig, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));
    flush(&rig, 10);
    assert_flushes(&rig, 0);
    rig_run(&rig);
    assert_flushes(&rig, 1);
    flush(&rig, 256); /* at once, and then nothing is left to do */
    assert_flushes(&rig, 1);
    rig_run(&rig);
    assert_flushes(&rig, 0);
    rig_close(&rig);
}

TEST(flush_consolidation, a_turn_that_ends_inside_a_read_leaves_it_to_the_read)
{
    struct rig rig;

    open_rig(&rig, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));
    flush(&rig, 1);
    rig_receive(&rig, "x");
    rig_run(&rig);
    assert_flushes(&rig, 0);
    weir_pipeline_fire_read_complete(rig.pipeline);
    assert_flushes(&rig, 1);
    rig_close(&rig);
}

TEST(flush_consolidation, flushes_before_a_half_closure)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    weir_channel_write(rig.channel, text_msg("last words"), NULL);
    flush(&rig, 1);
    diary_clear(&rig.diary);
    weir_channel_shutdown_output(rig.channel, NULL);
    assert_int_equal(diary_count(&rig.diary, "a.flush"), 1);
    assert_diary(&rig.diary, "a.flush a.shutdown_output a.event(output-closed)");
    assert_sent(&rig, "last words");
    rig_close(&rig);
}

TEST(flush_consolidation, flushes_before_a_close)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    weir_channel_write(rig.channel, text_msg("last words"), NULL);
    flush(&rig, 1);
    diary_clear(&rig.diary);
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.flush a.close");
    assert_sent(&rig, "last words");
    rig_close(&rig);

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    flush(&rig, 1);
    diary_clear(&rig.diary);
    weir_channel_disconnect(rig.channel, NULL);
    assert_int_equal(diary_count(&rig.diary, "a.flush"), 1);
    rig_close(&rig);
}

TEST(flush_consolidation, flushes_when_an_error_passes)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    flush(&rig, 1);
    diary_clear(&rig.diary);
    weir_pipeline_fire_error(rig.pipeline, -EIO, NULL);
    assert_int_equal(diary_count(&rig.diary, "a.flush"), 1);
    rig_close(&rig);
}

TEST(flush_consolidation, flushes_when_the_channel_becomes_unwritable)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    weir_channel_write(rig.channel, text_msg("x"), NULL);
    flush(&rig, 1);
    assert_flushes(&rig, 0);
    weir_channel_write(rig.channel, sized_msg(300), NULL);
    assert_int_equal(diary_count(&rig.diary, "a.flush"), 1);
    rig_close(&rig);
}

TEST(flush_consolidation, that_is_removed_flushes_what_waits)
{
    struct rig rig;

    open_rig(&rig, NULL);
    rig_receive(&rig, "x");
    flush(&rig, 1);
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "flush-consolidation", NULL), 0);
    assert_flushes(&rig, 1);
    rig_close(&rig);
}

TEST(flush_consolidation, goes_on_when_the_channel_is_registered_again)
{
    struct rig rig;

    open_rig(&rig, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.always = true));
    weir_channel_write(rig.channel, text_msg("x"), NULL);
    flush(&rig, 1);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    weir_channel_register(rig.channel, rig.stepper.executor, NULL);
    rig_run(&rig);
    assert_sent(&rig, "x");
    rig_close(&rig);
}

TEST(flush_consolidation, refuses_negative_limits)
{
    weir_flush_consolidation_options options;
    struct rig rig;

    options = *WEIR_FLUSH_CONSOLIDATION_OPTIONS();
    open_rig(&rig, &options);
    options.limit = -1;
    assert_int_equal(weir_flush_consolidation_add(rig.pipeline, &options), -EINVAL);
    rig_close(&rig);
}

TEST(flush_consolidation, needs_memory_only_to_be_added)
{
    struct rig rig;

    rig_open_with(&rig, NULL, NULL);
    test_memory_fail_at(1);
    assert_int_equal(weir_flush_consolidation_add(rig.pipeline, NULL), -ENOMEM);
    test_memory_fail_at(0);
    rig_close(&rig);
}
