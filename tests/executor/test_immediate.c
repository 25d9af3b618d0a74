/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The immediate executor.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/promise.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_counter.h"
#include "support/executor/call_order.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"

TEST(immediate, is_always_the_same_and_always_there)
{
    weir_executor *executor = weir_executor_immediate();

    assert_non_null(executor);
    assert_ptr_equal(weir_executor_immediate(), executor);
    assert_string_equal(weir_executor_name(executor), "immediate");
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_STARTED);
    assert_ptr_equal(weir_executor_retain(executor), executor);
    weir_executor_release(executor);
}

TEST(immediate, runs_a_task_before_the_submission_returns)
{
    struct call_counter counter = {0};
    weir_task task;

    assert_int_equal(weir_execute(weir_executor_immediate(), call_counter_task, &counter), 0);
    assert_int_equal(atomic_load(&counter.run), 1);
    assert_int_equal(weir_execute_lazy(weir_executor_immediate(), call_counter_task, &counter), 0);
    assert_int_equal(atomic_load(&counter.run), 2);
    weir_task_init(&task, call_counter_task, &counter);
    assert_int_equal(weir_execute_task(weir_executor_immediate(), &task), 0);
    assert_int_equal(weir_execute_task_lazy(weir_executor_immediate(), &task), 0);
    assert_int_equal(atomic_load(&counter.run), 4);
}

static int work_answer(void *arg, int status, void **ret_value)
{
    *ret_value = arg;
    return status;
}

static int work_failure(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)status;
    (void)ret_value;
    return -EIO;
}

TEST(immediate, completes_a_submission_before_it_returns)
{
    weir_promise *promise;
    int answer;

    assert_int_equal(weir_submit(weir_executor_immediate(), work_answer, &answer, &promise), 0);
    assert_true(weir_promise_is_done(promise));
    assert_ptr_equal(weir_promise_value(promise), &answer);
    weir_promise_release(promise);
    assert_int_equal(weir_submit(weir_executor_immediate(), work_failure, NULL, &promise), 0);
    assert_int_equal(weir_promise_result(promise), -EIO);
    weir_promise_release(promise);
}

static void record_state(void *arg)
{
    bool *is_inside = arg;

    *is_inside = weir_in_executor(weir_executor_immediate());
}

TEST(immediate, is_on_every_thread)
{
    bool is_inside = false;

    assert_true(weir_in_executor(weir_executor_immediate()));
    run_on_other_thread(record_state, &is_inside);
    assert_true(is_inside);
}

/* ---- the current executor ---- */

struct currents {
    weir_executor *manual;
    weir_executor *in_manual;
    weir_executor *before_manual;
    weir_executor *after_manual;
};

static void note_current(void *arg, int status)
{
    (void)status;
    *(weir_executor **)arg = weir_executor_current();
}

static void drive_manual(void *arg, int status)
{
    struct currents *currents = arg;

    (void)status;
    currents->before_manual = weir_executor_current();
    assert_int_equal(weir_execute(currents->manual, note_current, &currents->in_manual), 0);
    assert_int_equal(weir_manual_run_once(currents->manual, 0, 0), 1);
    currents->after_manual = weir_executor_current();
}

TEST(immediate, is_the_current_executor_inside_its_tasks)
{
    weir_executor *seen = NULL;

    assert_int_equal(weir_execute(weir_executor_immediate(), note_current, &seen), 0);
    assert_ptr_equal(seen, weir_executor_immediate());
    assert_null(weir_executor_current());
}

static void note_current_of_immediate(void *arg)
{
    IGNORE_RESULT(weir_execute(weir_executor_immediate(), note_current, arg));
}

TEST(immediate, is_the_current_executor_on_the_thread_of_another)
{
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.name = "single"));
    weir_executor *seen = NULL;

    run_on_executor(single.executor, note_current_of_immediate, &seen);
    assert_ptr_equal(seen, weir_executor_immediate());
    single_executor_close(&single);
}

TEST(immediate, is_not_the_current_executor_while_its_task_drives_another)
{
    struct currents currents = {0};

    assert_int_equal(weir_manual_create(NULL, &currents.manual), 0);
    assert_int_equal(weir_execute(weir_executor_immediate(), drive_manual, &currents), 0);
    assert_ptr_equal(currents.before_manual, weir_executor_immediate());
    assert_ptr_equal(currents.in_manual, currents.manual);
    assert_ptr_equal(currents.after_manual, weir_executor_immediate());
    weir_executor_release(currents.manual);
}

/* ---- tasks within tasks ---- */

struct nest {
    struct call_order letters;
    bool in_task;
};

static void write_inner(void *arg, int status)
{
    struct nest *nest = arg;

    call_order_write(&nest->letters, status == 0 && !nest->in_task ? 'i' : 'x');
}

static void write_outer(void *arg, int status)
{
    struct nest *nest = arg;

    (void)status;
    nest->in_task = true;
    call_order_write(&nest->letters, 'a');
    IGNORE_RESULT(weir_execute(weir_executor_immediate(), write_inner, nest));
    call_order_write(&nest->letters, 'b');
    IGNORE_RESULT(weir_execute(weir_executor_immediate(), write_inner, nest));
    call_order_write(&nest->letters, 'c');
    nest->in_task = false;
}

TEST(immediate, runs_nested_tasks_after_the_outer_one_in_order)
{
    struct nest nest = {0};

    assert_int_equal(weir_execute(weir_executor_immediate(), write_outer, &nest), 0);
    assert_string_equal(nest.letters.text, "abcii");
}

/* Each frame of a nested call would be at a lower address. */
struct nesting {
    long left;
    void *frame;
    bool grew;
};

static void on_nesting(void *arg, int status)
{
    struct nesting *nesting = arg;
    void *frame = __builtin_frame_address(0);

    (void)status;
    if (nesting->frame == NULL)
        nesting->frame = frame;
    nesting->grew |= nesting->frame != frame;
    if (--nesting->left > 0)
        IGNORE_RESULT(weir_execute(weir_executor_immediate(), on_nesting, nesting));
}

TEST(immediate, does_not_grow_the_stack_with_a_chain_of_tasks)
{
    struct nesting nesting = {.left = 100000};

    assert_int_equal(weir_execute(weir_executor_immediate(), on_nesting, &nesting), 0);
    assert_int_equal(nesting.left, 0);
    assert_false(nesting.grew);
}

/* ---- unsupported calls ---- */

static void on_timer(weir_timer *timer)
{
    (void)timer;
}

TEST(immediate, has_no_timers_and_no_turns)
{
    weir_executor *executor = weir_executor_immediate();
    struct call_counter counter = {0};
    weir_promise *promise = NULL;
    weir_timer timer = {0};

    assert_int_equal(weir_schedule(executor, 0, call_counter_task, &counter, &promise), -ENOTSUP);
    assert_int_equal(
        weir_schedule_at_fixed_rate(executor, 0, 1, call_counter_task, &counter, &promise),
        -ENOTSUP);
    assert_int_equal(
        weir_schedule_with_fixed_delay(executor, 0, 1, call_counter_task, &counter, &promise),
        -ENOTSUP);
    assert_int_equal(weir_timer_start(executor, &timer, 1, on_timer), -ENOTSUP);
    assert_int_equal(weir_execute_after_turn(executor, call_counter_task, &counter), -ENOTSUP);
    assert_null(promise);
    assert_int_equal(atomic_load(&counter.calls), 0);
}

TEST(immediate, cannot_be_ended)
{
    weir_executor *executor = weir_executor_immediate();
    struct call_counter counter = {0};
    weir_thread_properties thread;

    assert_int_equal(weir_executor_shutdown(executor, 0, 0), -EPERM);
    assert_int_equal(weir_executor_await_termination(executor, 0), -EPERM);
    assert_null(weir_executor_termination(executor));
    assert_int_equal(weir_executor_suspend(executor), -ENOTSUP);
    assert_int_equal(weir_executor_add_shutdown_hook(executor, call_counter_task, &counter),
                     -EPERM);
    assert_int_equal(weir_executor_thread(executor, &thread), -ENOTSUP);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_int_equal(atomic_load(&counter.run), 1);
}

TEST(immediate, refuses_bad_arguments)
{
    assert_int_equal(weir_execute(weir_executor_immediate(), NULL, NULL), -EINVAL);
    assert_int_equal(weir_submit(weir_executor_immediate(), NULL, NULL, NULL), -EINVAL);
}

/* ---- from several threads ---- */

#define TASKS 2000

struct inner_run {
    weir__thread thread;
    pid_t id; /* of the submitting thread */
    int run;  /* not atomic: it runs on the submitting thread */
    bool strayed;
};

static void on_inner_run(void *arg, int status)
{
    struct inner_run *inner_run = arg;

    inner_run->run += status == 0;
    inner_run->strayed |= weir__thread_id() != inner_run->id;
}

static void on_outer_run(void *arg, int status)
{
    on_inner_run(arg, status);
    IGNORE_RESULT(weir_execute(weir_executor_immediate(), on_inner_run, arg));
}

static void visit(void *arg)
{
    struct inner_run *inner_run = arg;

    inner_run->id = weir__thread_id();
    for (int i = 0; i < TASKS; i++)
        IGNORE_RESULT(weir_execute(weir_executor_immediate(), on_outer_run, inner_run));
}

static uint64_t tasks_run(void)
{
    weir_executor_stats stats;

    weir_executor_read_stats(weir_executor_immediate(), &stats);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(stats.tasks_cancelled, 0);
    return stats.tasks_run;
}

TEST(immediate, runs_each_task_on_the_thread_that_submitted_it_and_counts_it)
{
    struct inner_run runs[3] = {0};
    uint64_t before = tasks_run();

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("guest", visit, &runs[i], &runs[i].thread), 0);
    for (int i = 0; i < 3; i++) {
        weir__thread_join(&runs[i].thread);
        assert_int_equal(runs[i].run, 2 * TASKS);
        assert_false(runs[i].strayed);
    }
    assert_int_equal(tasks_run() - before, 3 * 2 * TASKS);
}

/* ---- as the executor of a promise ---- */

static void on_done(weir_promise *promise, void *user_data)
{
    call_counter_task(user_data, weir_promise_result(promise));
}

TEST(immediate, calls_listeners_on_whatever_thread_completes)
{
    weir_promise *promise;
    struct call_counter counter = {0};

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, on_done, &counter), 0);
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_int_equal(atomic_load(&counter.run), 1);
    assert_int_equal(weir_promise_add_listener(promise, on_done, &counter), 0);
    assert_int_equal(atomic_load(&counter.run), 2);
    weir_promise_release(promise);
}

static void complete(void *promise)
{
    (void)weir_promise_succeed(promise, NULL);
}

TEST(immediate, does_not_prevent_waiting)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    assert_int_equal(weir_promise_await(promise, weir_us(1)), -ETIMEDOUT);
    run_on_other_thread(complete, promise);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
}
