/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/timeouts.h>

#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static void open_rig(struct test_channel *tc, const weir_write_timeout_options *options)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_write_timeout_add(tc->pipeline, options), 0);
    tc_add(tc, "a");
    tc_start(tc);
    tc->wire->room = 0;
    event_log_clear(&tc->events);
}

static void transmit(struct test_channel *tc, const char *text, const char *name)
{
    weir_promise *promise = name != NULL ? tc_promise(tc, name) : NULL;

    weir_channel_write_and_flush(tc->channel, text_msg(text), promise);
    weir_promise_release(promise);
    tc_run(tc);
    event_log_clear(&tc->events);
}

static void pass(struct test_channel *tc, int64_t ms)
{
    stepper_advance(&tc->stepper, weir_ms(ms));
}

TEST(write_timeout, fires_an_error_and_aborts)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    transmit(&tc, "x", "one");
    pass(&tc, 5);
    transmit(&tc, "y", "two");
    pass(&tc, 4);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_int_equal(event_log_count(&tc.events, "a.error(ETIMEDOUT"), 1);
    assert_int_equal(event_log_count(&tc.events, "one=WEIR_ECLOSED"), 1);
    assert_int_equal(event_log_count(&tc.events, "two=WEIR_ECLOSED"), 1);
    assert_false(weir_channel_is_open(tc.channel));
    pass(&tc, 100);
    assert_int_equal(event_log_count(&tc.events, "a.error"), 1);
    tc_close(&tc);
}

TEST(write_timeout, counts_each_write_from_its_beginning)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    for (int i = 0; i < 10; i++) { /* each is sent 8 ms after it was written */
        transmit(&tc, "x", "w");
        pass(&tc, 8);
        tc_make_room(&tc, 1);
        assert_events(&tc.events, "w=ok");
    }
    pass(&tc, 1000);
    transmit(&tc, "x", NULL);
    pass(&tc, 9);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_int_equal(event_log_count(&tc.events, "a.error(ETIMEDOUT"), 1);
    tc_close(&tc);
}

/* A write that is never flushed is not sent. */
TEST(write_timeout, covers_writes_that_are_not_flushed)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    tc_write(&tc, "x", "one");
    pass(&tc, 10);
    assert_int_equal(event_log_count(&tc.events, "a.error(ETIMEDOUT"), 1);
    tc_close(&tc);
}

TEST(write_timeout, covers_promises_of_other_executors)
{
    weir_promise *promise = NULL;
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    weir_channel_write_and_flush(tc.channel, text_msg("x"), promise);
    tc_run(&tc);
    pass(&tc, 5);
    tc_make_room(&tc, 1);
    assert_int_equal(weir_promise_result(promise), 0);
    pass(&tc, 50);
    assert_int_equal(event_log_count(&tc.events, "a.error"), 0);
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(write_timeout, reports_failures_of_writes_without_a_promise)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    tc.wire->options.admit_err = -EMSGSIZE;
    transmit(&tc, "x", NULL);
    tc_close(&tc);

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    tc.wire->options.admit_err = -EMSGSIZE;
    weir_channel_write(tc.channel, text_msg("x"), NULL);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a.error(EMSGSIZE"), 1);
    tc_close(&tc);
}

TEST(write_timeout, leaves_writes_alone_when_removed)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    transmit(&tc, "x", "one");
    transmit(&tc, "y", NULL);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "write-timeout", NULL), 0);
    pass(&tc, 100);
    assert_events(&tc.events, "");
    tc_make_room(&tc, 2);
    assert_events(&tc.events, "one=ok");
    tc_close(&tc);
}

TEST(write_timeout, continues_when_the_channel_is_registered_again)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    transmit(&tc, "x", NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    pass(&tc, 5);
    event_log_clear(&tc.events);
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    pass(&tc, 4);
    assert_int_equal(event_log_count(&tc.events, "a.error"), 0);
    pass(&tc, 1);
    assert_int_equal(event_log_count(&tc.events, "a.error(ETIMEDOUT"), 1);
    tc_close(&tc);
}

TEST(write_timeout, ignores_cancelled_writes)
{
    weir_promise *promise;
    struct test_channel tc;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    promise = tc_promise(&tc, "one");
    weir_channel_write(tc.channel, text_msg("x"), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
    tc_run(&tc);
    event_log_clear(&tc.events);
    pass(&tc, 100);
    assert_events(&tc.events, "");
    tc_close(&tc);
}

TEST(write_timeout, supports_writes_before_registration)
{
    weir_promise *promise;
    struct test_channel tc;

    tc_open_with(&tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(
        weir_write_timeout_add(tc.pipeline, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10))),
        0);
    promise = tc_promise(&tc, "one");
    weir_channel_write(tc.channel, text_msg("x"), promise);
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(write_timeout, defaults_to_half_a_minute_and_can_be_off)
{
    weir_write_timeout_options options;
    struct test_channel tc;

    options = *WEIR_WRITE_TIMEOUT_OPTIONS();
    open_rig(&tc, &options);
    transmit(&tc, "x", NULL);
    pass(&tc, 29999);
    assert_events(&tc.events, "");
    pass(&tc, 1);
    assert_int_equal(event_log_count(&tc.events, "a.error"), 1);
    tc_close(&tc);

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = WEIR_OFF));
    transmit(&tc, "x", NULL);
    pass(&tc, 1000000);
    assert_events(&tc.events, "");
    assert_int_equal(
        weir_write_timeout_add(tc.pipeline, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = -2)), -EINVAL);
    tc_close(&tc);
}

/* Three writes and one that times out, with each allocation failing in turn. */
static bool write_without(unsigned n)
{
    struct test_channel tc;
    weir_promise *promise;
    weir_msg *msgs[3];
    bool failed;

    open_rig(&tc, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    for (int i = 0; i < 3; i++)
        msgs[i] = text_msg("x");
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    test_memory_fail_at(n);
    weir_channel_write(tc.channel, msgs[0], NULL);
    weir_channel_write(tc.channel, msgs[1], promise);
    weir_channel_write_and_flush(tc.channel, msgs[2], NULL);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    tc_run(&tc);
    pass(&tc, 10);
    assert_true(weir_promise_is_done(promise));
    weir_promise_release(promise);
    tc_close(&tc);
    return failed;
}

TEST(write_timeout, survives_allocation_failures)
{
    for (unsigned n = 1; write_without(n); n++)
        ;
}
