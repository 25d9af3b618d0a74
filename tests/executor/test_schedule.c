/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that run later, or again and again.
 *
 * Where a stepper is used, the test's thread is the executor's, and time passes when it says so.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/schedule.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "support/executor/errand.h"
#include "support/executor/gate.h"
#include "support/executor/messages.h"
#include "support/executor/promises.h"
#include "support/executor/solo.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

#define PATIENCE_NS weir_seconds(10)
#define START_NS weir_seconds(1) /* a stepper's */
#define RUNS_MAX 16

/* A task on a stepper that notes when it runs, and takes its time for it. */
struct job {
    struct stepper *stepper;
    int64_t takes_ns;
    unsigned runs;
    int64_t at_ns[RUNS_MAX]; /* since the stepper's start */
    unsigned cancellations;
    void (*during)(struct job *job); /* NULL = nothing */
    weir_promise *promise;
};

static int64_t now(const struct stepper *stepper)
{
    const weir_clock *clock = weir_manual_clock_clock(stepper->clock);

    return clock->now(clock) - START_NS;
}

static void do_job(void *arg, int status)
{
    struct job *job = arg;

    if (status < 0) {
        assert_int_equal(status, WEIR_ECANCELED);
        job->cancellations++;
        return;
    }
    assert_int_equal(job->cancellations, 0);
    if (job->runs < RUNS_MAX)
        job->at_ns[job->runs] = now(job->stepper);
    job->runs++;
    assert_int_equal(weir_manual_clock_advance(job->stepper->clock, job->takes_ns), 0);
    if (job->during != NULL)
        job->during(job);
}

static void assert_ran(const struct job *job, unsigned runs, unsigned cancellations)
{
    assert_int_equal(job->runs, runs);
    assert_int_equal(job->cancellations, cancellations);
}

/* ---- once ---- */

TEST(schedule, runs_once_when_due_and_completes_its_promise)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 1000, &promise, do_job, &job), 0);
    assert_ptr_equal(weir_promise_executor(promise), stepper.executor);
    assert_int_equal(stepper_advance(&stepper, 999), 0);
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    assert_int_equal(weir_promise_result(promise), 0);
    assert_null(weir_promise_value(promise));
    stepper_advance(&stepper, weir_seconds(1));
    assert_ran(&job, 1, 0);
    weir_promise_release(promise);
    stepper_close(&stepper);
    assert_ran(&job, 1, 0);
}

TEST(schedule, takes_a_negative_delay_for_none)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule(stepper.executor, -weir_seconds(9), NULL, do_job, &job), 0);
    assert_ran(&job, 0, 0);
    stepper_run(&stepper);
    assert_ran(&job, 1, 0);
    stepper_close(&stepper);
}

TEST(schedule, runs_though_nobody_wants_the_promise)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 1, &promise, do_job, &job), 0);
    weir_promise_release(promise);
    assert_int_equal(weir_schedule(stepper.executor, 1, NULL, do_job, &job), 0);
    stepper_advance(&stepper, 1);
    assert_ran(&job, 2, 0);
    stepper_close(&stepper);
}

TEST(schedule, runs_in_the_order_of_deadlines_then_of_submission)
{
    struct stepper stepper = stepper_open();
    struct letters letters = {0};
    static const struct {
        char letter;
        int64_t delay_ns;
    } tasks[] = {{'c', 20}, {'a', 10}, {'d', 20}, {'b', 10}, {'e', 30}};

    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_schedule(stepper.executor, tasks[i].delay_ns, NULL, letters_task,
                                       letters_arg(&letters, tasks[i].letter)),
                         0);
    stepper_advance(&stepper, 30);
    assert_string_equal(letters.text, "abcde");
    stepper_close(&stepper);
}

struct outside {
    weir_executor *executor;
    struct letters letters;
    int err;
};

static void schedule_from_outside(void *arg)
{
    struct outside *outside = arg;
    static const char order[] = "badc"; /* of submission; deadlines go by pairs */

    for (int i = 0; i < 4 && outside->err == 0; i++)
        outside->err = weir_schedule(outside->executor, i < 2 ? 10 : 20, NULL, letters_task,
                                     letters_arg(&outside->letters, order[i]));
}

TEST(schedule, from_another_thread_keeps_the_order_too)
{
    struct stepper stepper = stepper_open();
    struct outside outside = {.executor = stepper.executor};

    errand_elsewhere(schedule_from_outside, &outside);
    assert_int_equal(outside.err, 0);
    stepper_advance(&stepper, 9);
    assert_string_equal(outside.letters.text, "");
    stepper_advance(&stepper, 11);
    assert_string_equal(outside.letters.text, "badc");
    stepper_close(&stepper);
}

struct late_start {
    weir_executor *executor;
    struct job *job;
};

static void schedule_job(void *arg)
{
    struct late_start *late_start = arg;

    (void)weir_schedule(late_start->executor, 10, &late_start->job->promise, do_job,
                        late_start->job);
}

TEST(schedule, counts_from_the_submission_however_late_the_executor_hears_of_it)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    struct late_start late_start = {stepper.executor, &job};

    errand_elsewhere(schedule_job, &late_start);
    stepper_advance(&stepper, 25); /* is filed, and long due */
    assert_ran(&job, 1, 0);
    assert_int_equal(job.at_ns[0], 25);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

/* D 12 */
TEST(schedule, never_runs_early)
{
    struct solo solo = solo_open(NULL);
    weir_promise *promise;
    struct tally tally = {0};

    for (int i = 0; i < 10; i++) {
        int64_t deadline_ns = weir__monotonic_now() + weir_ms(2);

        assert_int_equal(weir_schedule(solo.executor, weir_ms(2), &promise, tally_task, &tally), 0);
        assert_int_equal(weir_promise_sync(promise, PATIENCE_NS), 0);
        assert_true(weir__monotonic_now() >= deadline_ns);
        weir_promise_release(promise);
    }
    assert_int_equal(tally.run, 10);
    solo_close(&solo);
}

TEST(schedule, that_overflows_never_runs)
{
    struct stepper stepper = stepper_open();
    struct job never = {.stepper = &stepper}, rate = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, WEIR_NEVER, &promise, do_job, &never), 0);
    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 10, WEIR_NEVER, NULL, do_job, &rate), 0);
    stepper_advance(&stepper, WEIR_NEVER / 2);
    assert_ran(&never, 0, 0);
    assert_ran(&rate, 1, 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_ran(&never, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
    assert_ran(&rate, 1, 1);
}

TEST(schedule, works_on_the_global_executor)
{
    struct tally tally = {0};
    weir_promise *promise;

    assert_int_equal(
        weir_schedule(weir_executor_global(), weir_us(100), &promise, tally_task, &tally), 0);
    assert_int_equal(weir_promise_sync(promise, PATIENCE_NS), 0);
    assert_int_equal(tally.run, 1);
    weir_promise_release(promise);
}

/* ---- again and again ---- */

/* D 13 */
TEST(schedule, at_a_fixed_rate_keeps_its_phase_however_long_a_run_takes)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .takes_ns = 50};
    weir_promise *promise;

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 30, 100, &promise, do_job, &job),
                     0);
    while (now(&stepper) < 400)
        stepper_advance(&stepper, 1);
    assert_ran(&job, 4, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(job.at_ns[i], 30 + i * 100);
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

/* D 13 */
TEST(schedule, at_a_fixed_rate_makes_up_for_missed_runs)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 100, NULL, do_job, &job), 0);
    stepper_run(&stepper);
    assert_ran(&job, 1, 0);
    stepper_advance(&stepper, 401);
    assert_ran(&job, 5, 0);
    for (int i = 1; i < 5; i++)
        assert_int_equal(job.at_ns[i], 401);
    stepper_advance(&stepper, 98);
    assert_ran(&job, 5, 0);
    stepper_advance(&stepper, 1); /* back in phase */
    assert_ran(&job, 6, 0);
    stepper_close(&stepper);
}

/* D 14 */
TEST(schedule, with_a_fixed_delay_counts_from_the_end_of_each_run)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .takes_ns = 30};

    assert_int_equal(weir_schedule_with_fixed_delay(stepper.executor, 10, 100, NULL, do_job, &job),
                     0);
    stepper_advance(&stepper, 10);
    assert_int_equal(now(&stepper), 40);
    stepper_advance(&stepper, 99);
    assert_ran(&job, 1, 0);
    stepper_advance(&stepper, 1);
    assert_ran(&job, 2, 0);
    assert_int_equal(job.at_ns[1], 140);

    stepper_advance(&stepper, weir_seconds(1)); /* a stall is not made up for */
    assert_ran(&job, 3, 0);
    stepper_close(&stepper);
}

TEST(schedule, repeats_without_further_memory)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    size_t allocations = test_memory_allocations();

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 1, NULL, do_job, &job), 0);
    assert_int_equal(test_memory_allocations(), allocations + 1);
    stepper_advance(&stepper, 99);
    assert_ran(&job, 100, 0);
    assert_int_equal(test_memory_allocations(), allocations + 1);
    stepper_close(&stepper);
}

static void note_runs(void *arg, int status)
{
    struct job *job = arg;

    job->at_ns[0] = status == 0 ? (int64_t)job->runs : -1;
}

static void execute_in_first_run(struct job *job)
{
    if (job->runs == 1)
        assert_int_equal(weir_execute(job->stepper->executor, note_runs, job), 0);
}

TEST(schedule, that_lags_behind_lets_tasks_run_between)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .during = execute_in_first_run};

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 1, NULL, do_job, &job), 0);
    stepper_advance(&stepper, 999);
    assert_int_equal(job.runs, 1000);
    assert_in_range(job.at_ns[0], 1, 999);
    stepper_close(&stepper);
}

/* ---- cancelling ---- */

TEST(schedule, that_is_cancelled_calls_its_function_to_clean_up_and_never_to_run)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, &promise, do_job, &job), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_ran(&job, 0, 1); /* here, at once: this is the executor's thread */
    assert_int_equal(weir_promise_cancel(promise), WEIR_ECOMPLETED);
    stepper_advance(&stepper, 100);
    assert_ran(&job, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
    assert_ran(&job, 0, 1);
}

static void cancel_elsewhere(void *arg)
{
    (void)weir_promise_cancel(arg);
}

TEST(schedule, may_be_cancelled_by_another_thread)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, &promise, do_job, &job), 0);
    errand_elsewhere(cancel_elsewhere, promise);
    assert_true(weir_promise_is_cancelled(promise));
    assert_ran(&job, 0, 0);
    stepper_run(&stepper);
    assert_ran(&job, 0, 1);
    stepper_advance(&stepper, 10);
    assert_ran(&job, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(schedule, that_is_due_when_another_thread_cancels_it_does_not_run)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 10, &promise, do_job, &job), 0);
    assert_int_equal(weir_manual_clock_advance(stepper.clock, 10), 0);
    errand_elsewhere(cancel_elsewhere, promise);
    stepper_run(&stepper); /* it fires before its removal comes up */
    assert_ran(&job, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(schedule, may_be_cancelled_before_the_executor_has_heard_of_it)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    struct late_start late_start = {stepper.executor, &job};

    errand_elsewhere(schedule_job, &late_start);
    assert_int_equal(weir_promise_cancel(job.promise), 0);
    assert_ran(&job, 0, 1);
    stepper_advance(&stepper, 10);
    weir_promise_release(job.promise);

    job.cancellations = 0;
    errand_elsewhere(schedule_job, &late_start);
    errand_elsewhere(cancel_elsewhere, job.promise);
    stepper_advance(&stepper, 10);
    assert_ran(&job, 0, 1);
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

    assert_int_equal(weir_schedule(stepper.executor, 10, &job.promise, do_job, &job), 0);
    stepper_advance(&stepper, 10);
    assert_ran(&job, 1, 0);
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

    assert_int_equal(weir_schedule(stepper.executor, 10, NULL, do_job, &canceller), 0);
    assert_int_equal(weir_schedule(stepper.executor, 10, &canceller.promise, do_job, &victim), 0);
    stepper_advance(&stepper, 10);
    assert_ran(&canceller, 1, 0);
    assert_ran(&victim, 0, 1);
    weir_promise_release(canceller.promise);
    stepper_close(&stepper);
}

/* D 15 */
TEST(schedule, that_repeats_stops_when_it_is_cancelled)
{
    struct stepper stepper = stepper_open();
    struct job here = {.stepper = &stepper}, elsewhere = {.stepper = &stepper};

    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 10, 10, &here.promise, do_job, &here), 0);
    assert_int_equal(weir_schedule_with_fixed_delay(stepper.executor, 10, 10, &elsewhere.promise,
                                                    do_job, &elsewhere),
                     0);
    stepper_advance(&stepper, 10);
    stepper_advance(&stepper, 10);
    assert_int_equal(weir_promise_cancel(here.promise), 0);
    errand_elsewhere(cancel_elsewhere, elsewhere.promise);
    stepper_run(&stepper);
    assert_ran(&here, 2, 1);
    assert_ran(&elsewhere, 2, 1);
    stepper_advance(&stepper, 1000);
    weir_promise_release(here.promise);
    weir_promise_release(elsewhere.promise);
    stepper_close(&stepper);
    assert_ran(&here, 2, 1);
    assert_ran(&elsewhere, 2, 1);
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
        weir_schedule_at_fixed_rate(stepper.executor, 0, 10, &job.promise, do_job, &job), 0);
    stepper_advance(&stepper, 1000);
    assert_ran(&job, 3, 1);
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
        weir_schedule_with_fixed_delay(stepper.executor, 0, 10, &job.promise, do_job, &job), 0);
    for (int i = 0; i < 5; i++)
        stepper_advance(&stepper, 10);
    assert_ran(&job, 2, 1);
    assert_int_equal(weir_promise_result(job.promise), 0);
    assert_ptr_equal(weir_promise_value(job.promise), &job);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

static void fail_elsewhere(void *arg)
{
    (void)weir_promise_fail(arg, -EIO, NULL);
}

TEST(schedule, that_repeats_ends_when_another_thread_completes_its_promise)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 0, 10, &job.promise, do_job, &job), 0);
    stepper_run(&stepper);
    errand_elsewhere(fail_elsewhere, job.promise);
    stepper_advance(&stepper, 10);
    assert_ran(&job, 1, 1);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

TEST(schedule, that_repeats_may_be_cancelled_while_it_runs)
{
    struct solo solo = solo_open(NULL);
    struct gate gate = {0};
    weir_promise *promise;

    assert_int_equal(weir_schedule_at_fixed_rate(solo.executor, 0, 1, &promise, gate_task, &gate),
                     0);
    assert_true(gate_await_arrivals(&gate, 1));
    assert_int_equal(weir_promise_cancel(promise), 0);
    gate_open(&gate);
    assert_true(gate_await_arrivals(&gate, 2));
    assert_int_equal(gate.arrivals.run, 1);
    assert_int_equal(gate.arrivals.cancelled, 1);
    weir_promise_release(promise);
    solo_close(&solo);
    assert_int_equal(gate.arrivals.calls, 2);
}

/* ---- waking and sleeping ---- */

/* An executor on a clock that the test moves. */
struct clocked {
    weir_manual_clock *clock;
    struct solo solo;
};

static struct clocked clocked_open(void)
{
    struct clocked clocked;

    assert_int_equal(weir_manual_clock_create(START_NS, &clocked.clock), 0);
    clocked.solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clocked.clock)));
    return clocked;
}

static void clocked_close(struct clocked *clocked)
{
    solo_close(&clocked->solo);
    weir_manual_clock_release(clocked->clock);
}

static void schedule_letter(struct clocked *clocked, int64_t delay_ns, struct letters *letters,
                            char letter)
{
    assert_int_equal(weir_schedule(clocked->solo.executor, delay_ns, NULL, letters_task,
                                   letters_arg(letters, letter)),
                     0);
}

/* B 3 */
TEST(schedule, wakes_a_sleeping_executor_only_for_an_earlier_deadline)
{
    struct clocked clocked = clocked_open();
    struct letters letters = {0};
    uint64_t wakeups;

    schedule_letter(&clocked, 200, &letters, 'b');
    assert_true(solo_await_sleep(&clocked.solo, START_NS + 200));
    wakeups = solo_stats(&clocked.solo).wakeups_made;

    schedule_letter(&clocked, 300, &letters, 'c');
    schedule_letter(&clocked, 200, &letters, 'd');
    assert_int_equal(solo_stats(&clocked.solo).wakeups_made, wakeups);
    assert_true(solo_await_sleep(&clocked.solo, START_NS + 200));

    schedule_letter(&clocked, 100, &letters, 'a');
    assert_int_equal(solo_stats(&clocked.solo).wakeups_made, wakeups + 1);
    assert_true(solo_await_sleep(&clocked.solo, START_NS + 100));
    assert_int_equal(weir_manual_clock_advance(clocked.clock, 300), 0);
    assert_true(letters_await(&letters, 4));
    assert_string_equal(letters.text, "abdc");
    clocked_close(&clocked);
}

TEST(schedule, wakes_nobody_when_it_is_cancelled)
{
    struct clocked clocked = clocked_open();
    struct tally tally = {0}, task = {0};
    weir_promise *promise;
    uint64_t wakeups;

    assert_int_equal(weir_schedule(clocked.solo.executor, 200, &promise, tally_task, &tally), 0);
    assert_true(solo_await_sleep(&clocked.solo, START_NS + 200));
    wakeups = solo_stats(&clocked.solo).wakeups_made;
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(solo_stats(&clocked.solo).wakeups_made, wakeups);
    assert_int_equal(tally.calls, 0);

    assert_int_equal(weir_execute(clocked.solo.executor, tally_task, &task), 0);
    assert_true(tally_await(&task, 1));
    assert_int_equal(tally.cancelled, 1); /* that was ahead of the task */
    weir_promise_release(promise);
    clocked_close(&clocked);
}

/* D 3 */
TEST(schedule, that_is_cancelled_lets_its_executor_be_suspended)
{
    struct clocked clocked = clocked_open();
    struct tally tally = {0};
    weir_promise *promise;

    assert_int_equal(weir_schedule(clocked.solo.executor, 200, &promise, tally_task, &tally), 0);
    assert_true(solo_await_sleep(&clocked.solo, START_NS + 200));
    assert_int_equal(weir_executor_suspend(clocked.solo.executor), 0);
    assert_true(solo_await_sleep(&clocked.solo, START_NS + 200));
    assert_int_equal(weir_executor_state(clocked.solo.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_true(solo_await_state(&clocked.solo, WEIR_EXECUTOR_SUSPENDED));
    assert_int_equal(tally.cancelled, 1);
    weir_promise_release(promise);
    clocked_close(&clocked);
}

TEST(schedule, brings_a_suspended_executor_back)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    weir_promise *promise;

    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_int_equal(weir_schedule(solo.executor, 1, &promise, tally_task, &tally), 0);
    assert_int_equal(weir_promise_sync(promise, PATIENCE_NS), 0);
    assert_int_equal(tally.run, 1);
    weir_promise_release(promise);
    solo_close(&solo);
}

/* ---- the end of the executor ---- */

TEST(schedule, is_cancelled_when_its_executor_shuts_down)
{
    struct stepper stepper = stepper_open();
    struct job jobs[4] = {
        {.stepper = &stepper}, {.stepper = &stepper}, {.stepper = &stepper}, {.stepper = &stepper}};
    weir_executor *executor = stepper.executor;

    assert_int_equal(weir_schedule(executor, 10, &jobs[0].promise, do_job, &jobs[0]), 0);
    assert_int_equal(
        weir_schedule_at_fixed_rate(executor, 0, 10, &jobs[1].promise, do_job, &jobs[1]), 0);
    assert_int_equal(
        weir_schedule_with_fixed_delay(executor, 10, 10, &jobs[2].promise, do_job, &jobs[2]), 0);
    assert_int_equal(weir_schedule(executor, 10, &jobs[3].promise, do_job, &jobs[3]), 0);
    assert_true(weir_promise_set_uncancellable(jobs[3].promise));
    stepper_run(&stepper);
    assert_int_equal(weir_executor_shutdown(executor, 0, weir_seconds(1)), 0);
    stepper_run(&stepper);
    for (int i = 0; i < 4; i++) {
        assert_ran(&jobs[i], i == 1, 1);
        assert_int_equal(weir_promise_result(jobs[i].promise), WEIR_ECANCELED);
        weir_promise_release(jobs[i].promise);
    }
    stepper_close(&stepper);
}

TEST(schedule, that_the_executor_has_not_heard_of_is_cancelled_with_its_queue)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    struct late_start late_start = {stepper.executor, &job};

    messages_catch();
    errand_elsewhere(schedule_job, &late_start);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    (void)weir_manual_run_once(stepper.executor, 0, -1);
    assert_ran(&job, 0, 1);
    assert_true(weir_promise_is_cancelled(job.promise));
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

TEST(schedule, that_was_cancelled_is_not_cancelled_again_with_its_executor)
{
    struct stepper stepper = stepper_open();
    struct job filed = {.stepper = &stepper}, unfiled = {.stepper = &stepper};
    struct late_start late_start = {stepper.executor, &unfiled};

    messages_catch();
    assert_int_equal(weir_schedule(stepper.executor, 10, &filed.promise, do_job, &filed), 0);
    errand_elsewhere(cancel_elsewhere, filed.promise);
    errand_elsewhere(schedule_job, &late_start);
    assert_int_equal(weir_promise_cancel(unfiled.promise), 0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    (void)weir_manual_run_once(stepper.executor, 0, -1);
    assert_ran(&filed, 0, 1);
    assert_ran(&unfiled, 0, 1);
    weir_promise_release(filed.promise);
    weir_promise_release(unfiled.promise);
    stepper_close(&stepper);
}

static void schedule_again(void *arg, int status)
{
    struct job *job = arg;

    (void)status; /* which it should have looked at */
    job->runs++;
    (void)weir_schedule(job->stepper->executor, 10, NULL, schedule_again, job);
}

TEST(schedule, that_comes_back_when_it_is_cancelled_does_not_hold_up_the_end)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule(stepper.executor, 10, NULL, schedule_again, &job), 0);
    stepper_advance(&stepper, 10);
    assert_int_equal(job.runs, 1);
    stepper_close(&stepper);
    assert_true(job.runs > 1);
}

TEST(schedule, after_the_end_is_refused)
{
    struct solo solo = solo_open(NULL);
    weir_executor *ended = weir_executor_retain(solo.executor);
    struct tally tally = {0};
    weir_promise *promise = NULL;

    solo_close(&solo);
    assert_int_equal(weir_schedule(ended, 0, &promise, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_schedule_at_fixed_rate(ended, 0, 1, &promise, tally_task, &tally),
                     WEIR_EREJECTED);
    assert_int_equal(weir_schedule_with_fixed_delay(ended, 0, 1, &promise, tally_task, &tally),
                     WEIR_EREJECTED);
    assert_null(promise);
    assert_int_equal(tally.calls, 0);
    weir_executor_release(ended);
}

TEST(schedule, may_be_cancelled_after_the_end)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule(stepper.executor, 10, &job.promise, do_job, &job), 0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    stepper_run(&stepper);
    assert_int_equal(weir_promise_cancel(job.promise), WEIR_ECOMPLETED);
    assert_ran(&job, 0, 1);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

/* ---- errors ---- */

TEST(schedule, refuses_bad_arguments)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_executor *executor = stepper.executor, *immediate = weir_executor_immediate();
    weir_promise *promise = NULL;

    assert_int_equal(weir_schedule(NULL, 0, &promise, do_job, &job), -EINVAL);
    assert_int_equal(weir_schedule(executor, 0, &promise, NULL, &job), -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, -1, 1, &promise, do_job, &job), -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, 0, &promise, do_job, &job), -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, -1, &promise, do_job, &job), -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, 1, &promise, NULL, &job), -EINVAL);
    assert_int_equal(weir_schedule_with_fixed_delay(executor, -1, 1, &promise, do_job, &job),
                     -EINVAL);
    assert_int_equal(weir_schedule_with_fixed_delay(executor, 0, 0, &promise, do_job, &job),
                     -EINVAL);
    assert_int_equal(weir_schedule_with_fixed_delay(NULL, 0, 1, &promise, do_job, &job), -EINVAL);
    assert_int_equal(weir_schedule(immediate, 0, &promise, do_job, &job), -ENOTSUP);
    assert_int_equal(weir_schedule_at_fixed_rate(immediate, 0, 1, &promise, do_job, &job),
                     -ENOTSUP);
    assert_null(promise);
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    assert_ran(&job, 0, 0);
    stepper_close(&stepper);
}

TEST(schedule, says_when_there_is_no_memory)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_schedule(stepper.executor, 0, &promise, do_job, &job), -ENOMEM);
    test_memory_fail_at(1);
    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 1, &promise, do_job, &job),
                     -ENOMEM);
    assert_null(promise);
    stepper_run(&stepper);
    assert_ran(&job, 0, 0);
    assert_int_equal(weir_schedule(stepper.executor, 0, NULL, do_job, &job), 0);
    stepper_run(&stepper);
    assert_ran(&job, 1, 0);
    stepper_close(&stepper);
}

TEST(schedule, that_finds_no_thread_is_refused)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    weir_promise *promise = NULL;

    messages_catch();
    test_memory_fail_at(2); /* after the promise, the thread's */
    assert_int_equal(weir_schedule(solo.executor, 0, &promise, tally_task, &tally), -ENOMEM);
    assert_true(test_memory_failed());
    assert_null(promise);
    assert_int_equal(tally.calls, 0);
    assert_int_equal(weir_schedule(solo.executor, 0, &promise, tally_task, &tally), 0);
    assert_int_equal(weir_promise_sync(promise, PATIENCE_NS), 0);
    weir_promise_release(promise);
    solo_close(&solo);
}

/* ---- races ---- */

#define RACES 400

TEST(schedule, is_run_or_cancelled_once_when_both_race)
{
    static struct tally tallies[RACES];
    static weir_promise *promises[RACES];
    static bool cancelled[RACES];
    struct solo solo = solo_open(NULL);
    weir__random random;

    memset(tallies, 0, sizeof(tallies));
    weir__random_init(&random, 12);
    for (int i = 0; i < RACES; i++) {
        assert_int_equal(weir_schedule(solo.executor,
                                       weir_us((int64_t)weir__random_below(&random, 50)),
                                       &promises[i], tally_task, &tallies[i]),
                         0);
        if (i % 2 == 0)
            weir__thread_yield();
        cancelled[i] = weir_promise_cancel(promises[i]) == 0;
    }
    solo_close(&solo);
    for (int i = 0; i < RACES; i++) {
        assert_int_equal(tallies[i].run, !cancelled[i]);
        assert_int_equal(tallies[i].cancelled, cancelled[i]);
        assert_int_equal(weir_promise_result(promises[i]), cancelled[i] ? WEIR_ECANCELED : 0);
        weir_promise_release(promises[i]);
    }
}

/* A repeated task that must not run after its cancellation was told. */
struct repeated {
    weir_promise *promise;
    unsigned cancellations;
    unsigned faults;
    struct tally runs;
};

static void run_repeatedly(void *arg, int status)
{
    struct repeated *repeated = arg;

    if (repeated->cancellations > 0)
        repeated->faults++;
    if (status < 0)
        repeated->cancellations++;
    tally_add(&repeated->runs);
}

TEST(schedule, that_repeats_is_cancelled_once_whenever_that_happens)
{
    enum { TASKS = 200 };
    static struct repeated tasks[TASKS];
    struct solo solo = solo_open(NULL);

    memset(tasks, 0, sizeof(tasks));
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(weir_schedule_at_fixed_rate(solo.executor, 0, weir_us(20),
                                                     &tasks[i].promise, run_repeatedly, &tasks[i]),
                         0);
    for (int i = 0; i < TASKS; i++) {
        assert_true(tally_await(&tasks[i].runs, 2));
        assert_int_equal(weir_promise_cancel(tasks[i].promise), 0);
        weir_promise_release(tasks[i].promise);
    }
    solo_close(&solo);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(tasks[i].cancellations, 1);
        assert_int_equal(tasks[i].faults, 0);
    }
}

/* ---- many ---- */

#define CROWD 20000

/* Timers of which most are cancelled or started again before they fire. */
struct crowd {
    struct stepper *stepper;
    weir__random random;
    unsigned fired;
    unsigned cancelled;
    struct member {
        struct crowd *crowd;
        weir_promise *promise;
        int64_t deadline_ns;
    } members[CROWD];
};

static void on_member(void *arg, int status)
{
    struct member *member = arg;
    struct crowd *crowd = member->crowd;

    if (status < 0) {
        crowd->cancelled++;
        return;
    }
    crowd->fired++;
    assert_true(now(crowd->stepper) >= member->deadline_ns);
}

static void member_start(struct crowd *crowd, struct member *member)
{
    int64_t delay_ns = (int64_t)weir__random_below(&crowd->random, UINT64_C(1) << 30);

    member->crowd = crowd;
    member->deadline_ns = now(crowd->stepper) + delay_ns;
    assert_int_equal(
        weir_schedule(crowd->stepper->executor, delay_ns, &member->promise, on_member, member), 0);
}

/* Cancels nine of ten, and starts five of those again. */
static void crowd_shuffle(struct crowd *crowd, unsigned *ret_running)
{
    for (unsigned i = 0; i < CROWD; i++) {
        struct member *member = &crowd->members[i];

        if (i % 10 == 0 || weir_promise_cancel(member->promise) < 0)
            continue;
        weir_promise_release(member->promise);
        member->promise = NULL;
        --*ret_running;
        if (i % 10 <= 5) {
            member_start(crowd, member);
            ++*ret_running;
        }
    }
}

TEST(schedule, serves_a_crowd_of_which_most_never_fire)
{
    static struct crowd crowd;
    struct stepper stepper = stepper_open();
    unsigned running = CROWD, cancelled;

    memset(&crowd, 0, sizeof(crowd));
    crowd.stepper = &stepper;
    weir__random_init(&crowd.random, 7);
    for (unsigned i = 0; i < CROWD; i++)
        member_start(&crowd, &crowd.members[i]);
    crowd_shuffle(&crowd, &running);
    cancelled = crowd.cancelled;
    assert_int_equal(cancelled, CROWD / 10 * 9);
    assert_int_equal(running, CROWD / 10 * 6);
    for (int i = 0; i < 64; i++)
        stepper_advance(&stepper, INT64_C(1) << 24);
    assert_int_equal(crowd.fired, running);
    assert_int_equal(crowd.cancelled, cancelled);
    for (unsigned i = 0; i < CROWD; i++)
        weir_promise_release(crowd.members[i].promise);
    stepper_close(&stepper);
}
