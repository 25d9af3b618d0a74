/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_loop_now: the time of an executor's clock, for executors of every kind.
 */
#include <weir/clock.h>
#include <weir/error.h>
#include <weir/loop.h>
#include <weir/manual.h>

#include "os/clock.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"

static void assert_is_monotonic(const weir_executor *executor)
{
    int64_t before_ns = weir__monotonic_now(), now_ns = weir_loop_now(executor);

    assert_in_range(now_ns, before_ns, weir__monotonic_now());
}

TEST_EACH_LOOP(loop_now, reads_the_monotonic_clock_by_default)
{
    assert_is_monotonic(host->loop);
}

TEST(loop_now, works_for_executors_that_are_no_loops)
{
    const weir_group_options options = *WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE);
    weir_group *group;

    assert_is_monotonic(weir_executor_immediate());
    assert_is_monotonic(weir_executor_global());
    assert_int_equal(weir_group_create(&options, &group), 0);
    assert_is_monotonic(weir_group_next(group));
    weir_group_release(group);
}

static void read_on_other_thread(void *loop)
{
    assert_int_equal(weir_loop_now(loop), weir_seconds(1) + weir_ms(5));
}

/* Also between two turns, and on a thread that is not the loop's. */
TEST_EACH_LOOP(loop_now, is_the_time_of_a_manual_clock)
{
    weir_loop_options options = *WEIR_LOOP_OPTIONS(.io = weir_loop_io(host->loop));
    weir_manual_clock *clock;
    weir_executor *loop;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    options.clock = weir_manual_clock_clock(clock);
    assert_int_equal(weir_loop_create(&options, &loop), 0);
    assert_int_equal(weir_loop_now(loop), weir_seconds(1));
    assert_int_equal(weir_manual_clock_advance(clock, weir_ms(5)), 0);
    assert_int_equal(weir_loop_now(loop), weir_seconds(1) + weir_ms(5));
    run_on_other_thread(read_on_other_thread, loop);
    weir_executor_shutdown(loop, 0, 0);
    while (weir_loop_run_once(loop, 0) >= 0) {
    }
    weir_executor_release(loop);
    weir_manual_clock_release(clock);
}

TEST(loop_now, is_0_after_termination_when_the_clock_is_gone)
{
    weir_manual_clock *clock;
    weir_executor *executor;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    assert_int_equal(
        weir_manual_create(WEIR_MANUAL_OPTIONS(.clock = weir_manual_clock_clock(clock)), &executor),
        0);
    assert_int_equal(weir_loop_now(executor), weir_seconds(1));
    assert_int_equal(weir_executor_shutdown(executor, 0, 0), 0);
    while (weir_manual_run_once(executor, 0, 0) >= 0) {
    }
    weir_manual_clock_release(clock);
    assert_int_equal(weir_loop_now(executor), 0);
    weir_executor_release(executor);
}
