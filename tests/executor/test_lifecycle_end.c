/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an executor is shut down: the quiet period, the hard limit, and what is cancelled.
 *
 * Where time matters the clock is the test's own, and the executor's sleep tells how far it got:
 * solo_await_sleep.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/metric.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/busy_task.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/grace.h"
#include "support/executor/log_capture.h"
#include "support/executor/loop.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/thread_factory.h"
#include "support/test.h"

#define STEP_NS weir_ms(100) /* how often a thread that shuts down looks for lazy tasks */

TEST(life, refuses_a_shutdown_with_bad_times_and_changes_nothing)
{
    struct solo solo = solo_open(NULL);

    assert_int_equal(weir_executor_shutdown(NULL, 0, 0), -EINVAL);
    assert_int_equal(weir_executor_shutdown(solo.executor, -1, 10), -EINVAL);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, -1), -EINVAL);
    assert_int_equal(weir_executor_shutdown(solo.executor, 11, 10), -EINVAL);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_NOT_STARTED);
    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, 11, 10), -EINVAL);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    solo_close(&solo);
}

TEST(life, the_immediate_and_the_global_executor_do_not_end)
{
    weir_executor *executors[] = {weir_executor_immediate(), weir_executor_global()};
    struct tally tally = {0};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_executor_shutdown(executors[i], 0, 0), -EPERM);
        assert_int_equal(weir_executor_add_shutdown_hook(executors[i], tally_task, &tally), -EPERM);
        assert_int_equal(weir_executor_await_termination(executors[i], 0), -EPERM);
        assert_int_equal(weir_execute(executors[i], tally_task, &tally), 0);
    }
    assert_true(tally_await(&tally, 2));
}

/* D 11, B 4 */
TEST(life, shut_down_before_its_start_it_ends_at_once_and_starts_no_thread)
{
    struct workshop workshop;
    struct tally tally = {0};
    struct solo solo;

    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_promise_result(weir_executor_termination(solo.executor)), 0);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), WEIR_EREJECTED);
    solo_close(&solo);
    assert_int_equal(workshop.asked, 0);
    assert_int_equal(tally.calls, 0);
}

TEST(life, shut_down_while_suspended_it_ends_at_once_and_starts_no_thread)
{
    struct workshop workshop;
    struct tally tally = {0};
    struct solo solo;

    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    solo_run_one(&solo);
    solo_suspend(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), WEIR_EREJECTED);
    solo_close(&solo);
    workshop_close(&workshop);
    assert_int_equal(workshop.started, 1);
}

/* D 16 */
TEST(life, runs_all_that_is_queued_when_it_is_shut_down)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    struct gate gate = {0};

    gate_hold(&gate, solo.executor);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    gate_open(&gate);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(tally.run, 1001);
    assert_int_equal(weir_executor_pending(solo.executor), 0);
    solo_close(&solo);
}

/* D 19 */
TEST(life, the_quiet_period_begins_anew_with_every_task)
{
    const int64_t quiet_ns = 10 * STEP_NS;
    struct solo solo = solo_open_at(0);

    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    for (int64_t at_ns = 9 * STEP_NS; at_ns < 50 * STEP_NS; at_ns += 9 * STEP_NS) {
        assert_int_equal(weir_manual_clock_set(solo.clock, at_ns), 0);
        solo_run_one(&solo);
        assert_true(solo_await_sleep(&solo, at_ns + STEP_NS));
        assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    }
    assert_int_equal(weir_manual_clock_set(solo.clock, 45 * STEP_NS + quiet_ns - 1), 0);
    assert_true(solo_await_sleep(&solo, 45 * STEP_NS + quiet_ns));
    assert_int_equal(weir_manual_clock_advance(solo.clock, 1), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    solo_close(&solo);
}

TEST(life, the_quiet_period_begins_with_the_shutdown_at_the_earliest)
{
    const int64_t at_ns = weir_seconds(5), quiet_ns = weir_seconds(1);
    struct solo solo = solo_open_at(0);

    solo_run_one(&solo);
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));
    assert_int_equal(weir_manual_clock_set(solo.clock, at_ns), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(solo_await_sleep(&solo, at_ns + STEP_NS));
    assert_int_equal(weir_manual_clock_set(solo.clock, at_ns + quiet_ns), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    solo_close(&solo);
}

TEST(life, without_a_quiet_period_it_ends_as_soon_as_nothing_is_left)
{
    struct solo solo = solo_open_at(0);

    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    solo_close(&solo);
}

TEST(life, what_is_cancelled_does_not_prolong_the_quiet_period)
{
    const int64_t quiet_ns = 10 * STEP_NS;
    struct tally tally = {0};
    struct solo solo = solo_open_at(0);

    assert_int_equal(weir_schedule(solo.executor, quiet_ns, NULL, tally_task, &tally), 0);
    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(tally_await(&tally, 1));
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_manual_clock_set(solo.clock, STEP_NS), 0);
    assert_true(solo_await_sleep(&solo, 2 * STEP_NS));
    assert_int_equal(weir_manual_clock_set(solo.clock, quiet_ns), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    solo_close(&solo);
    assert_int_equal(tally.cancelled, 1);
}

/* The hard limit comes before the end of the quiet period. */
TEST(life, tasks_do_not_keep_it_alive_beyond_its_time)
{
    const int64_t quiet_ns = 10 * STEP_NS, timeout_ns = 15 * STEP_NS;
    struct tally tally = {0};
    struct solo solo = solo_open_at(0);

    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, timeout_ns), 0);
    assert_int_equal(weir_manual_clock_set(solo.clock, 9 * STEP_NS), 0);
    solo_run_one(&solo);
    assert_true(solo_await_sleep(&solo, 10 * STEP_NS));
    assert_int_equal(weir_manual_clock_set(solo.clock, timeout_ns - 1), 0);
    assert_true(solo_await_sleep(&solo, timeout_ns));
    assert_int_equal(weir_manual_clock_set(solo.clock, timeout_ns), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), WEIR_EREJECTED);
    solo_close(&solo);
    assert_int_equal(tally.calls, 0);
}

TEST(life, looks_for_lazy_tasks_while_it_shuts_down)
{
    struct letters letters = {0};
    struct solo solo = solo_open_at(0);

    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'a')), 0);
    assert_int_equal(weir_manual_clock_set(solo.clock, STEP_NS), 0);
    assert_true(letters_await(&letters, 1));
    assert_string_equal(letters.text, "a");
    assert_int_equal(weir_manual_clock_set(solo.clock, weir_seconds(2)), 0);
    solo_close(&solo);
}

TEST(life, the_first_shutdown_counts_and_later_ones_change_nothing)
{
    struct solo solo = solo_open_at(0);

    solo_run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, 0), 0);
    solo_run_one(&solo);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_manual_clock_set(solo.clock, weir_seconds(1)), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, 0), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    solo_close(&solo);
}

static void fire_never(weir_timer *timer)
{
    (void)timer;
    abort();
}

struct timers {
    weir_executor *executor;
    weir_timer timer;
    int err;
};

static void start_timer(void *arg)
{
    struct timers *timers = arg;

    timers->err = weir_timer_start(timers->executor, &timers->timer, weir_ms(1), fire_never);
}

TEST(life, cancels_its_timers_when_it_begins_to_shut_down)
{
    struct letters letters = {0};
    weir_promise *once, *again;
    struct solo solo = solo_open_at(0);
    struct timers timers = {.executor = solo.executor};
    uint64_t tasks_run;

    errand_on(solo.executor, start_timer, &timers);
    assert_int_equal(timers.err, 0);
    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(1), &once, letters_task, letters_arg(&letters, 'a')),
        0);
    assert_int_equal(weir_schedule_at_fixed_rate(solo.executor, weir_ms(2), weir_ms(1), &again,
                                                 letters_task, letters_arg(&letters, 'b')),
                     0);
    solo_run_one(&solo); /* they are filed */
    assert_true(solo_await_sleep(&solo, weir_ms(1)));
    tasks_run = solo_stats(&solo).tasks_run;
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(letters_await(&letters, 2));
    assert_int_equal(weir_promise_await(once, PATIENCE_NS), 0);
    assert_true(weir_promise_is_cancelled(once));
    assert_true(weir_promise_is_cancelled(again));
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(solo_stats(&solo).tasks_cancelled, 2);
    assert_int_equal(solo_stats(&solo).tasks_run, tasks_run);

    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(1), NULL, letters_task, letters_arg(&letters, 'c')),
        0); /* too late, but accepted: it is called */
    assert_true(letters_await(&letters, 3));
    assert_int_equal(weir_manual_clock_set(solo.clock, weir_seconds(2)), 0);
    solo_close(&solo);
    assert_true(strcmp(letters.text, "ABC") == 0 || strcmp(letters.text, "BAC") == 0);
    weir_promise_release(once);
    weir_promise_release(again);
}

struct phoenix {
    weir_executor *executor;
    struct tally calls;
};

/* A timer that starts another one, whatever becomes of it. */
static void rise_again(void *arg, int status)
{
    struct phoenix *phoenix = arg;

    tally_task(&phoenix->calls, status);
    (void)weir_schedule(phoenix->executor, weir_seconds(100), NULL, rise_again, phoenix);
}

TEST(life, ends_although_each_cancelled_timer_starts_another)
{
    struct solo solo = solo_open(NULL);
    struct phoenix phoenix = {.executor = solo.executor};

    assert_int_equal(weir_schedule(solo.executor, weir_seconds(100), NULL, rise_again, &phoenix),
                     0);
    solo_close(&solo);
    assert_int_equal(phoenix.calls.run, 0);
    assert_true(phoenix.calls.cancelled > 0);
}

/* D 20 */
TEST(life, ends_at_its_hard_limit_although_the_queue_is_never_empty)
{
    const int64_t caps[] = {0, WEIR_OFF};

    messages_catch();
    for (int i = 0; i < 2; i++) {
        struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.task_cap_ns = caps[i]));
        struct treadmill treadmill = {.executor = solo.executor};

        assert_int_equal(weir_execute(solo.executor, treadmill_task, &treadmill), 0);
        assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_ms(5)), 0);
        assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
        assert_int_equal(weir_execute(solo.executor, treadmill_task, &treadmill), WEIR_EREJECTED);
        assert_int_equal(treadmill.refusal, WEIR_EREJECTED);
        assert_int_equal(treadmill.stopped.cancelled, 1);
        solo_close(&solo);
    }
}

TEST(life, cancels_what_is_left_at_its_hard_limit_and_says_how_much)
{
    struct tally tally = {0}, tail = {0};
    struct gate gate = {0};
    struct solo solo = solo_open_at(0);
    char expected[64];

    messages_catch();
    gate_hold(&gate, solo.executor);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tail), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_manual_clock_set(solo.clock, weir_seconds(1)), 0);
    gate_open(&gate);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);

    assert_int_equal(tally.calls, 301);
    assert_int_equal(tally.run + tally.cancelled, 301);
    assert_true(tally.cancelled >= 301 - 64); /* the rest of the batch was run */
    assert_int_equal(tail.run, 1);
    assert_int_equal(messages_count(WEIR_LOG_WARN), 1);
    (void)snprintf(expected, sizeof(expected), "weir-1: %u tasks were cancelled", tally.cancelled);
    assert_true(messages_last_contains(expected));
    assert_int_equal(solo_stats(&solo).tasks_cancelled, tally.cancelled);
    assert_int_equal(solo_stats(&solo).tasks_run, tally.run + 2);
    assert_int_equal(solo_stats(&solo).pending, 0);
    solo_close(&solo);
}

/* It must not be waited for while its thread is there; afterwards it may go. */
TEST(life, names_a_thread_that_does_not_come_back_and_fails_its_termination)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.name = "stuck"));
    weir_executor *executor = weir_executor_retain(solo.executor);
    struct gate gate = {0};

    messages_catch();
    gate_hold(&gate, solo.executor);
    grace_begin_as_ever();
    assert_int_equal(weir_group_shutdown(solo.group, 0, weir_ms(1)), 0);
    grace_end_as_ever();
    assert_int_equal(weir_group_await_termination(solo.group, PATIENCE_NS), -ETIMEDOUT);
    assert_int_equal(weir_promise_result(weir_executor_termination(executor)), -ETIMEDOUT);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(messages_count(WEIR_LOG_ERROR), 1);
    assert_true(messages_last_contains("stuck-1"));
    weir_group_release(solo.group);

    gate_open(&gate);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_TERMINATED));
    weir__executor_join(executor);
    assert_int_equal(weir_promise_result(weir_executor_termination(executor)), -ETIMEDOUT);
    weir_executor_release(executor);
}

static void shut_itself_down(void *arg)
{
    struct solo *solo = arg;

    (void)weir_executor_shutdown(solo->executor, 0, PATIENCE_NS);
}

TEST(life, may_be_shut_down_by_a_task_of_its_own)
{
    struct solo solo = solo_open(NULL);

    errand_on(solo.executor, shut_itself_down, &solo);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    solo_close(&solo);
}

struct waiter {
    weir_executor *executor;
    int err;
};

static void await_end(void *arg)
{
    struct waiter *waiter = arg;

    waiter->err = weir_executor_await_termination(waiter->executor, PATIENCE_NS);
}

TEST(life, its_own_thread_and_event_loops_may_not_wait_for_its_end)
{
    struct solo solo = solo_open(NULL);
    struct waiter waiter = {.executor = solo.executor};
    weir_executor *loop = loop_open();

    errand_on(solo.executor, await_end, &waiter);
    assert_int_equal(waiter.err, -EDEADLK);
    waiter.err = 0;
    errand_on(loop, await_end, &waiter);
    assert_int_equal(waiter.err, -EDEADLK);
    assert_int_equal(weir_executor_await_termination(solo.executor, 0), -ETIMEDOUT);
    solo_close(&solo);
    loop_close(loop);
}

TEST(life, a_kept_executor_outlives_its_group_and_refuses_tasks)
{
    struct solo solo = solo_open(NULL);
    weir_executor *executor = weir_executor_retain(solo.executor);
    weir_executor_stats stats;
    struct tally tally = {0};

    solo_run_one(&solo);
    solo_close(&solo);
    assert_int_equal(weir_execute(executor, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_execute_after_turn(executor, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_schedule(executor, 0, NULL, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_submit(executor, NULL, tally_call, &tally), WEIR_EREJECTED);
    weir_executor_read_stats(executor, &stats);
    assert_int_equal(stats.state, WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(stats.tasks_run, 1);
    assert_string_equal(weir_executor_name(executor), "weir-1");
    weir_executor_release(executor);
    weir_executor_release(NULL);
    assert_int_equal(tally.calls, 0);
}

static void see_metric(const weir_metric_value *value, void *user_data)
{
    (void)value;
    ++*(int *)user_data;
}

/* All that would look at the clock of one that lives: every 64th submission does. */
static void use_an_ended(weir_executor *executor)
{
    weir_executor_stats stats;
    struct tally tally = {0};
    int metrics = 0;

    weir_metrics_foreach(see_metric, &metrics);
    weir_executor_read_stats(executor, &stats);
    assert_true(stats.active_ns >= 0);
    assert_true(stats.utilisation == 0);
    assert_int_equal(weir_schedule(executor, 0, NULL, tally_task, &tally), WEIR_EREJECTED);
    for (int i = 0; i < 64; i++)
        assert_int_equal(weir_execute(executor, tally_task, &tally), WEIR_EREJECTED);
}

TEST(life, needs_its_clock_until_its_end_and_no_longer)
{
    weir_promise *promise;
    struct solo solo = solo_open_at(0);

    assert_int_equal(weir_promise_create(solo.executor, &promise), 0); /* keeps the executor */
    solo_run_one(&solo);
    solo_close(&solo);
    use_an_ended(weir_promise_executor(promise));
    weir_promise_release(promise);
}
