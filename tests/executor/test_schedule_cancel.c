/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancelling scheduled tasks.
 *
 * With a stepper, the test's thread is the executor's, and the clock is manual.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "os/random.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/job.h"
#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/test.h"

/* ---- cancelling ---- */

TEST(schedule, that_is_cancelled_calls_its_function_to_clean_up_and_never_to_run)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &job, &promise), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_job_ran(&job, 0, 1); /* at once: this is the executor's thread */
    assert_int_equal(weir_promise_cancel(promise), WEIR_ECOMPLETED);
    stepper_advance(&stepper, 100);
    assert_job_ran(&job, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
    assert_job_ran(&job, 0, 1);
}

TEST(schedule, may_be_cancelled_by_another_thread)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &job, &promise), 0);
    run_on_other_thread(cancel_promise, promise);
    assert_true(weir_promise_is_cancelled(promise));
    assert_job_ran(&job, 0, 0);
    stepper_run(&stepper);
    assert_job_ran(&job, 0, 1);
    stepper_advance(&stepper, 10);
    assert_job_ran(&job, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(schedule, that_is_due_when_another_thread_cancels_it_does_not_run)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &job, &promise), 0);
    assert_int_equal(weir_manual_clock_advance(stepper.clock, 10), 0);
    run_on_other_thread(cancel_promise, promise);
    stepper_run(&stepper); /* it fires before the task that stops it runs */
    assert_job_ran(&job, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(schedule, may_be_cancelled_before_the_executor_has_seen_it)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    run_on_other_thread(job_schedule, &job);
    assert_int_equal(weir_promise_cancel(job.promise), 0);
    assert_job_ran(&job, 0, 1);
    stepper_advance(&stepper, 10);
    weir_promise_release(job.promise);

    job.cancellations = 0;
    run_on_other_thread(job_schedule, &job);
    run_on_other_thread(cancel_promise, job.promise);
    stepper_advance(&stepper, 10);
    assert_job_ran(&job, 0, 1);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

static void cancel_own_promise(struct job *job)
{
    assert_int_equal(weir_promise_cancel(job->promise), -EBUSY);
}

TEST(schedule, cannot_be_cancelled_once_it_runs)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .during = cancel_own_promise};

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &job, &job.promise), 0);
    stepper_advance(&stepper, 10);
    assert_job_ran(&job, 1, 0);
    assert_int_equal(weir_promise_result(job.promise), 0);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

static void cancel_other(struct job *job)
{
    assert_int_equal(weir_promise_cancel(job->promise), 0);
}

TEST(schedule, may_be_cancelled_by_one_that_is_due_at_the_same_time)
{
    struct stepper stepper = stepper_open();
    struct job victim = {.stepper = &stepper};
    struct job canceller = {.stepper = &stepper, .during = cancel_other};

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &canceller, NULL), 0);
    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &victim, &canceller.promise), 0);
    stepper_advance(&stepper, 10);
    assert_job_ran(&canceller, 1, 0);
    assert_job_ran(&victim, 0, 1);
    weir_promise_release(canceller.promise);
    stepper_close(&stepper);
}

TEST(schedule, that_repeats_stops_when_it_is_cancelled)
{
    struct stepper stepper = stepper_open();
    struct job here = {.stepper = &stepper}, elsewhere = {.stepper = &stepper};

    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 10, 10, job_task, &here, &here.promise), 0);
    assert_int_equal(weir_schedule_with_fixed_delay(stepper.executor, 10, 10, job_task, &elsewhere,
                                                    &elsewhere.promise),
                     0);
    stepper_advance(&stepper, 10);
    stepper_advance(&stepper, 10);
    assert_int_equal(weir_promise_cancel(here.promise), 0);
    run_on_other_thread(cancel_promise, elsewhere.promise);
    stepper_run(&stepper);
    assert_job_ran(&here, 2, 1);
    assert_job_ran(&elsewhere, 2, 1);
    stepper_advance(&stepper, 1000);
    weir_promise_release(here.promise);
    weir_promise_release(elsewhere.promise);
    stepper_close(&stepper);
    assert_job_ran(&here, 2, 1);
    assert_job_ran(&elsewhere, 2, 1);
}

static void cancel_in_third_run(struct job *job)
{
    if (job->runs == 3)
        assert_int_equal(weir_promise_cancel(job->promise), 0);
    assert_int_equal(job->cancellations, 0); /* not inside a run */
}

TEST(schedule, that_repeats_may_cancel_itself)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .during = cancel_in_third_run};

    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 0, 10, job_task, &job, &job.promise), 0);
    stepper_advance(&stepper, 1000);
    assert_job_ran(&job, 3, 1);
    assert_true(weir_promise_is_cancelled(job.promise));
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

static void succeed_in_second_run(struct job *job)
{
    if (job->runs == 2)
        assert_int_equal(weir_promise_succeed(job->promise, job), 0);
}

TEST(schedule, that_repeats_ends_when_its_promise_is_completed)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .during = succeed_in_second_run};

    assert_int_equal(
        weir_schedule_with_fixed_delay(stepper.executor, 0, 10, job_task, &job, &job.promise), 0);
    for (int i = 0; i < 5; i++)
        stepper_advance(&stepper, 10);
    assert_job_ran(&job, 2, 1);
    assert_int_equal(weir_promise_result(job.promise), 0);
    assert_ptr_equal(weir_promise_value(job.promise), &job);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

static void fail_on_thread(void *arg)
{
    (void)weir_promise_fail(arg, -EIO, NULL);
}

TEST(schedule, that_repeats_ends_when_another_thread_completes_its_promise)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 0, 10, job_task, &job, &job.promise), 0);
    stepper_run(&stepper);
    run_on_other_thread(fail_on_thread, job.promise);
    stepper_advance(&stepper, 10);
    assert_job_ran(&job, 1, 1);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

TEST(schedule, that_repeats_may_be_cancelled_while_it_runs)
{
    struct single_executor single = single_executor_open(NULL);
    struct gate gate = {0};
    weir_promise *promise;

    assert_int_equal(weir_schedule_at_fixed_rate(single.executor, 0, 1, gate_task, &gate, &promise),
                     0);
    assert_true(gate_await_arrivals(&gate, 1));
    assert_int_equal(weir_promise_cancel(promise), 0);
    gate_open(&gate);
    assert_true(gate_await_arrivals(&gate, 2));
    assert_int_equal(gate.arrivals.run, 1);
    assert_int_equal(gate.arrivals.cancelled, 1);
    weir_promise_release(promise);
    single_executor_close(&single);
    assert_int_equal(gate.arrivals.calls, 2);
}

/* ---- races ---- */

#define RACES 400

TEST(schedule, is_run_or_cancelled_once_when_both_race)
{
    static struct call_counter tallies[RACES];
    static weir_promise *promises[RACES];
    static bool cancelled[RACES];
    struct single_executor single = single_executor_open(NULL);
    weir__random random;

    memset(tallies, 0, sizeof(tallies));
    weir__random_init(&random, 12);
    for (int i = 0; i < RACES; i++) {
        assert_int_equal(weir_schedule(single.executor,
                                       weir_us((int64_t)weir__random_below(&random, 50)),
                                       call_counter_task, &tallies[i], &promises[i]),
                         0);
        if (i % 2 == 0)
            weir__thread_yield();
        cancelled[i] = weir_promise_cancel(promises[i]) == 0;
    }
    single_executor_close(&single);
    for (int i = 0; i < RACES; i++) {
        assert_int_equal(tallies[i].run, !cancelled[i]);
        assert_int_equal(tallies[i].cancelled, cancelled[i]);
        assert_int_equal(weir_promise_result(promises[i]), cancelled[i] ? WEIR_ECANCELED : 0);
        weir_promise_release(promises[i]);
    }
}

/* A periodic task that must not run after its clean-up call. */
struct repeated {
    weir_promise *promise;
    unsigned cancellations;
    unsigned faults;
    struct call_counter runs;
};

static void run_repeatedly(void *arg, int status)
{
    struct repeated *repeated = arg;

    if (repeated->cancellations > 0)
        repeated->faults++;
    if (status < 0)
        repeated->cancellations++;
    call_counter_add(&repeated->runs);
}

TEST(schedule, that_repeats_is_cancelled_once_whenever_that_happens)
{
    enum { TASKS = 200 };
    static struct repeated tasks[TASKS];
    struct single_executor single = single_executor_open(NULL);

    memset(tasks, 0, sizeof(tasks));
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(weir_schedule_at_fixed_rate(single.executor, 0, weir_us(20),
                                                     run_repeatedly, &tasks[i], &tasks[i].promise),
                         0);
    for (int i = 0; i < TASKS; i++) {
        assert_true(call_counter_await(&tasks[i].runs, 2));
        assert_int_equal(weir_promise_cancel(tasks[i].promise), 0);
        weir_promise_release(tasks[i].promise);
    }
    single_executor_close(&single);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(tasks[i].cancellations, 1);
        assert_int_equal(tasks[i].faults, 0);
    }
}

/* ---- where listeners run ---- */

TEST(schedule, runs_listeners_right_after_the_task_on_its_executor)
{
    struct stepper stepper = stepper_open();
    struct completion_record record = {0};
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, job_task, &job, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, record_completion, &record), 0);
    assert_int_equal(stepper_advance(&stepper, 10), 1); /* no task for the listener */
    assert_int_equal(record.calls.calls, 1);
    assert_ptr_equal(record.current, stepper.executor);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(schedule, runs_listeners_on_its_executor_when_another_thread_cancels)
{
    struct single_executor single = single_executor_open(NULL);
    struct completion_record record = {0};
    struct call_counter counter = {0};
    weir_promise *promise;

    assert_int_equal(
        weir_schedule(single.executor, weir_seconds(100), call_counter_task, &counter, &promise),
        0);
    assert_int_equal(weir_promise_add_listener(promise, record_completion, &record), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_true(call_counter_await(&record.calls, 1));
    assert_ptr_equal(record.current, single.executor);
    assert_int_equal(record.result, WEIR_ECANCELED);
    weir_promise_release(promise);
    single_executor_close(&single);
    assert_int_equal(counter.cancelled, 1);
}
