/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduled tasks, one-shot and periodic. Cancelling, and their effect on the sleep and end of the
 * executor, are in test_schedule_cancel.c and test_schedule_end.c.
 *
 * With a stepper, the test's thread is the executor's, and the clock is manual.
 */
#include <errno.h>
#include <string.h>

#include <weir/timer.h>

#include "os/clock.h"
#include "os/random.h"
#include "support/executor/call_order.h"
#include "support/executor/job.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

/* ---- once ---- */

TEST(schedule, runs_once_when_due_and_completes_its_promise)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 1000, job_task, &job, &promise), 0);
    assert_ptr_equal(weir_promise_executor(promise), stepper.executor);
    assert_int_equal(stepper_advance(&stepper, 999), 0);
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    assert_int_equal(weir_promise_result(promise), 0);
    assert_null(weir_promise_value(promise));
    stepper_advance(&stepper, weir_seconds(1));
    assert_job_ran(&job, 1, 0);
    weir_promise_release(promise);
    stepper_close(&stepper);
    assert_job_ran(&job, 1, 0);
}

TEST(schedule, treats_a_negative_delay_as_0)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule(stepper.executor, -weir_seconds(9), job_task, &job, NULL), 0);
    assert_job_ran(&job, 0, 0);
    stepper_run(&stepper);
    assert_job_ran(&job, 1, 0);
    stepper_close(&stepper);
}

TEST(schedule, runs_without_a_promise)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, 1, job_task, &job, &promise), 0);
    weir_promise_release(promise);
    assert_int_equal(weir_schedule(stepper.executor, 1, job_task, &job, NULL), 0);
    stepper_advance(&stepper, 1);
    assert_job_ran(&job, 2, 0);
    stepper_close(&stepper);
}

TEST(schedule, runs_in_the_order_of_deadlines_then_of_submission)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    static const struct {
        char letter;
        int64_t delay_ns;
    } tasks[] = {{'c', 20}, {'a', 10}, {'d', 20}, {'b', 10}, {'e', 30}};

    for (int i = 0; i < 5; i++)
        assert_int_equal(weir_schedule(stepper.executor, tasks[i].delay_ns, call_order_task,
                                       call_order_arg(&letters, tasks[i].letter), NULL),
                         0);
    stepper_advance(&stepper, 30);
    assert_string_equal(letters.text, "abcde");
    stepper_close(&stepper);
}

struct outside {
    weir_executor *executor;
    struct call_order letters;
    int err;
};

static void schedule_from_outside(void *arg)
{
    struct outside *outside = arg;
    static const char order[] = "badc"; /* of submission; deadlines go by pairs */

    for (int i = 0; i < 4 && outside->err == 0; i++)
        outside->err = weir_schedule(outside->executor, i < 2 ? 10 : 20, call_order_task,
                                     call_order_arg(&outside->letters, order[i]), NULL);
}

TEST(schedule, from_another_thread_keeps_the_order_too)
{
    struct stepper stepper = stepper_open();
    struct outside outside = {.executor = stepper.executor};

    run_on_other_thread(schedule_from_outside, &outside);
    assert_int_equal(outside.err, 0);
    stepper_advance(&stepper, 9);
    assert_string_equal(outside.letters.text, "");
    stepper_advance(&stepper, 11);
    assert_string_equal(outside.letters.text, "badc");
    stepper_close(&stepper);
}

TEST(schedule, counts_from_the_submission_however_late_the_executor_sees_it)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    run_on_other_thread(job_schedule, &job);
    stepper_advance(&stepper, 25); /* the timer is started, and overdue */
    assert_job_ran(&job, 1, 0);
    assert_int_equal(job.at_ns[0], 25);
    weir_promise_release(job.promise);
    stepper_close(&stepper);
}

TEST(schedule, never_runs_early)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise;
    struct call_counter counter = {0};

    for (int i = 0; i < 10; i++) {
        int64_t deadline_ns = weir__monotonic_now() + weir_ms(2);

        assert_int_equal(
            weir_schedule(single.executor, weir_ms(2), call_counter_task, &counter, &promise), 0);
        assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
        assert_true(weir__monotonic_now() >= deadline_ns);
        weir_promise_release(promise);
    }
    assert_int_equal(counter.run, 10);
    single_executor_close(&single);
}

TEST(schedule, that_overflows_never_runs)
{
    struct stepper stepper = stepper_open();
    struct job never = {.stepper = &stepper}, rate = {.stepper = &stepper};
    weir_promise *promise;

    assert_int_equal(weir_schedule(stepper.executor, WEIR_NEVER, job_task, &never, &promise), 0);
    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 10, WEIR_NEVER, job_task, &rate, NULL), 0);
    stepper_advance(&stepper, WEIR_NEVER / 2);
    assert_job_ran(&never, 0, 0);
    assert_job_ran(&rate, 1, 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_job_ran(&never, 0, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
    assert_job_ran(&rate, 1, 1);
}

TEST(schedule, works_on_the_global_executor)
{
    struct call_counter counter = {0};
    weir_promise *promise;

    assert_int_equal(
        weir_schedule(weir_executor_global(), weir_us(100), call_counter_task, &counter, &promise),
        0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    assert_int_equal(counter.run, 1);
    weir_promise_release(promise);
}

/* ---- periodic ---- */

TEST(schedule, at_a_fixed_rate_keeps_its_phase_however_long_a_run_takes)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .takes_ns = 50};
    weir_promise *promise;

    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 30, 100, job_task, &job, &promise), 0);
    while (job_now(&stepper) < 400)
        stepper_advance(&stepper, 1);
    assert_job_ran(&job, 4, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(job.at_ns[i], 30 + i * 100);
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(schedule, at_a_fixed_rate_makes_up_for_missed_runs)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 100, job_task, &job, NULL),
                     0);
    stepper_run(&stepper);
    assert_job_ran(&job, 1, 0);
    stepper_advance(&stepper, 401);
    assert_job_ran(&job, 5, 0);
    for (int i = 1; i < 5; i++)
        assert_int_equal(job.at_ns[i], 401);
    stepper_advance(&stepper, 98);
    assert_job_ran(&job, 5, 0);
    stepper_advance(&stepper, 1); /* back in phase */
    assert_job_ran(&job, 6, 0);
    stepper_close(&stepper);
}

TEST(schedule, with_a_fixed_delay_counts_from_the_end_of_each_run)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper, .takes_ns = 30};

    assert_int_equal(
        weir_schedule_with_fixed_delay(stepper.executor, 10, 100, job_task, &job, NULL), 0);
    stepper_advance(&stepper, 10);
    assert_int_equal(job_now(&stepper), 40);
    stepper_advance(&stepper, 99);
    assert_job_ran(&job, 1, 0);
    stepper_advance(&stepper, 1);
    assert_job_ran(&job, 2, 0);
    assert_int_equal(job.at_ns[1], 140);

    stepper_advance(&stepper, weir_seconds(1)); /* a stall is not made up for */
    assert_job_ran(&job, 3, 0);
    stepper_close(&stepper);
}

TEST(schedule, repeats_without_further_memory)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    size_t allocations = test_memory_allocations();

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 1, job_task, &job, NULL), 0);
    assert_int_equal(test_memory_allocations(), allocations + 1);
    stepper_advance(&stepper, 99);
    assert_job_ran(&job, 100, 0);
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

    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 1, job_task, &job, NULL), 0);
    stepper_advance(&stepper, 999);
    assert_int_equal(job.runs, 1000);
    assert_in_range(job.at_ns[0], 1, 999);
    stepper_close(&stepper);
}

/* ---- errors ---- */

TEST(schedule, refuses_bad_arguments)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_executor *executor = stepper.executor, *immediate = weir_executor_immediate();
    weir_promise *promise = NULL;

    assert_int_equal(weir_schedule(NULL, 0, job_task, &job, &promise), -EINVAL);
    assert_int_equal(weir_schedule(executor, 0, NULL, &job, &promise), -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, -1, 1, job_task, &job, &promise),
                     -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, 0, job_task, &job, &promise),
                     -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, -1, job_task, &job, &promise),
                     -EINVAL);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, 1, NULL, &job, &promise), -EINVAL);
    assert_int_equal(weir_schedule_with_fixed_delay(executor, -1, 1, job_task, &job, &promise),
                     -EINVAL);
    assert_int_equal(weir_schedule_with_fixed_delay(executor, 0, 0, job_task, &job, &promise),
                     -EINVAL);
    assert_int_equal(weir_schedule_with_fixed_delay(NULL, 0, 1, job_task, &job, &promise), -EINVAL);
    assert_int_equal(weir_schedule(immediate, 0, job_task, &job, &promise), -ENOTSUP);
    assert_int_equal(weir_schedule_at_fixed_rate(immediate, 0, 1, job_task, &job, &promise),
                     -ENOTSUP);
    assert_null(promise);
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    assert_job_ran(&job, 0, 0);
    stepper_close(&stepper);
}

TEST(schedule, fails_without_memory)
{
    struct stepper stepper = stepper_open();
    struct job job = {.stepper = &stepper};
    weir_promise *promise = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_schedule(stepper.executor, 0, job_task, &job, &promise), -ENOMEM);
    test_memory_fail_at(1);
    assert_int_equal(weir_schedule_at_fixed_rate(stepper.executor, 0, 1, job_task, &job, &promise),
                     -ENOMEM);
    assert_null(promise);
    stepper_run(&stepper);
    assert_job_ran(&job, 0, 0);
    assert_int_equal(weir_schedule(stepper.executor, 0, job_task, &job, NULL), 0);
    stepper_run(&stepper);
    assert_job_ran(&job, 1, 0);
    stepper_close(&stepper);
}

TEST(schedule, that_finds_no_thread_is_rejected)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    weir_promise *promise = NULL;

    log_capture_start();
    test_memory_fail_at(2); /* after the promise, the thread's */
    assert_int_equal(weir_schedule(single.executor, 0, call_counter_task, &counter, &promise),
                     -ENOMEM);
    assert_true(test_memory_failed());
    assert_null(promise);
    assert_int_equal(counter.calls, 0);
    assert_int_equal(weir_schedule(single.executor, 0, call_counter_task, &counter, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
    single_executor_close(&single);
}

/* ---- many ---- */

#define CROWD 20000

/* Most timers are cancelled or restarted before they fire. */
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
    assert_true(job_now(crowd->stepper) >= member->deadline_ns);
}

static void member_start(struct crowd *crowd, struct member *member)
{
    int64_t delay_ns = (int64_t)weir__random_below(&crowd->random, UINT64_C(1) << 30);

    member->crowd = crowd;
    member->deadline_ns = job_now(crowd->stepper) + delay_ns;
    assert_int_equal(
        weir_schedule(crowd->stepper->executor, delay_ns, on_member, member, &member->promise), 0);
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
