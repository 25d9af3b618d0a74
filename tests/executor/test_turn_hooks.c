/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When executors call the turn hooks, and that they sleep no longer than the hooks allow.
 */
#include "base/turn_hooks.h"

#include <stdatomic.h>

#include <weir/clock.h>
#include <weir/group.h>
#include <weir/manual.h>
#include <weir/promise.h>
#include <weir/timer.h>

#include "os/futex.h"
#include "support/executor/plain_group.h"
#include "support/test.h"

static _Atomic uint32_t ends;    /* calls after a turn that the next one follows at once, */
static _Atomic uint32_t sleeps;  /* and before a sleep */
static _Atomic int64_t sleep_ns; /* how long sleeps may be */

static int64_t on_turn_end(bool before_sleep, int64_t now_ns)
{
    int64_t limit_ns = atomic_load(&sleep_ns);

    atomic_fetch_add(before_sleep ? &sleeps : &ends, 1);
    weir__futex_wake(&sleeps, 1);
    return before_sleep && limit_ns > 0 ? now_ns + limit_ns : WEIR_NEVER;
}

static void begin(int64_t limit_ns)
{
    weir__turn_hook_add(on_turn_end);
    atomic_store(&sleep_ns, limit_ns);
    atomic_store(&ends, 0);
    atomic_store(&sleeps, 0);
}

static void count_calls(void *arg, int status)
{
    uint32_t *seen = arg;

    (void)status;
    *seen = atomic_load(&ends) + atomic_load(&sleeps);
}

TEST(turn, hooks_are_called_once_after_the_tasks_and_before_the_sleep)
{
    weir_executor *executor;
    uint32_t seen = 99;

    begin(0);
    assert_int_equal(weir_manual_create(NULL, &executor), 0);
    assert_int_equal(weir_execute(executor, count_calls, &seen), 0);
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 1);
    assert_int_equal(seen, 0);
    assert_int_equal(ends, 0);
    assert_int_equal(sleeps, 1);
    assert_true(weir_manual_timeout(executor) == WEIR_NEVER);
    weir_executor_release(executor);
}

TEST(turn, an_executor_that_has_more_to_do_does_not_call_it_a_sleep)
{
    weir_executor *executor;
    uint32_t seen;

    begin(0);
    assert_int_equal(weir_manual_create(NULL, &executor), 0);
    assert_int_equal(weir_execute(executor, count_calls, &seen), 0);
    assert_int_equal(weir_execute(executor, count_calls, &seen), 0);
    assert_int_equal(weir_manual_run_once(executor, 0, 1), 1);
    assert_int_equal(ends, 1);
    assert_int_equal(sleeps, 0);
    weir_executor_release(executor);
}

/* weir_manual_timeout does not call them: the pool's hook would free memory needed soon. */
TEST(turn, asking_for_the_timeout_calls_no_hook)
{
    weir_executor *executor;

    begin(weir_ms(50));
    assert_int_equal(weir_manual_create(NULL, &executor), 0);
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 0);
    assert_int_equal(sleeps, 1);
    for (int i = 0; i < 3; i++)
        assert_true(weir_manual_timeout(executor) <= weir_ms(50));
    assert_int_equal(sleeps, 1);
    assert_int_equal(ends, 0);
    weir_executor_release(executor);
}

TEST(turn, a_hook_shortens_the_sleep_and_a_timer_shortens_it_more)
{
    weir_manual_clock *clock;
    weir_executor *executor;
    weir_promise *timer;

    begin(weir_ms(50));
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    assert_int_equal(
        weir_manual_create(WEIR_MANUAL_OPTIONS(.clock = weir_manual_clock_clock(clock)), &executor),
        0);
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 0);
    assert_int_equal(weir_manual_timeout(executor), weir_ms(50));
    assert_int_equal(weir_schedule(executor, weir_ms(20), count_calls, &(uint32_t){0}, &timer), 0);
    assert_int_equal(weir_manual_timeout(executor), weir_ms(20));
    assert_int_equal(weir_promise_cancel(timer), 0);
    weir_promise_release(timer);
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 0);
    weir_executor_release(executor);
    weir_manual_clock_release(clock);
}

TEST(turn, a_thread_that_idles_is_woken_for_the_hook)
{
    weir_group *group;
    uint32_t seen, calls;

    begin(weir_ms(1));
    assert_int_equal(
        plain_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    assert_int_equal(weir_group_execute(group, count_calls, &seen), 0);
    while ((calls = atomic_load(&sleeps)) < 3)
        weir__futex_wait(&sleeps, calls, WEIR_NEVER);
    weir_group_release(group);
}
