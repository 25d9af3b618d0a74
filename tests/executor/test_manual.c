/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual executors: ownership, one run, and their end. Sleeping between runs is in
 * test_manual_sleep.c.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_counter.h"
#include "support/executor/log_capture.h"
#include "support/executor/manual_fixture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/stepper.h"
#include "support/litmus.h"
#include "support/memory.h"

static weir_executor *make_manual(const weir_manual_options *options)
{
    weir_executor *executor = NULL;

    assert_int_equal(weir_manual_create(options, &executor), 0);
    assert_non_null(executor);
    return executor;
}

static int run_now(weir_executor *executor)
{
    return weir_manual_run_once(executor, 0, 0);
}

/* ---- creation ---- */

TEST(manual, has_defaults)
{
    weir_executor *executor = make_manual(NULL);

    assert_string_equal(weir_executor_name(executor), "manual");
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_STARTED);
    assert_true(weir_in_executor(executor));
    assert_int_equal(run_now(executor), 0);
    weir_executor_release(executor);
}

TEST(manual, has_defaults_step_by_step)
{
    weir_manual_options options;
    weir_executor *executor;

    memset(&options, 0xff, sizeof(options));
    options = *WEIR_MANUAL_OPTIONS();
    options.name = "main";
    executor = make_manual(&options);
    assert_string_equal(weir_executor_name(executor), "main");
    weir_executor_release(executor);
}

TEST(manual, refuses_bad_options)
{
    weir_executor *executor = NULL;

    assert_int_equal(weir_manual_create(WEIR_MANUAL_OPTIONS(.max_pending = -1), &executor),
                     -EINVAL);
    assert_int_equal(weir_manual_create(&(const weir_manual_options){.size = 1}, &executor),
                     -EINVAL);
    assert_null(executor);
}

TEST(manual, is_not_made_without_memory)
{
    weir_executor *executor = NULL;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_manual_create(NULL, &executor);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_null(executor);
        assert_int_equal(test_memory_live(), 0);
    }
    assert_int_equal(err, 0);
    weir_executor_release(executor);
}

/* ---- the owner ---- */

struct attempt {
    weir_executor *executor;
    int run;
    int own;
    bool is_inside;
    int64_t timeout_ns;
};

static void attempt_all(void *arg)
{
    struct attempt *attempt = arg;

    attempt->run = weir_manual_run_once(attempt->executor, 0, 0);
    attempt->timeout_ns = weir_manual_timeout(attempt->executor);
    attempt->own = weir_manual_claim(attempt->executor);
    attempt->is_inside = weir_in_executor(attempt->executor);
}

TEST(manual, is_run_by_its_owner_only)
{
    struct call_counter counter = {0};
    struct attempt attempt = {.executor = make_manual(NULL)};

    assert_int_equal(weir_execute(attempt.executor, call_counter_task, &counter), 0);
    run_on_other_thread(attempt_all, &attempt);
    assert_int_equal(attempt.run, WEIR_EWRONGTHREAD);
    assert_int_equal(attempt.own, -EALREADY);
    assert_false(attempt.is_inside);
    assert_true(attempt.timeout_ns == WEIR_NEVER);
    assert_int_equal(atomic_load(&counter.calls), 0);
    assert_int_equal(run_now(attempt.executor), 1);
    weir_executor_release(attempt.executor);
}

TEST(manual, without_an_owner_is_not_run)
{
    struct attempt attempt = {.executor = make_manual(WEIR_MANUAL_OPTIONS(.claim_later = true))};
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(attempt.executor, call_counter_task, &counter), 0);
    assert_false(weir_in_executor(attempt.executor));
    assert_int_equal(run_now(attempt.executor), WEIR_ENOOWNER);
    assert_int_equal(atomic_load(&counter.calls), 0);

    run_on_other_thread(attempt_all, &attempt);
    assert_int_equal(attempt.run, WEIR_ENOOWNER);
    assert_int_equal(attempt.own, 0);
    assert_true(attempt.is_inside);
    assert_int_equal(run_now(attempt.executor), WEIR_EWRONGTHREAD);
    weir_executor_release(attempt.executor);
    assert_int_equal(atomic_load(&counter.cancelled), 1);
}

TEST(manual, is_claimed_once)
{
    weir_executor *executor = make_manual(WEIR_MANUAL_OPTIONS(.claim_later = true));
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_manual_claim(executor), 0);
    assert_int_equal(weir_manual_claim(executor), -EALREADY);
    assert_int_equal(run_now(executor), 1);
    weir_executor_release(executor);
}

TEST(manual, functions_reject_other_types)
{
    assert_int_equal(weir_manual_claim(weir_executor_global()), -EINVAL);
    assert_int_equal(weir_manual_claim(NULL), -EINVAL);
    assert_int_equal(weir_manual_run_once(weir_executor_immediate(), 0, 0), -EINVAL);
    assert_int_equal(weir_manual_run_once(NULL, 0, 0), -EINVAL);
    assert_true(weir_manual_timeout(weir_executor_global()) == WEIR_NEVER);
}

TEST(manual, has_no_thread_to_name_or_to_suspend)
{
    weir_executor *executor = make_manual(NULL);
    weir_thread_properties thread;

    assert_int_equal(weir_executor_thread(executor, &thread), -ENOTSUP);
    assert_int_equal(weir_executor_suspend(executor), -ENOTSUP);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_STARTED);
    weir_executor_release(executor);
}

/* ---- one run ---- */

TEST(manual, does_not_wait_by_default)
{
    struct manual_fixture fixture;
    struct call_counter timer = {0};

    manual_fixture_open(&fixture);
    assert_int_equal(
        weir_schedule(fixture.executor, weir_seconds(1), call_counter_task, &timer, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(manual_fixture_run(&fixture), 0);
    assert_int_equal(weir_manual_run_once(fixture.executor, 0, weir_ms(1)), 0);
    assert_int_equal(weir_manual_run_once(fixture.executor, 0, -1), 0);
    manual_fixture_close(&fixture);
}

TEST(manual, refuses_a_negative_wait)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_manual_run_once(executor, -1, 0), -EINVAL);
    assert_int_equal(atomic_load(&counter.calls), 0);
    assert_int_equal(run_now(executor), 1);
    weir_executor_release(executor);
}

struct submission {
    weir_executor *executor;
    struct call_counter *counter;
    weir__thread thread;
};

/* Submits once the owner sleeps inside its run. */
static void submit_to_waiting(void *arg)
{
    struct submission *submission = arg;

    while (atomic_load(&submission->executor->next_wakeup) == WEIR__AWAKE)
        weir__thread_yield();
    IGNORE_RESULT(weir_execute(submission->executor, call_counter_task, submission->counter));
}

TEST(manual, waits_until_it_is_woken)
{
    struct call_counter counter = {0};
    struct submission submission = {make_manual(NULL), &counter, {0}};

    assert_int_equal(weir_execute(submission.executor, call_counter_task, &counter), 0);
    assert_int_equal(run_now(submission.executor), 1);
    atomic_store(&submission.executor->next_wakeup, WEIR__AWAKE); /* until it waits again */
    assert_int_equal(
        weir__thread_start("submitter", submit_to_waiting, &submission, &submission.thread), 0);
    assert_int_equal(weir_manual_run_once(submission.executor, WEIR_NEVER, 0), 1);
    weir__thread_join(&submission.thread);
    assert_int_equal(atomic_load(&counter.run), 2);
    weir_executor_release(submission.executor);
}

TEST(manual, waits_no_longer_than_max_wait)
{
    weir_executor *executor = make_manual(NULL);
    int64_t start_ns = weir__monotonic_now(), took_ns;

    assert_int_equal(weir_manual_run_once(executor, weir_ms(3), 0), 0);
    took_ns = weir__monotonic_now() - start_ns;
    assert_true(took_ns >= weir_ms(3));
    weir_executor_release(executor);
}

TEST(manual, does_not_end_its_wait_for_a_wake_up_of_the_last_run)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter counter = {0};
    int64_t start_ns;

    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_int_equal(run_now(executor), 1);
    start_ns = weir__monotonic_now();
    assert_int_equal(weir_manual_run_once(executor, weir_ms(3), 0), 0);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(3));
    weir_executor_release(executor);
}

TEST(manual, waits_no_longer_than_until_its_next_timer)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter timer = {0};
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_schedule(executor, weir_ms(3), call_counter_task, &timer, NULL), 0);
    assert_int_equal(weir_manual_run_once(executor, WEIR_NEVER, 0), 1);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(3));
    assert_int_equal(atomic_load(&timer.run), 1);
    weir_executor_release(executor);
}

static void advance_when_waiting(void *arg)
{
    struct manual_fixture *fixture = arg;

    while (atomic_load(&fixture->executor->next_wakeup) == WEIR__AWAKE)
        weir__thread_yield();
    (void)weir_manual_clock_advance(fixture->clock, weir_seconds(60));
}

TEST(manual, waits_on_a_manual_clock)
{
    struct manual_fixture fixture;
    struct call_counter timer = {0};
    weir__thread mover;

    manual_fixture_open(&fixture);
    assert_int_equal(
        weir_schedule(fixture.executor, weir_seconds(60), call_counter_task, &timer, NULL), 0);
    atomic_store(&fixture.executor->next_wakeup, WEIR__AWAKE);
    assert_int_equal(weir__thread_start("mover", advance_when_waiting, &fixture, &mover), 0);
    assert_int_equal(weir_manual_run_once(fixture.executor, WEIR_NEVER, 0), 1);
    weir__thread_join(&mover);
    manual_fixture_close(&fixture);
}

struct marker {
    weir_executor *executor;
    weir_executor *seen[2];
};

static void on_mark(void *arg, int status)
{
    struct marker *marker = arg;

    if (status == 0)
        marker->seen[0] = weir_executor_current();
}

TEST(manual, is_current_while_it_runs_tasks)
{
    struct marker marker = {.executor = make_manual(NULL)};

    assert_null(weir_executor_current());
    assert_int_equal(weir_execute(marker.executor, on_mark, &marker), 0);
    assert_int_equal(run_now(marker.executor), 1);
    assert_ptr_equal(marker.seen[0], marker.executor);
    assert_null(weir_executor_current());
    weir_executor_release(marker.executor);
}

static void on_mark_inner(void *arg, int status)
{
    struct marker *marker = arg;

    if (status != 0)
        return;
    IGNORE_RESULT(weir_execute(marker->executor, on_mark, marker));
    (void)run_now(marker->executor);
    marker->seen[1] = weir_executor_current();
}

TEST(manual, restores_the_current_executor)
{
    struct marker marker = {.executor = make_manual(NULL)};
    weir_executor *outer = make_manual(NULL);

    assert_int_equal(weir_execute(outer, on_mark_inner, &marker), 0);
    assert_int_equal(run_now(outer), 1);
    assert_ptr_equal(marker.seen[0], marker.executor);
    assert_ptr_equal(marker.seen[1], outer);
    weir_executor_release(outer);
    weir_executor_release(marker.executor);
}

struct nested {
    weir_executor *executor;
    int result;
    int64_t timeout_ns;
};

static void on_nested(void *arg, int status)
{
    struct nested *nested = arg;

    if (status != 0)
        return;
    nested->result = weir_manual_run_once(nested->executor, WEIR_NEVER, 0);
    nested->timeout_ns = weir_manual_timeout(nested->executor);
}

TEST(manual, is_not_run_from_within_its_own_task)
{
    struct nested nested = {.executor = make_manual(NULL)};

    assert_int_equal(weir_execute(nested.executor, on_nested, &nested), 0);
    assert_int_equal(run_now(nested.executor), 1);
    assert_int_equal(nested.result, -EBUSY);
    assert_true(nested.timeout_ns == WEIR_NEVER);
    weir_executor_release(nested.executor);
}

struct refill {
    weir_executor *executor;
    int left;
};

static void on_refill(void *arg, int status)
{
    struct refill *refill = arg;

    if (status == 0 && --refill->left > 0)
        IGNORE_RESULT(weir_execute(refill->executor, on_refill, refill));
}

/* Budget 0 drains all */
TEST(manual, without_a_budget_runs_until_nothing_is_left)
{
    struct stepper stepper = stepper_open();
    struct refill refill = {stepper.executor, 1000};

    assert_int_equal(weir_execute(stepper.executor, on_refill, &refill), 0);
    assert_int_equal(run_now(stepper.executor), 1000);
    assert_int_equal(refill.left, 0);
    assert_true(weir_manual_timeout(stepper.executor) == WEIR_NEVER);
    stepper_close(&stepper);
}

/* Budget < 0 skips tasks */
TEST(manual, with_a_negative_budget_runs_nothing)
{
    struct stepper stepper = stepper_open();
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(stepper.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_execute_after_turn(stepper.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_schedule(stepper.executor, 0, call_counter_task, &counter, NULL), 0);
    assert_int_equal(weir_manual_run_once(stepper.executor, 0, -1), 0);
    assert_int_equal(weir_manual_run_once(stepper.executor, WEIR_NEVER, INT64_MIN), 0);
    assert_int_equal(atomic_load(&counter.calls), 0);
    assert_int_equal(weir_manual_timeout(stepper.executor), 0);
    (void)run_now(stepper.executor);
    assert_int_equal(atomic_load(&counter.run), 3);
    stepper_close(&stepper);
}

/* Budget > 0 looks at the clock after every task */
TEST(manual, with_a_budget_reads_the_clock_after_every_task)
{
    struct stepper stepper = stepper_open();

    for (int i = 0; i < 7; i++)
        assert_int_equal(weir_execute(stepper.executor, manual_fixture_slow_task, stepper.clock),
                         0);
    assert_int_equal(weir_manual_run_once(stepper.executor, 0, 1), 1);
    assert_int_equal(weir_manual_run_once(stepper.executor, 0, weir_ms(3)), 1);
    assert_int_equal(weir_manual_run_once(stepper.executor, 0, weir_ms(3) + 1), 2);
    assert_int_equal(weir_executor_pending(stepper.executor), 3);
    assert_int_equal(weir_manual_timeout(stepper.executor), 0);
    assert_int_equal(weir_manual_run_once(stepper.executor, WEIR_NEVER, weir_seconds(1)), 3);
    stepper_close(&stepper);
}

TEST(manual, returns_the_number_of_tasks_timers_and_tail_tasks)
{
    struct stepper stepper = stepper_open();
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(stepper.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_execute(stepper.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_schedule(stepper.executor, weir_ms(1), call_counter_task, &counter, NULL),
                     0);
    assert_int_equal(run_now(stepper.executor), 2);
    assert_int_equal(weir_manual_clock_advance(stepper.clock, weir_ms(1)), 0);
    assert_int_equal(run_now(stepper.executor), 1);
    assert_int_equal(run_now(stepper.executor), 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(weir_execute(stepper.executor, call_counter_task, &counter), 0);
    assert_int_equal(run_now(stepper.executor), 200); /* besides the measurements */
    stepper_close(&stepper);
}

static void on_tail_from_task(void *arg, int status)
{
    struct refill *refill = arg;

    if (status == 0)
        IGNORE_RESULT(weir_execute_after_turn(refill->executor, on_refill, refill));
}

TEST(manual, runs_tail_tasks_at_the_end_of_the_run)
{
    struct stepper stepper = stepper_open();
    struct refill refill = {stepper.executor, 2};

    assert_int_equal(weir_execute(stepper.executor, on_tail_from_task, &refill), 0);
    assert_int_equal(run_now(stepper.executor), 2);
    assert_int_equal(refill.left, 1);
    assert_int_equal(run_now(stepper.executor), 1); /* tasks submitted by a tail task run next */
    assert_int_equal(refill.left, 0);
    stepper_close(&stepper);
}

TEST(manual, has_a_bounded_queue_if_asked)
{
    struct call_counter counter = {0};
    weir_executor *executor = make_manual(WEIR_MANUAL_OPTIONS(.max_pending = 1));

    for (int i = 0; i < 16; i++)
        assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_execute(executor, call_counter_task, &counter), WEIR_EFULL);
    assert_int_equal(run_now(executor), 16);
    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_int_equal(run_now(executor), 1);
    weir_executor_release(executor);
}

static int work_nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)status;
    (void)ret_value;
    return 0;
}

TEST(manual, cannot_be_waited_for_by_its_owner)
{
    weir_executor *executor = make_manual(NULL);
    weir_promise *promise;

    assert_int_equal(weir_submit(executor, work_nothing, NULL, &promise), 0);
    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), -EDEADLK);
    assert_int_equal(weir_executor_await_termination(executor, TEST_TIMEOUT_NS), -EDEADLK);
    assert_int_equal(run_now(executor), 1);
    assert_int_equal(weir_promise_sync(promise, 0), 0);
    weir_promise_release(promise);
    weir_executor_release(executor);
}

struct alarm {
    weir_timer timer;
    bool fired;
};

static void on_fired(weir_timer *timer)
{
    WEIR_CONTAINER_OF(timer, struct alarm, timer)->fired = true;
}

TEST(manual, runs_timers_that_its_owner_starts_between_runs)
{
    struct stepper stepper = stepper_open();
    struct alarm alarm = {0};

    assert_int_equal(weir_timer_start(stepper.executor, &alarm.timer, weir_ms(5), on_fired), 0);
    assert_int_equal(weir_manual_timeout(stepper.executor), weir_ms(5));
    assert_int_equal(stepper_advance(&stepper, weir_ms(4)), 0);
    assert_false(alarm.fired);
    assert_int_equal(stepper_advance(&stepper, weir_ms(1)), 1);
    assert_true(alarm.fired);
    stepper_close(&stepper);
}

/* ---- the end ---- */

TEST(manual, is_run_until_it_has_ended)
{
    struct manual_fixture fixture;
    struct call_counter before = {0}, during = {0}, timer = {0}, hook = {0};

    manual_fixture_open(&fixture);
    assert_int_equal(weir_executor_add_shutdown_hook(fixture.executor, call_counter_task, &hook),
                     0);
    assert_int_equal(
        weir_schedule(fixture.executor, weir_seconds(1), call_counter_task, &timer, NULL), 0);
    assert_int_equal(weir_execute(fixture.executor, call_counter_task, &before), 0);
    assert_int_equal(weir_executor_shutdown(fixture.executor, weir_ms(250), weir_seconds(5)), 0);
    assert_int_equal(weir_executor_state(fixture.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_manual_timeout(fixture.executor), 0);

    (void)manual_fixture_run(&fixture);
    assert_int_equal(atomic_load(&before.run), 1);
    assert_int_equal(atomic_load(&timer.cancelled), 1);
    assert_int_equal(weir_manual_timeout(fixture.executor), weir_ms(100));

    /* Tasks are still accepted, and each restarts the quiet period. */
    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_ms(200)), 0);
    assert_int_equal(weir_execute(fixture.executor, call_counter_task, &during), 0);
    (void)manual_fixture_run(&fixture);
    assert_int_equal(atomic_load(&during.run), 1);
    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_ms(200)), 0);
    assert_int_equal(manual_fixture_run(&fixture), 0);
    assert_int_equal(weir_executor_state(fixture.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_manual_timeout(fixture.executor), weir_ms(50));
    assert_int_equal(atomic_load(&hook.calls), 0);

    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_ms(50)), 0);
    assert_int_equal(manual_fixture_run(&fixture), 0);
    assert_int_equal(weir_executor_state(fixture.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(atomic_load(&hook.run), 1);
    assert_int_equal(weir_executor_await_termination(fixture.executor, 0), 0);
    assert_int_equal(manual_fixture_run(&fixture), WEIR_ETERMINATED);
    assert_true(weir_manual_timeout(fixture.executor) == WEIR_NEVER);
    assert_int_equal(weir_execute(fixture.executor, call_counter_task, &during), WEIR_EREJECTED);
    manual_fixture_close(&fixture);
}

TEST(manual, calls_wakeup_when_it_is_shut_down)
{
    struct manual_fixture fixture;

    manual_fixture_open(&fixture);
    assert_int_equal(weir_executor_shutdown(fixture.executor, 0, 0), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(weir_manual_timeout(fixture.executor), 0);
    assert_int_equal(manual_fixture_run(&fixture), 0);
    assert_int_equal(weir_manual_timeout(fixture.executor),
                     0); /* run_once has yet to return WEIR_ETERMINATED */
    assert_int_equal(manual_fixture_run(&fixture), WEIR_ETERMINATED);
    assert_true(weir_manual_timeout(fixture.executor) == WEIR_NEVER);
    manual_fixture_close(&fixture);
}

TEST(manual, cancels_what_is_left_when_its_time_is_up)
{
    struct manual_fixture fixture;
    struct call_counter counter = {0};

    log_capture_start();
    manual_fixture_open(&fixture);
    assert_int_equal(weir_executor_shutdown(fixture.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(manual_fixture_run(&fixture), 0);
    assert_int_equal(weir_execute(fixture.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_seconds(2)), 0);
    assert_int_equal(weir_manual_run_once(fixture.executor, 0, -1), 1); /* cancels it */
    assert_int_equal(atomic_load(&counter.cancelled), 1);
    assert_int_equal(weir_executor_state(fixture.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    manual_fixture_close(&fixture);
}

/* Each takes 3 ms, and there are ten. */
static void assert_three_run_until_the_timeout(struct stepper *stepper)
{
    weir_executor_stats stats;

    (void)stepper_run(stepper);
    assert_int_equal(weir_executor_state(stepper->executor), WEIR_EXECUTOR_TERMINATED);
    weir_executor_read_stats(stepper->executor, &stats);
    assert_int_equal(stats.tasks_run, 3);
    assert_int_equal(stats.tasks_cancelled, 7);
    stepper_close(stepper);
}

TEST(manual, looks_at_its_timeout_after_each_task)
{
    struct stepper stepper = stepper_open();

    log_capture_start();
    for (int i = 0; i < 10; i++)
        assert_int_equal(weir_execute(stepper.executor, manual_fixture_slow_task, stepper.clock),
                         0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, weir_ms(8)), 0);
    assert_three_run_until_the_timeout(&stepper);
}

static void on_shut_down(void *arg, int status)
{
    struct stepper *stepper = arg;

    if (status == 0)
        assert_int_equal(weir_executor_shutdown(stepper->executor, 0, weir_ms(5)), 0);
    manual_fixture_slow_task(stepper->clock, status);
}

TEST(manual, looks_at_the_timeout_of_a_shutdown_by_its_own_task)
{
    struct stepper stepper = stepper_open();

    log_capture_start();
    assert_int_equal(weir_execute(stepper.executor, manual_fixture_slow_task, stepper.clock), 0);
    assert_int_equal(weir_execute(stepper.executor, on_shut_down, &stepper), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(weir_execute(stepper.executor, manual_fixture_slow_task, stepper.clock),
                         0);
    assert_three_run_until_the_timeout(&stepper);
}

TEST(manual, looks_at_its_timeout_after_each_tail_task)
{
    struct stepper stepper = stepper_open();

    log_capture_start();
    for (int i = 0; i < 10; i++)
        assert_int_equal(
            weir_execute_after_turn(stepper.executor, manual_fixture_slow_task, stepper.clock), 0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, weir_ms(8)), 0);
    assert_three_run_until_the_timeout(&stepper);
}

TEST(manual, counts_no_time_after_its_end)
{
    struct manual_fixture fixture;
    weir_executor_stats stats;
    int64_t active_ns;

    manual_fixture_open(&fixture);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_execute(fixture.executor, manual_fixture_slow_task, fixture.clock),
                         0);
    assert_int_equal(weir_executor_shutdown(fixture.executor, 0, weir_seconds(1)), 0);
    (void)manual_fixture_run(&fixture);
    assert_int_equal(manual_fixture_run(&fixture), WEIR_ETERMINATED);
    weir_executor_read_stats(fixture.executor, &stats);
    active_ns = stats.active_ns;
    assert_int_equal(active_ns, weir_ms(6));
    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_seconds(10)), 0);
    weir_executor_read_stats(fixture.executor, &stats);
    assert_int_equal(stats.active_ns, active_ns);
    manual_fixture_close(&fixture);
}

TEST(manual, counts_the_time_of_its_runs_as_active)
{
    struct manual_fixture fixture;
    weir_executor_stats stats;

    manual_fixture_open(&fixture);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(weir_execute(fixture.executor, manual_fixture_slow_task, fixture.clock),
                         0);
        assert_int_equal(manual_fixture_run(&fixture), 1);
        assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_ms(7)), 0);
    }
    weir_executor_read_stats(fixture.executor, &stats);
    assert_int_equal(stats.active_ns, weir_ms(1500));
    assert_true(stats.utilisation > 0.29 && stats.utilisation < 0.31);
    assert_int_equal(stats.tasks_run, 500);
    assert_int_equal(stats.pending, 0);
    manual_fixture_close(&fixture);
}

static void on_termination(weir_promise *promise, void *user_data)
{
    call_counter_task(user_data, weir_promise_result(promise));
}

TEST(manual, runs_its_hooks_with_the_last_reference)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter hook = {0};

    assert_int_equal(weir_executor_add_shutdown_hook(executor, call_counter_task, &hook), 0);
    weir_executor_release(executor);
    assert_int_equal(atomic_load(&hook.run), 1);
}

TEST(manual, cancels_queued_tasks_with_the_last_reference)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter task = {0}, tail = {0}, scheduled = {0}, later = {0}, ended = {0};
    weir_promise *termination = weir_promise_retain(weir_executor_termination(executor)), *promise;
    struct alarm alarm = {0};

    assert_int_equal(weir_promise_add_listener(termination, on_termination, &ended), 0);
    assert_int_equal(weir_execute(executor, call_counter_task, &task), 0);
    assert_int_equal(weir_execute_lazy(executor, call_counter_task, &task), 0);
    assert_int_equal(weir_execute_after_turn(executor, call_counter_task, &tail), 0);
    assert_int_equal(
        weir_schedule(executor, weir_seconds(60), call_counter_task, &scheduled, &promise), 0);
    assert_int_equal(weir_timer_start(executor, &alarm.timer, weir_seconds(60), on_fired), 0);
    assert_int_equal(
        weir_schedule_at_fixed_rate(executor, 0, weir_ms(1), call_counter_task, &later, NULL), 0);
    assert_int_equal(weir_promise_result(promise), -EINPROGRESS);
    weir_promise_release(promise);
    weir_executor_release(executor);

    assert_int_equal(atomic_load(&task.cancelled), 2);
    assert_int_equal(atomic_load(&tail.cancelled), 1);
    assert_int_equal(atomic_load(&later.cancelled), 1);
    assert_int_equal(atomic_load(&scheduled.cancelled), 1);
    assert_int_equal(atomic_load(&task.run) + atomic_load(&tail.run) + atomic_load(&later.run), 0);
    assert_false(alarm.fired);
    assert_false(weir_timer_is_running(&alarm.timer));
    assert_int_equal(weir_promise_result(termination), WEIR_EABANDONED);
    weir_promise_release(termination);
    assert_true(call_counter_await(&ended, 1));
}

static void release_executor(void *executor)
{
    weir_executor_release(executor);
}

TEST(manual, cancels_queued_tasks_when_another_thread_releases_it)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    run_on_other_thread(release_executor, executor);
    assert_int_equal(atomic_load(&counter.cancelled), 1);
}

static void on_release(void *arg, int status)
{
    (void)status;
    weir_executor_release(arg);
}

static void on_tail_submit(void *arg, int status)
{
    struct submission *submission = arg;

    if (status == 0)
        IGNORE_RESULT(weir_execute(submission->executor, call_counter_task, submission->counter));
}

TEST(manual, released_by_its_own_task_ends_after_the_run)
{
    weir_executor *executor = make_manual(NULL);
    struct call_counter before = {0}, after = {0};
    struct submission submission = {executor, &after, {0}};

    assert_int_equal(weir_execute(executor, on_release, executor), 0);
    assert_int_equal(weir_execute(executor, call_counter_task, &before), 0);
    assert_int_equal(weir_execute_after_turn(executor, on_tail_submit, &submission), 0);
    assert_true(run_now(executor) > 2);
    assert_int_equal(atomic_load(&before.run), 1);
    assert_int_equal(atomic_load(&after.cancelled), 1);
}

struct tail_end {
    weir_executor *executor;
    struct call_counter *counter;
    int accepted;
};

static void on_cancelled_submit(void *arg, int status)
{
    struct tail_end *tail_end = arg;

    call_counter_task(tail_end->counter, status);
    tail_end->accepted = weir_execute(tail_end->executor, call_counter_task, tail_end->counter);
}

TEST(manual, rejects_tasks_from_tasks_that_it_cancels)
{
    struct call_counter counter = {0};
    struct tail_end tail_end = {make_manual(NULL), &counter, 0};

    assert_int_equal(weir_execute(tail_end.executor, on_cancelled_submit, &tail_end), 0);
    weir_executor_release(tail_end.executor);
    assert_int_equal(tail_end.accepted, WEIR_EREJECTED);
    assert_int_equal(atomic_load(&counter.calls), 1);
}

/* ---- several threads on behalf of one holder ---- */

static void retain(void *executor)
{
    weir_executor_retain(executor);
}

static void release(void *executor)
{
    weir_executor_release(executor);
}

static void weak_retain(void *executor)
{
    weir__executor_weak_retain(executor);
}

static void weak_release(void *executor)
{
    weir__executor_weak_release(executor);
}

TEST(manual, of_one_holder_is_retained_by_two_threads)
{
    weir_executor *executor = make_manual(NULL);
    weir_promise *termination = weir_promise_retain(weir_executor_termination(executor));

    litmus_references(retain, release, executor);
    litmus_references(weak_retain, weak_release, executor);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(executor->users, 1);
    assert_int_equal(executor->refs.count, 1);
    weir_executor_release(executor);
    assert_true(weir_promise_is_done(termination));
    weir_promise_release(termination);
}
