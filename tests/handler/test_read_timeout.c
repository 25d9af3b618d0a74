/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/timeouts.h>

#include <errno.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static void open_rig(struct rig *rig, const weir_read_timeout_options *options,
                     const weir_channel_options *channel)
{
    rig_open_with(rig, &(const struct wire_options){.silent = true}, channel);
    assert_int_equal(weir_read_timeout_add(rig->pipeline, options), 0);
    rig_add(rig, "a");
    rig_start(rig);
    diary_clear(&rig->diary);
}

static void receive(struct rig *rig)
{
    rig_receive(rig, "x");
    weir_pipeline_fire_read_complete(rig->pipeline);
    diary_clear(&rig->diary);
}

TEST(read_timeout, is_an_error_and_then_a_close)
{
    struct rig rig;

    open_rig(&rig, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)), NULL);
    stepper_advance(&rig.stepper, weir_ms(9));
    receive(&rig);
    stepper_advance(&rig.stepper, weir_ms(9));
    assert_diary(&rig.diary, "");
    stepper_advance(&rig.stepper, weir_ms(1));
    assert_int_equal(diary_count(&rig.diary, "a.error(ETIMEDOUT"), 1);
    rig_end_input(&rig);
    assert_false(weir_channel_is_open(rig.channel));
    stepper_advance(&rig.stepper, weir_ms(100));
    assert_int_equal(diary_count(&rig.diary, "a.error"), 1);
    rig_close(&rig);
}

TEST(read_timeout, closes_once_even_if_errors_close_nothing)
{
    struct rig rig;

    open_rig(&rig, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)),
             WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true, .close_timeout_ns = weir_ms(1000)));
    stepper_advance(&rig.stepper, weir_ms(10));
    rig_receive(&rig, "late"); /* while it waits for the peer's end: nobody hears it */
    stepper_advance(&rig.stepper, weir_ms(100));
    assert_int_equal(diary_count(&rig.diary, "a.error"), 1);
    assert_int_equal(diary_count(&rig.diary, "a.read"), 0);
    stepper_advance(&rig.stepper, weir_ms(1000));
    assert_int_equal(diary_count(&rig.diary, "a.inactive"), 1);
    assert_false(weir_channel_is_open(rig.channel));
    rig_close(&rig);
}

TEST(read_timeout, defaults_to_half_a_minute_and_can_be_off)
{
    weir_read_timeout_options options;
    struct rig rig;

    options = *WEIR_READ_TIMEOUT_OPTIONS();
    open_rig(&rig, &options, NULL);
    stepper_advance(&rig.stepper, weir_seconds(29));
    assert_diary(&rig.diary, "");
    stepper_advance(&rig.stepper, weir_seconds(1));
    assert_int_equal(diary_count(&rig.diary, "a.error"), 1);
    rig_close(&rig);

    open_rig(&rig, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = WEIR_OFF), NULL);
    stepper_advance(&rig.stepper, weir_seconds(1000));
    assert_diary(&rig.diary, "");
    assert_int_equal(
        weir_read_timeout_add(rig.pipeline, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = -2)), -EINVAL);
    rig_close(&rig);
}

static void remove_it(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    assert_string_equal(detail, "nothing was read for 10 ms");
    assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "read-timeout", NULL), 0);
}

/* Who hears the error may decide that the channel goes on. */
TEST(read_timeout, that_is_removed_by_who_hears_of_it_does_not_close)
{
    static const weir_handler remover = {.name = "remover", .error = remove_it};
    struct rig rig;

    open_rig(&rig, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)), NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &remover, NULL), 0);
    stepper_advance(&rig.stepper, weir_ms(50));
    assert_true(weir_channel_is_open(rig.channel));
    assert_int_equal(diary_count(&rig.diary, "a.error"), 1);
    rig_close(&rig);
}

TEST(read_timeout, survives_every_lack_of_memory)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct rig rig;
        int err;

        rig_open_with(&rig, NULL, NULL);
        test_memory_fail_at(n);
        err = weir_read_timeout_add(rig.pipeline, NULL);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        rig_start(&rig);
        stepper_advance(&rig.stepper, weir_seconds(30));
        rig_close(&rig);
    }
}
