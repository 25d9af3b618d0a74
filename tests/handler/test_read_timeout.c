/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/timeouts.h>

#include <errno.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static void open_rig(struct test_channel *tc, const weir_read_timeout_options *options,
                     const weir_channel_options *channel)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true}, channel);
    assert_int_equal(weir_read_timeout_add(tc->pipeline, options), 0);
    tc_add(tc, "a");
    tc_start(tc);
    event_log_clear(&tc->events);
}

static void receive(struct test_channel *tc)
{
    tc_receive(tc, "x");
    weir_pipeline_fire_read_complete(tc->pipeline);
    event_log_clear(&tc->events);
}

TEST(read_timeout, fires_an_error_and_closes)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)), NULL);
    stepper_advance(&tc.stepper, weir_ms(9));
    receive(&tc);
    stepper_advance(&tc.stepper, weir_ms(9));
    assert_events(&tc.events, "");
    stepper_advance(&tc.stepper, weir_ms(1));
    assert_int_equal(event_log_count(&tc.events, "a.error(ETIMEDOUT"), 1);
    tc_end_input(&tc);
    assert_false(weir_channel_is_open(tc.channel));
    stepper_advance(&tc.stepper, weir_ms(100));
    assert_int_equal(event_log_count(&tc.events, "a.error"), 1);
    tc_close(&tc);
}

TEST(read_timeout, closes_once_even_if_errors_close_nothing)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)),
             WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true, .close_timeout_ns = weir_ms(1000)));
    stepper_advance(&tc.stepper, weir_ms(10));
    tc_receive(&tc, "late"); /* not visible while the channel waits for the peer's end of stream */
    stepper_advance(&tc.stepper, weir_ms(100));
    assert_int_equal(event_log_count(&tc.events, "a.error"), 1);
    assert_int_equal(event_log_count(&tc.events, "a.read"), 0);
    stepper_advance(&tc.stepper, weir_ms(1000));
    assert_int_equal(event_log_count(&tc.events, "a.inactive"), 1);
    assert_false(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

TEST(read_timeout, defaults_to_half_a_minute_and_can_be_off)
{
    weir_read_timeout_options options;
    struct test_channel tc;

    options = *WEIR_READ_TIMEOUT_OPTIONS();
    open_rig(&tc, &options, NULL);
    stepper_advance(&tc.stepper, weir_seconds(29));
    assert_events(&tc.events, "");
    stepper_advance(&tc.stepper, weir_seconds(1));
    assert_int_equal(event_log_count(&tc.events, "a.error"), 1);
    tc_close(&tc);

    open_rig(&tc, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = WEIR_OFF), NULL);
    stepper_advance(&tc.stepper, weir_seconds(1000));
    assert_events(&tc.events, "");
    assert_int_equal(
        weir_read_timeout_add(tc.pipeline, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = -2)), -EINVAL);
    tc_close(&tc);
}

static void remove_it(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    assert_string_equal(detail, "nothing read for 10 ms");
    assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "read-timeout", NULL), 0);
}

/* An error handler may decide to keep the channel open. */
TEST(read_timeout, does_not_close_if_an_error_handler_removes_it)
{
    static const weir_handler remover = {.name = "remover", .error = remove_it};
    struct test_channel tc;

    open_rig(&tc, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)), NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &remover, NULL), 0);
    stepper_advance(&tc.stepper, weir_ms(50));
    assert_true(weir_channel_is_open(tc.channel));
    assert_int_equal(event_log_count(&tc.events, "a.error"), 1);
    tc_close(&tc);
}

TEST(read_timeout, survives_allocation_failures)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct test_channel tc;
        int err;

        tc_open_with(&tc, NULL, NULL);
        test_memory_fail_at(n);
        err = weir_read_timeout_add(tc.pipeline, NULL);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        tc_start(&tc);
        stepper_advance(&tc.stepper, weir_seconds(30));
        tc_close(&tc);
    }
}
