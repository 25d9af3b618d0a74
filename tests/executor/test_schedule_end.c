/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How scheduled tasks wake their executor, prevent its suspension, and end with it.
 */
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/timer.h>

#include "support/executor/call_order.h"
#include "support/executor/job.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/test.h"

#define START_NS weir_seconds(1) /* a stepper's */

/* ---- waking and sleeping ---- */

static void schedule_letter(struct single_executor *single, int64_t delay_ns,
                            struct call_order *letters, char letter)
{
    assert_int_equal(weir_schedule(single->executor, delay_ns, call_order_task,
                                   call_order_arg(letters, letter), NULL),
                     0);
}

TEST(schedule, wakes_a_sleeping_executor_only_for_an_earlier_deadline)
{
    struct single_executor single = single_executor_open_at(START_NS);
    struct call_order letters = {0};
    uint64_t wakeups;

    schedule_letter(&single, 200, &letters, 'b');
    assert_true(single_executor_await_sleep(&single, START_NS + 200));
    wakeups = single_executor_stats(&single).wakeups_made;

    schedule_letter(&single, 300, &letters, 'c');
    schedule_letter(&single, 200, &letters, 'd');
    assert_int_equal(single_executor_stats(&single).wakeups_made, wakeups);
    assert_true(single_executor_await_sleep(&single, START_NS + 200));

    schedule_letter(&single, 100, &letters, 'a');
    assert_int_equal(single_executor_stats(&single).wakeups_made, wakeups + 1);
    assert_true(single_executor_await_sleep(&single, START_NS + 100));
    assert_int_equal(weir_manual_clock_advance(single.clock, 300), 0);
    assert_true(call_order_await(&letters, 4));
    assert_string_equal(letters.text, "abdc");
    single_executor_close(&single);
}

TEST(schedule, does_not_wake_its_executor_when_it_is_cancelled)
{
    struct single_executor single = single_executor_open_at(START_NS);
    struct call_counter counter = {0}, task = {0};
    weir_promise *promise;
    uint64_t wakeups;

    assert_int_equal(weir_schedule(single.executor, 200, call_counter_task, &counter, &promise), 0);
    assert_true(single_executor_await_sleep(&single, START_NS + 200));
    wakeups = single_executor_stats(&single).wakeups_made;
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(single_executor_stats(&single).wakeups_made, wakeups);
    assert_int_equal(counter.calls, 0);

    assert_int_equal(weir_execute(single.executor, call_counter_task, &task), 0);
    assert_true(call_counter_await(&task, 1));
    assert_int_equal(counter.cancelled, 1); /* that was ahead of the task */
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(schedule, that_is_cancelled_lets_its_executor_be_suspended)
{
    struct single_executor single = single_executor_open_at(START_NS);
    struct call_counter counter = {0};
    weir_promise *promise;

    assert_int_equal(weir_schedule(single.executor, 200, call_counter_task, &counter, &promise), 0);
    assert_true(single_executor_await_sleep(&single, START_NS + 200));
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    assert_int_equal(counter.cancelled, 1);
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(schedule, brings_a_suspended_executor_back)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    weir_promise *promise;

    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_int_equal(weir_schedule(single.executor, 1, call_counter_task, &counter, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    assert_int_equal(counter.run, 1);
    weir_promise_release(promise);
    single_executor_close(&single);
}

/* ---- the end of the executor ---- */

TEST(schedule, is_cancelled_when_its_executor_shuts_down)
{
    struct stepper stepper = stepper_open();
    struct job jobs[4] = {
        {.stepper = &stepper}, {.stepper = &stepper}, {.stepper = &stepper}, {.stepper = &stepper}};
    weir_executor *executor = stepper.executor;

    assert_int_equal(weir_schedule(executor, 10, job_task, &jobs[0], &jobs[0].promise), 0);
    assert_int_equal(
        weir_schedule_at_fixed_rate(executor, 0, 10, job_task, &jobs[1], &jobs[1].promise), 0);
    assert_int_equal(
        weir_schedule_with_fixed_delay(executor, 10, 10, job_task, &jobs[2], &jobs[2].promise), 0);
    assert_int_equal(weir_schedule(executor, 10, job_task, &jobs[3], &jobs[3].promise), 0);
    assert_true(weir_promise_set_uncancellable(jobs[3].promise));
    stepper_run(&stepper);
    assert_int_equal(weir_executor_shutdown(executor, 0, weir_seconds(1)), 0);
    stepper_run(&stepper);
    for (int i = 0; i < 4; i++) {
        assert_job_ran(&jobs[i], i == 1, 1);
        assert_int_equal(weir_promise_result(jobs[i].promise), WEIR_ECANCELED);
        weir_promise_release(jobs[i].promise);
    }
    stepper_close(&stepper);
}

TEST(schedule, that_the_executor_has_not_seen_is_cancelled_with_its_queue)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    log_capture_start();
    run_on_other_thread(job_schedule, &job);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    (void)weir_manual_run_once(stepper.executor, 0, -1);
    assert_job_ran(&job, 0, 1);
    assert_true(weir_promise_is_cancelled(job.promise));
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

TEST(schedule, that_was_cancelled_is_not_cancelled_again_with_its_executor)
{
    struct stepper stepper = stepper_open();
    struct job filed = {.stepper = &stepper}, unfiled = {.stepper = &stepper};

    log_capture_start();
    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &filed, &filed.promise), 0);
    run_on_other_thread(cancel_promise, filed.promise);
    run_on_other_thread(job_schedule, &unfiled);
    assert_int_equal(weir_promise_cancel(unfiled.promise), 0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    (void)weir_manual_run_once(stepper.executor, 0, -1);
    assert_job_ran(&filed, 0, 1);
    assert_job_ran(&unfiled, 0, 1);
    weir_promise_release(filed.promise);
    weir_promise_release(unfiled.promise);
    stepper_close(&stepper);
}

static void schedule_again(void *arg, int status)
{
    struct job *job = arg;

    (void)status; /* which it should have read */
    job->runs++;
    IGNORE_RESULT(weir_schedule(job->stepper->executor, 10, schedule_again, job, NULL));
}

TEST(schedule, that_comes_back_when_it_is_cancelled_does_not_hold_up_the_end)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule(stepper.executor, 10, schedule_again, &job, NULL), 0);
    stepper_advance(&stepper, 10);
    assert_int_equal(job.runs, 1);
    stepper_close(&stepper);
    assert_true(job.runs > 1);
}

TEST(schedule, after_the_end_is_refused)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *ended = weir_executor_retain(single.executor);
    struct call_counter counter = {0};
    weir_promise *promise = NULL;

    single_executor_close(&single);
    assert_int_equal(weir_schedule(ended, 0, call_counter_task, &counter, &promise),
                     WEIR_EREJECTED);
    assert_int_equal(
        weir_schedule_at_fixed_rate(ended, 0, 1, call_counter_task, &counter, &promise),
        WEIR_EREJECTED);
    assert_int_equal(
        weir_schedule_with_fixed_delay(ended, 0, 1, call_counter_task, &counter, &promise),
        WEIR_EREJECTED);
    assert_null(promise);
    assert_int_equal(counter.calls, 0);
    weir_executor_release(ended);
}

TEST(schedule, may_be_cancelled_after_the_end)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &job, &job.promise), 0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    stepper_run(&stepper);
    assert_int_equal(weir_promise_cancel(job.promise), WEIR_ECOMPLETED);
    assert_job_ran(&job, 0, 1);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}
