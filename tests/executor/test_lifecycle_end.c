/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shutdown of an executor: the quiet period, the timeout, and what is cancelled.
 *
 * Where time matters the clock is manual, and single_executor_await_sleep shows how far the
 * executor has come.
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
#include "support/executor/fake_loop.h"
#include "support/executor/gate.h"
#include "support/executor/grace.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/thread_factory.h"
#include "support/test.h"

#define STEP_NS weir_ms(100) /* how often a thread that shuts down checks for lazy tasks */

TEST(lifecycle, refuses_a_shutdown_with_bad_times_and_changes_nothing)
{
    struct single_executor single = single_executor_open(NULL);

    assert_int_equal(weir_executor_shutdown(NULL, 0, 0), -EINVAL);
    assert_int_equal(weir_executor_shutdown(single.executor, -1, 10), -EINVAL);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, -1), -EINVAL);
    assert_int_equal(weir_executor_shutdown(single.executor, 11, 10), -EINVAL);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_NOT_STARTED);
    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, 11, 10), -EINVAL);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    single_executor_close(&single);
}

TEST(lifecycle, the_immediate_and_the_global_executor_do_not_end)
{
    weir_executor *executors[] = {weir_executor_immediate(), weir_executor_global()};
    struct call_counter counter = {0};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_executor_shutdown(executors[i], 0, 0), -EPERM);
        assert_int_equal(weir_executor_add_shutdown_hook(executors[i], call_counter_task, &counter),
                         -EPERM);
        assert_int_equal(weir_executor_await_termination(executors[i], 0), -EPERM);
        assert_int_equal(weir_execute(executors[i], call_counter_task, &counter), 0);
    }
    assert_true(call_counter_await(&counter, 2));
}

TEST(lifecycle, shut_down_before_its_start_it_ends_at_once_and_starts_no_thread)
{
    struct thread_factory_fixture fixture;
    struct call_counter counter = {0};
    struct single_executor single;

    thread_factory_open(&fixture);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    assert_int_equal(weir_executor_shutdown(single.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_promise_result(weir_executor_termination(single.executor)), 0);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), WEIR_EREJECTED);
    single_executor_close(&single);
    assert_int_equal(fixture.asked, 0);
    assert_int_equal(counter.calls, 0);
}

TEST(lifecycle, shut_down_while_suspended_it_ends_at_once_and_starts_no_thread)
{
    struct thread_factory_fixture fixture;
    struct call_counter counter = {0};
    struct single_executor single;

    thread_factory_open(&fixture);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    single_executor_run_one(&single);
    single_executor_suspend(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), WEIR_EREJECTED);
    single_executor_close(&single);
    thread_factory_close(&fixture);
    assert_int_equal(fixture.started, 1);
}

TEST(lifecycle, runs_all_that_is_queued_when_it_is_shut_down)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    struct gate gate = {0};

    gate_hold(&gate, single.executor);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
    gate_open(&gate);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    assert_int_equal(counter.run, 1001);
    assert_int_equal(weir_executor_pending(single.executor), 0);
    single_executor_close(&single);
}

TEST(lifecycle, every_task_restarts_the_quiet_period)
{
    const int64_t quiet_ns = 10 * STEP_NS;
    struct single_executor single = single_executor_open_at(0);

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(single_executor_await_sleep(&single, STEP_NS));
    for (int64_t at_ns = 9 * STEP_NS; at_ns < 50 * STEP_NS; at_ns += 9 * STEP_NS) {
        assert_int_equal(weir_manual_clock_set(single.clock, at_ns), 0);
        single_executor_run_one(&single);
        assert_true(single_executor_await_sleep(&single, at_ns + STEP_NS));
        assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    }
    assert_int_equal(weir_manual_clock_set(single.clock, 45 * STEP_NS + quiet_ns - 1), 0);
    assert_true(single_executor_await_sleep(&single, 45 * STEP_NS + quiet_ns));
    assert_int_equal(weir_manual_clock_advance(single.clock, 1), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    single_executor_close(&single);
}

TEST(lifecycle, the_quiet_period_begins_with_the_shutdown_at_the_earliest)
{
    const int64_t at_ns = weir_seconds(5), quiet_ns = weir_seconds(1);
    struct single_executor single = single_executor_open_at(0);

    single_executor_run_one(&single);
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    assert_int_equal(weir_manual_clock_set(single.clock, at_ns), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(single_executor_await_sleep(&single, at_ns + STEP_NS));
    assert_int_equal(weir_manual_clock_set(single.clock, at_ns + quiet_ns), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    single_executor_close(&single);
}

TEST(lifecycle, without_a_quiet_period_it_ends_as_soon_as_nothing_is_left)
{
    struct single_executor single = single_executor_open_at(0);

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    single_executor_close(&single);
}

TEST(lifecycle, cancelled_tasks_do_not_extend_the_quiet_period)
{
    const int64_t quiet_ns = 10 * STEP_NS;
    struct call_counter counter = {0};
    struct single_executor single = single_executor_open_at(0);

    assert_int_equal(weir_schedule(single.executor, quiet_ns, call_counter_task, &counter, NULL),
                     0);
    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(call_counter_await(&counter, 1));
    assert_true(single_executor_await_sleep(&single, STEP_NS));
    assert_int_equal(weir_manual_clock_set(single.clock, STEP_NS), 0);
    assert_true(single_executor_await_sleep(&single, 2 * STEP_NS));
    assert_int_equal(weir_manual_clock_set(single.clock, quiet_ns), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    single_executor_close(&single);
    assert_int_equal(counter.cancelled, 1);
}

/* The timeout comes before the end of the quiet period. */
TEST(lifecycle, tasks_do_not_keep_it_alive_beyond_its_timeout)
{
    const int64_t quiet_ns = 10 * STEP_NS, timeout_ns = 15 * STEP_NS;
    struct call_counter counter = {0};
    struct single_executor single = single_executor_open_at(0);

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, quiet_ns, timeout_ns), 0);
    assert_int_equal(weir_manual_clock_set(single.clock, 9 * STEP_NS), 0);
    single_executor_run_one(&single);
    assert_true(single_executor_await_sleep(&single, 10 * STEP_NS));
    assert_int_equal(weir_manual_clock_set(single.clock, timeout_ns - 1), 0);
    assert_true(single_executor_await_sleep(&single, timeout_ns));
    assert_int_equal(weir_manual_clock_set(single.clock, timeout_ns), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), WEIR_EREJECTED);
    single_executor_close(&single);
    assert_int_equal(counter.calls, 0);
}

TEST(lifecycle, checks_for_lazy_tasks_while_it_shuts_down)
{
    struct call_order letters = {0};
    struct single_executor single = single_executor_open_at(0);

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(single_executor_await_sleep(&single, STEP_NS));
    assert_int_equal(
        weir_execute_lazy(single.executor, call_order_task, call_order_arg(&letters, 'a')), 0);
    assert_int_equal(weir_manual_clock_set(single.clock, STEP_NS), 0);
    assert_true(call_order_await(&letters, 1));
    assert_string_equal(letters.text, "a");
    assert_int_equal(weir_manual_clock_set(single.clock, weir_seconds(2)), 0);
    single_executor_close(&single);
}

TEST(lifecycle, the_first_shutdown_counts_and_later_ones_change_nothing)
{
    struct single_executor single = single_executor_open_at(0);

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(single_executor_await_sleep(&single, STEP_NS));
    assert_int_equal(weir_executor_shutdown(single.executor, 0, 0), 0);
    single_executor_run_one(&single);
    assert_true(single_executor_await_sleep(&single, STEP_NS));
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_manual_clock_set(single.clock, weir_seconds(1)), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, 0), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_TERMINATED);
    single_executor_close(&single);
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

TEST(lifecycle, cancels_its_timers_when_it_begins_to_shut_down)
{
    struct call_order letters = {0};
    weir_promise *once, *again;
    struct single_executor single = single_executor_open_at(0);
    struct timers timers = {.executor = single.executor};
    uint64_t tasks_run;

    run_on_executor(single.executor, start_timer, &timers);
    assert_int_equal(timers.err, 0);
    assert_int_equal(weir_schedule(single.executor, weir_ms(1), call_order_task,
                                   call_order_arg(&letters, 'a'), &once),
                     0);
    assert_int_equal(weir_schedule_at_fixed_rate(single.executor, weir_ms(2), weir_ms(1),
                                                 call_order_task, call_order_arg(&letters, 'b'),
                                                 &again),
                     0);
    single_executor_run_one(&single); /* the timers are started */
    assert_true(single_executor_await_sleep(&single, weir_ms(1)));
    tasks_run = single_executor_stats(&single).tasks_run;
    assert_int_equal(weir_executor_shutdown(single.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(call_order_await(&letters, 2));
    assert_int_equal(weir_promise_await(once, TEST_TIMEOUT_NS), 0);
    assert_true(weir_promise_is_cancelled(once));
    assert_true(weir_promise_is_cancelled(again));
    assert_true(single_executor_await_sleep(&single, STEP_NS));
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(single_executor_stats(&single).tasks_cancelled, 2);
    assert_int_equal(single_executor_stats(&single).tasks_run, tasks_run);

    assert_int_equal(weir_schedule(single.executor, weir_ms(1), call_order_task,
                                   call_order_arg(&letters, 'c'), NULL),
                     0); /* too late, but accepted: it is called */
    assert_true(call_order_await(&letters, 3));
    assert_int_equal(weir_manual_clock_set(single.clock, weir_seconds(2)), 0);
    single_executor_close(&single);
    assert_true(strcmp(letters.text, "ABC") == 0 || strcmp(letters.text, "BAC") == 0);
    weir_promise_release(once);
    weir_promise_release(again);
}

struct rescheduler {
    weir_executor *executor;
    struct call_counter calls;
};

/* A scheduled task that schedules another, whether run or cancelled. */
static void schedule_again(void *arg, int status)
{
    struct rescheduler *rescheduler = arg;

    call_counter_task(&rescheduler->calls, status);
    IGNORE_RESULT(
        weir_schedule(rescheduler->executor, weir_seconds(100), schedule_again, rescheduler, NULL));
}

TEST(lifecycle, ends_although_each_cancelled_timer_starts_another)
{
    struct single_executor single = single_executor_open(NULL);
    struct rescheduler rescheduler = {.executor = single.executor};

    assert_int_equal(
        weir_schedule(single.executor, weir_seconds(100), schedule_again, &rescheduler, NULL), 0);
    single_executor_close(&single);
    assert_int_equal(rescheduler.calls.run, 0);
    assert_true(rescheduler.calls.cancelled > 0);
}

TEST(lifecycle, ends_at_its_timeout_although_the_queue_is_never_empty)
{
    const int64_t caps[] = {0, WEIR_OFF};

    log_capture_start();
    for (int i = 0; i < 2; i++) {
        struct single_executor single =
            single_executor_open(WEIR_GROUP_OPTIONS(.task_cap_ns = caps[i]));
        struct busy_task busy = {.executor = single.executor};

        assert_int_equal(weir_execute(single.executor, busy_task_run, &busy), 0);
        assert_int_equal(weir_executor_shutdown(single.executor, 0, weir_ms(5)), 0);
        assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
        assert_int_equal(weir_execute(single.executor, busy_task_run, &busy), WEIR_EREJECTED);
        assert_int_equal(busy.refusal, WEIR_EREJECTED);
        assert_int_equal(busy.stopped.cancelled, 1);
        single_executor_close(&single);
    }
}

TEST(lifecycle, cancels_remaining_tasks_at_its_timeout_and_logs_their_number)
{
    struct call_counter counter = {0}, tail = {0};
    struct gate gate = {0};
    struct single_executor single = single_executor_open_at(0);
    char expected[64];

    log_capture_start();
    gate_hold(&gate, single.executor);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &tail), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_manual_clock_set(single.clock, weir_seconds(1)), 0);
    gate_open(&gate);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);

    assert_int_equal(counter.calls, 301);
    assert_int_equal(counter.run + counter.cancelled, 301);
    assert_int_equal(counter.cancelled, 301); /* the time is looked at after each task */
    assert_int_equal(tail.cancelled, 1);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    (void)snprintf(expected, sizeof(expected), "weir-1: %u tasks were cancelled",
                   counter.cancelled + tail.cancelled);
    assert_true(log_capture_last_contains(expected));
    assert_int_equal(single_executor_stats(&single).tasks_cancelled, 302);
    assert_int_equal(single_executor_stats(&single).tasks_run, 1);
    assert_int_equal(single_executor_stats(&single).pending, 0);
    single_executor_close(&single);
}

/* Its termination must not be awaited while its thread runs. */
TEST(lifecycle, logs_a_thread_that_does_not_end_and_fails_its_termination)
{
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.name = "stuck"));
    weir_executor *executor = weir_executor_retain(single.executor);
    struct gate gate = {0};

    log_capture_start();
    gate_hold(&gate, single.executor);
    grace_use_default();
    assert_int_equal(weir_group_shutdown(single.group, 0, weir_ms(1)), 0);
    grace_use_long();
    assert_int_equal(weir_group_await_termination(single.group, TEST_TIMEOUT_NS), -ETIMEDOUT);
    assert_int_equal(weir_promise_result(weir_executor_termination(executor)), -ETIMEDOUT);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_true(log_capture_last_contains("stuck-1"));
    weir_group_release(single.group);

    gate_open(&gate);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_TERMINATED));
    weir__executor_join(executor);
    assert_int_equal(weir_promise_result(weir_executor_termination(executor)), -ETIMEDOUT);
    weir_executor_release(executor);
}

static void shut_itself_down(void *arg)
{
    struct single_executor *single = arg;

    (void)weir_executor_shutdown(single->executor, 0, TEST_TIMEOUT_NS);
}

TEST(lifecycle, may_be_shut_down_by_a_task_of_its_own)
{
    struct single_executor single = single_executor_open(NULL);

    run_on_executor(single.executor, shut_itself_down, &single);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    single_executor_close(&single);
}

struct waiter {
    weir_executor *executor;
    int err;
};

static void await_end(void *arg)
{
    struct waiter *waiter = arg;

    waiter->err = weir_executor_await_termination(waiter->executor, TEST_TIMEOUT_NS);
}

TEST(lifecycle, its_own_thread_and_event_loops_may_not_wait_for_its_end)
{
    struct single_executor single = single_executor_open(NULL);
    struct waiter waiter = {.executor = single.executor};
    weir_executor *loop = fake_loop_open();

    run_on_executor(single.executor, await_end, &waiter);
    assert_int_equal(waiter.err, -EDEADLK);
    waiter.err = 0;
    run_on_executor(loop, await_end, &waiter);
    assert_int_equal(waiter.err, -EDEADLK);
    assert_int_equal(weir_executor_await_termination(single.executor, 0), -ETIMEDOUT);
    single_executor_close(&single);
    fake_loop_close(loop);
}

TEST(lifecycle, a_retained_executor_outlives_its_group_and_rejects_tasks)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *executor = weir_executor_retain(single.executor);
    weir_executor_stats stats;
    struct call_counter counter = {0};

    single_executor_run_one(&single);
    single_executor_close(&single);
    assert_int_equal(weir_execute(executor, call_counter_task, &counter), WEIR_EREJECTED);
    assert_int_equal(weir_execute_after_turn(executor, call_counter_task, &counter),
                     WEIR_EREJECTED);
    assert_int_equal(weir_schedule(executor, 0, call_counter_task, &counter, NULL), WEIR_EREJECTED);
    assert_int_equal(weir_submit(executor, call_counter_work, &counter, NULL), WEIR_EREJECTED);
    weir_executor_read_stats(executor, &stats);
    assert_int_equal(stats.state, WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(stats.tasks_run, 1);
    assert_string_equal(weir_executor_name(executor), "weir-1");
    weir_executor_release(executor);
    weir_executor_release(NULL);
    assert_int_equal(counter.calls, 0);
}

static void see_metric(const weir_metric_value *value, void *user_data)
{
    (void)value;
    ++*(int *)user_data;
}

/* Calls that read the clock of a running executor. */
static void use_an_ended(weir_executor *executor)
{
    weir_executor_stats stats;
    struct call_counter counter = {0};
    int metrics = 0;

    weir_metrics_foreach(see_metric, &metrics);
    weir_executor_read_stats(executor, &stats);
    assert_true(stats.active_ns >= 0);
    assert_true(stats.utilisation == 0);
    assert_int_equal(weir_schedule(executor, 0, call_counter_task, &counter, NULL), WEIR_EREJECTED);
    for (int i = 0; i < 64; i++)
        assert_int_equal(weir_execute(executor, call_counter_task, &counter), WEIR_EREJECTED);
}

TEST(lifecycle, needs_its_clock_until_its_end_and_no_longer)
{
    weir_promise *promise;
    struct single_executor single = single_executor_open_at(0);

    assert_int_equal(weir_promise_create(single.executor, &promise), 0); /* retains the executor */
    single_executor_run_one(&single);
    single_executor_close(&single);
    use_an_ended(weir_promise_executor(promise));
    weir_promise_release(promise);
}
