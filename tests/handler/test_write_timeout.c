/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/timeouts.h>

#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static void open_rig(struct rig *rig, const weir_write_timeout_options *options)
{
    rig_open_with(rig, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_write_timeout_add(rig->pipeline, options), 0);
    rig_add(rig, "a");
    rig_start(rig);
    rig->wire->room = 0;
    diary_clear(&rig->diary);
}

static void transmit(struct rig *rig, const char *text, const char *name)
{
    weir_promise *promise = name != NULL ? rig_promise(rig, name) : NULL;

    weir_channel_write_and_flush(rig->channel, text_msg(text), promise);
    weir_promise_release(promise);
    rig_run(rig);
    diary_clear(&rig->diary);
}

static void pass(struct rig *rig, int64_t ms)
{
    stepper_advance(&rig->stepper, weir_ms(ms));
}

TEST(write_timeout, is_an_error_and_aborts)
{
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    transmit(&rig, "x", "one");
    pass(&rig, 5);
    transmit(&rig, "y", "two");
    pass(&rig, 4);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_int_equal(diary_count(&rig.diary, "a.error(ETIMEDOUT"), 1);
    assert_int_equal(diary_count(&rig.diary, "one=WEIR_ECLOSED"), 1);
    assert_int_equal(diary_count(&rig.diary, "two=WEIR_ECLOSED"), 1);
    assert_false(weir_channel_is_open(rig.channel));
    pass(&rig, 100);
    assert_int_equal(diary_count(&rig.diary, "a.error"), 1);
    rig_close(&rig);
}

TEST(write_timeout, counts_each_write_from_its_beginning)
{
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    for (int i = 0; i < 10; i++) { /* each is sent 8 ms after it was written */
        transmit(&rig, "x", "w");
        pass(&rig, 8);
        rig_make_room(&rig, 1);
        assert_diary(&rig.diary, "w=ok");
    }
    pass(&rig, 1000);
    transmit(&rig, "x", NULL);
    pass(&rig, 9);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_int_equal(diary_count(&rig.diary, "a.error(ETIMEDOUT"), 1);
    rig_close(&rig);
}

/* What is written and never flushed is not sent. */
TEST(write_timeout, counts_what_waits_for_a_flush)
{
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    rig_write(&rig, "x", "one");
    pass(&rig, 10);
    assert_int_equal(diary_count(&rig.diary, "a.error(ETIMEDOUT"), 1);
    rig_close(&rig);
}

TEST(write_timeout, sees_writes_whose_promises_are_of_other_executors)
{
    weir_promise *promise = NULL;
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    weir_channel_write_and_flush(rig.channel, text_msg("x"), promise);
    rig_run(&rig);
    pass(&rig, 5);
    rig_make_room(&rig, 1);
    assert_int_equal(weir_promise_result(promise), 0);
    pass(&rig, 50);
    assert_int_equal(diary_count(&rig.diary, "a.error"), 0);
    weir_promise_release(promise);
    rig_close(&rig);
}

TEST(write_timeout, a_write_that_nobody_waits_for_fails_as_ever)
{
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    rig.wire->options.admit_err = -EMSGSIZE;
    transmit(&rig, "x", NULL);
    rig_close(&rig);

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    rig.wire->options.admit_err = -EMSGSIZE;
    weir_channel_write(rig.channel, text_msg("x"), NULL);
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "a.error(EMSGSIZE"), 1);
    rig_close(&rig);
}

TEST(write_timeout, that_is_removed_leaves_its_writes_alone)
{
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    transmit(&rig, "x", "one");
    transmit(&rig, "y", NULL);
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "write-timeout", NULL), 0);
    pass(&rig, 100);
    assert_diary(&rig.diary, "");
    rig_make_room(&rig, 2);
    assert_diary(&rig.diary, "one=ok");
    rig_close(&rig);
}

TEST(write_timeout, goes_on_when_the_channel_is_registered_again)
{
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    transmit(&rig, "x", NULL);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    pass(&rig, 5);
    diary_clear(&rig.diary);
    weir_channel_register(rig.channel, rig.stepper.executor, NULL);
    rig_run(&rig);
    pass(&rig, 4);
    assert_int_equal(diary_count(&rig.diary, "a.error"), 0);
    pass(&rig, 1);
    assert_int_equal(diary_count(&rig.diary, "a.error(ETIMEDOUT"), 1);
    rig_close(&rig);
}

TEST(write_timeout, lets_what_was_cancelled_go)
{
    weir_promise *promise;
    struct rig rig;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    promise = rig_promise(&rig, "one");
    weir_channel_write(rig.channel, text_msg("x"), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
    rig_run(&rig);
    diary_clear(&rig.diary);
    pass(&rig, 100);
    assert_diary(&rig.diary, "");
    rig_close(&rig);
}

TEST(write_timeout, before_the_channel_has_a_loop_waits_with_its_writes)
{
    weir_promise *promise;
    struct rig rig;

    rig_open_with(&rig, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(
        weir_write_timeout_add(rig.pipeline, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10))),
        0);
    promise = rig_promise(&rig, "one");
    weir_channel_write(rig.channel, text_msg("x"), promise);
    weir_promise_release(promise);
    rig_close(&rig);
}

TEST(write_timeout, defaults_to_half_a_minute_and_can_be_off)
{
    weir_write_timeout_options options;
    struct rig rig;

    options = *WEIR_WRITE_TIMEOUT_OPTIONS();
    open_rig(&rig, &options);
    transmit(&rig, "x", NULL);
    pass(&rig, 29999);
    assert_diary(&rig.diary, "");
    pass(&rig, 1);
    assert_int_equal(diary_count(&rig.diary, "a.error"), 1);
    rig_close(&rig);

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = WEIR_OFF));
    transmit(&rig, "x", NULL);
    pass(&rig, 1000000);
    assert_diary(&rig.diary, "");
    assert_int_equal(
        weir_write_timeout_add(rig.pipeline, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = -2)),
        -EINVAL);
    rig_close(&rig);
}

/* Three writes and one that times out, with each allocation failing in turn. */
static bool write_without(unsigned n)
{
    struct rig rig;
    weir_promise *promise;
    weir_msg *msgs[3];
    bool failed;

    open_rig(&rig, WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_ms(10)));
    for (int i = 0; i < 3; i++)
        msgs[i] = text_msg("x");
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    test_memory_fail_at(n);
    weir_channel_write(rig.channel, msgs[0], NULL);
    weir_channel_write(rig.channel, msgs[1], promise);
    weir_channel_write_and_flush(rig.channel, msgs[2], NULL);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    rig_run(&rig);
    pass(&rig, 10);
    assert_true(weir_promise_is_done(promise));
    weir_promise_release(promise);
    rig_close(&rig);
    return failed;
}

TEST(write_timeout, survives_every_lack_of_memory)
{
    for (unsigned n = 1; write_without(n); n++)
        ;
}
