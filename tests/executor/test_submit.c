/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_submit: work with a result.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/promise.h>

#include "support/executor/gate.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

/* Work that records its calls, and returns a given result. */
struct work {
    int answer;
    void *value;
    int runs;
    int cancellations;
    weir_executor *current;
};

static int do_work(void *arg, int status, void **ret_value)
{
    struct work *work = arg;

    work->current = weir_executor_current();
    if (status == WEIR_ECANCELED) {
        work->cancellations++;
        return 0;
    }
    work->runs++;
    if (work->value != NULL)
        *ret_value = work->value;
    return work->answer;
}

TEST(submit, completes_with_the_value_of_the_work)
{
    struct single_executor single = single_executor_open(NULL);
    struct work work = {.value = &work};
    weir_promise *promise;

    assert_int_equal(weir_submit(single.executor, do_work, &work, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    assert_ptr_equal(weir_promise_value(promise), &work);
    assert_ptr_equal(weir_promise_executor(promise), single.executor);
    assert_ptr_equal(work.current, single.executor);
    assert_int_equal(work.runs, 1);
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(submit, has_no_value_unless_the_work_sets_one)
{
    struct stepper stepper = stepper_open();
    struct work work = {0};
    weir_promise *promise;

    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    assert_false(weir_promise_is_done(promise));
    stepper_run(&stepper);
    assert_int_equal(weir_promise_result(promise), 0);
    assert_null(weir_promise_value(promise));
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(submit, completes_with_the_error_of_the_work)
{
    struct stepper stepper = stepper_open();
    struct work work = {.answer = -EIO, .value = &work};
    weir_promise *promise;

    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    stepper_run(&stepper);
    assert_int_equal(weir_promise_result(promise), -EIO);
    assert_null(weir_promise_value(promise));
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(submit, runs_without_a_promise)
{
    struct stepper stepper = stepper_open();
    struct work work = {0};
    weir_promise *promise;

    assert_int_equal(weir_submit(stepper.executor, do_work, &work, NULL), 0);
    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    weir_promise_release(promise);
    stepper_run(&stepper);
    assert_int_equal(work.runs, 2);
    stepper_close(&stepper);
}

TEST(submit, runs_at_once_on_the_immediate_executor)
{
    struct work work = {.value = &work};
    weir_promise *promise;

    assert_int_equal(weir_submit(weir_executor_immediate(), do_work, &work, &promise), 0);
    assert_ptr_equal(weir_promise_value(promise), &work);
    weir_promise_release(promise);
}

TEST(submit, that_is_cancelled_calls_the_work_to_clean_up)
{
    struct stepper stepper = stepper_open();
    struct work work = {.value = &work};
    weir_promise *promise;

    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(work.cancellations, 0);
    stepper_run(&stepper);
    assert_int_equal(work.cancellations, 1);
    assert_int_equal(work.runs, 0);
    assert_true(weir_promise_is_cancelled(promise));
    weir_promise_release(promise);
    stepper_close(&stepper);
}

static int pass_gate(void *arg, int status, void **ret_value)
{
    (void)ret_value;
    gate_task(arg, status);
    return status;
}

TEST(submit, cannot_be_cancelled_once_the_work_has_begun)
{
    struct single_executor single = single_executor_open(NULL);
    struct gate gate = {0};
    weir_promise *promise;

    assert_int_equal(weir_submit(single.executor, pass_gate, &gate, &promise), 0);
    assert_true(gate_await_arrivals(&gate, 1));
    assert_int_equal(weir_promise_cancel(promise), -EBUSY);
    gate_open(&gate);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(submit, to_an_executor_that_ends_is_cancelled)
{
    struct stepper stepper = stepper_open();
    struct work work = {0};
    weir_promise *promise, *uncancellable;

    log_capture_start();
    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &uncancellable), 0);
    assert_true(weir_promise_set_uncancellable(uncancellable));
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    (void)weir_manual_run_once(stepper.executor, 0, -1);
    assert_int_equal(work.runs, 0);
    assert_int_equal(work.cancellations, 2);
    assert_true(weir_promise_is_cancelled(promise));
    assert_true(weir_promise_is_cancelled(uncancellable));
    weir_promise_release(promise);
    weir_promise_release(uncancellable);
    stepper_close(&stepper);
}

TEST(submit, that_is_refused_never_calls_the_work)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *ended = weir_executor_retain(single.executor);
    struct work work = {0};
    weir_promise *promise = NULL;

    single_executor_close(&single);
    assert_int_equal(weir_submit(ended, do_work, &work, &promise), WEIR_EREJECTED);
    assert_null(promise);
    assert_int_equal(work.runs + work.cancellations, 0);
    weir_executor_release(ended);
}

TEST(submit, refuses_bad_arguments)
{
    struct work work = {0};
    weir_promise *promise = NULL;

    assert_int_equal(weir_submit(NULL, do_work, &work, &promise), -EINVAL);
    assert_int_equal(weir_submit(weir_executor_immediate(), NULL, &work, &promise), -EINVAL);
    assert_null(promise);
}

TEST(submit, fails_without_memory)
{
    struct stepper stepper = stepper_open();
    struct work work = {0};
    weir_promise *promise = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), -ENOMEM);
    assert_null(promise);
    stepper_run(&stepper);
    assert_int_equal(work.runs, 0);

    test_memory_fail_at(2); /* a submission is one allocation */
    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    assert_false(test_memory_failed());
    test_memory_fail_at(0);
    stepper_run(&stepper);
    assert_int_equal(work.runs, 1);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

/* A rejection policy that stores the task, to run it later. */
struct taken {
    weir_task_fn *fn;
    void *arg;
    int reason;
};

static int take_over(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                     void *user_data)
{
    (void)executor;
    *(struct taken *)user_data = (struct taken){fn, arg, reason};
    return 0;
}

TEST(submit, that_a_policy_takes_over_completes_when_the_policy_runs_it)
{
    struct taken taken = {0};
    struct work work = {.value = &work};
    weir_executor *executor;
    weir_promise *promise;

    assert_int_equal(
        weir_manual_create(
            WEIR_MANUAL_OPTIONS(.max_pending = 16, .rejected = take_over, .rejected_data = &taken),
            &executor),
        0);
    for (int i = 0; i < 16; i++)
        assert_int_equal(weir_submit(executor, do_work, &work, NULL), 0);
    assert_null(taken.fn);
    assert_int_equal(weir_submit(executor, do_work, &work, &promise), 0);
    assert_int_equal(taken.reason, WEIR_EFULL);
    assert_false(weir_promise_is_done(promise));
    taken.fn(taken.arg, 0);
    assert_int_equal(work.runs, 1);
    assert_ptr_equal(weir_promise_value(promise), &work);
    weir_promise_release(promise);
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 16);
    weir_executor_release(executor);
}

#define RACES 500

static void abandon(void *arg)
{
    weir_promise_release(arg);
}

TEST(submit, is_run_or_cancelled_once_when_both_race)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise;
    bool cancelled;

    for (int i = 0; i < RACES; i++) {
        struct work work = {0};

        assert_int_equal(weir_submit(single.executor, do_work, &work, &promise), 0);
        cancelled = weir_promise_cancel(promise) == 0;
        run_on_executor(single.executor, abandon, promise); /* comes after the work */
        assert_int_equal(work.runs, !cancelled);
        assert_int_equal(work.cancellations, cancelled);
    }
    single_executor_close(&single);
}

/* ---- where listeners run ---- */

TEST(submit, runs_listeners_right_after_the_work_before_the_next_task)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct work work = {0};
    weir_promise *promise;

    assert_int_equal(weir_submit(stepper.executor, do_work, &work, &promise), 0);
    assert_int_equal(call_order_execute(&letters, stepper.executor, 'n'), 0);
    call_order_listen(promise, &letters, 'l');
    stepper_run(&stepper);
    assert_string_equal(letters.text, "ln");
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(submit, runs_listeners_on_its_executor_whenever_they_are_added)
{
    struct single_executor single = single_executor_open(NULL);
    struct completion_record early = {0}, late = {0};
    struct gate gate = {0};
    struct work work = {0};
    weir_promise *promise;

    gate_hold(&gate, single.executor);
    assert_int_equal(weir_submit(single.executor, do_work, &work, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, record_completion, &early), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&early.calls, 1));
    assert_int_equal(weir_promise_add_listener(promise, record_completion, &late), 0);
    assert_true(call_counter_await(&late.calls, 1));
    assert_ptr_equal(early.current, single.executor);
    assert_ptr_equal(late.current, single.executor);
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(submit, runs_listeners_on_its_executor_when_another_thread_cancels)
{
    struct single_executor single = single_executor_open(NULL);
    struct completion_record record = {0};
    struct gate gate = {0};
    struct work work = {0};
    weir_promise *promise;

    gate_hold(&gate, single.executor);
    assert_int_equal(weir_submit(single.executor, do_work, &work, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, record_completion, &record), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(record.calls.calls, 0);
    gate_open(&gate);
    assert_true(call_counter_await(&record.calls, 1));
    assert_ptr_equal(record.current, single.executor);
    assert_int_equal(record.result, WEIR_ECANCELED);
    weir_promise_release(promise);
    single_executor_close(&single);
    assert_int_equal(work.runs, 0);
    assert_int_equal(work.cancellations, 1);
}
