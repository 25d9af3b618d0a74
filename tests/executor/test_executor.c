/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting to an executor, and the order in which it runs what was submitted. The turn and its
 * sleep are in test_executor_turn.c and test_executor_sleep.c, its states in test_lifecycle.c.
 */
#include <errno.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/manual.h>

#include "executor/executor.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

/* ---- submitting ---- */

struct current_record {
    weir_executor *executor;
    weir_executor *current;
    bool in_executor;
    struct call_counter calls;
};

static void record_state(void *arg, int status)
{
    struct current_record *current_record = arg;

    current_record->current = weir_executor_current();
    current_record->in_executor = weir_in_executor(current_record->executor);
    call_counter_task(&current_record->calls, status);
}

TEST(executor, runs_a_task_on_its_own_thread)
{
    struct single_executor single = single_executor_open(NULL);
    struct current_record current_record = {.executor = single.executor};

    assert_null(weir_executor_current());
    assert_false(weir_in_executor(single.executor));
    assert_int_equal(weir_execute(single.executor, record_state, &current_record), 0);
    assert_true(call_counter_await(&current_record.calls, 1));
    assert_int_equal(current_record.calls.run, 1);
    assert_ptr_equal(current_record.current, single.executor);
    assert_true(current_record.in_executor);
    single_executor_close(&single);
}

TEST(executor, refuses_a_task_without_a_function_or_an_executor_and_changes_nothing)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    weir_task task;

    weir_task_init(&task, NULL, &counter);
    assert_int_equal(weir_execute(single.executor, NULL, &counter), -EINVAL);
    assert_int_equal(weir_execute(NULL, call_counter_task, &counter), -EINVAL);
    assert_int_equal(weir_execute_lazy(single.executor, NULL, &counter), -EINVAL);
    assert_int_equal(weir_execute_task(single.executor, NULL), -EINVAL);
    assert_int_equal(weir_execute_task(single.executor, &task), -EINVAL);
    assert_int_equal(weir_execute_task_lazy(single.executor, &task), -EINVAL);
    assert_int_equal(weir_execute_after_turn(single.executor, NULL, &counter), -EINVAL);
    assert_int_equal(weir_execute_after_turn(NULL, call_counter_task, &counter), -EINVAL);
    assert_int_equal(
        weir_execute_after_turn(weir_executor_immediate(), call_counter_task, &counter), -ENOTSUP);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_pending(single.executor), 0);
    single_executor_close(&single);
    assert_int_equal(counter.calls, 0);
}

struct again {
    weir_task task;
    weir_executor *executor;
    int left;
    struct call_counter runs;
};

static void submit_again(void *arg, int status)
{
    struct again *again = arg;

    if (status == 0 && --again->left > 0)
        IGNORE_RESULT(weir_execute_task(again->executor, &again->task));
    call_counter_task(&again->runs, status);
}

TEST(executor, accepts_a_task_again_from_its_own_function)
{
    struct single_executor single = single_executor_open(NULL);
    struct again again = {.executor = single.executor, .left = 3};
    size_t allocations;

    assert_int_equal(weir_execute(single.executor, call_counter_task, &again.runs), 0);
    assert_true(call_counter_await(&again.runs, 1));
    allocations = test_memory_allocations();
    weir_task_init(&again.task, submit_again, &again);
    assert_int_equal(weir_execute_task(single.executor, &again.task), 0);
    assert_true(call_counter_await(&again.runs, 4));
    assert_int_equal(test_memory_allocations(), allocations);
    single_executor_close(&single);
    assert_int_equal(again.runs.run, 4);
}

struct own_end {
    weir_task task;
    struct call_counter *runs;
};

static void free_itself(void *arg, int status)
{
    struct own_end *own_end = arg;
    struct call_counter *runs = own_end->runs;

    free(own_end);
    call_counter_task(runs, status);
}

TEST(executor, does_not_touch_a_task_whose_function_was_called)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter runs = {0};

    for (int i = 0; i < 100; i++) {
        struct own_end *own_end = malloc(sizeof(*own_end));

        assert_non_null(own_end);
        own_end->runs = &runs;
        weir_task_init(&own_end->task, free_itself, own_end);
        assert_int_equal(weir_execute_task(single.executor, &own_end->task), 0);
    }
    single_executor_close(&single);
    assert_int_equal(runs.run, 100);
}

/* ---- order ---- */

#define SUBMITTERS 4
#define TASKS_EACH 5000

struct numbered {
    struct submitter *submitter;
    int number;
};

struct submitter {
    weir__thread thread;
    weir_executor *executor;
    struct numbered tasks[TASKS_EACH];
    int next;     /* accessed by the executor: the next number */
    int disorder; /* accessed by the executor */
    _Atomic int refused;
};

static void check_number(void *arg, int status)
{
    struct numbered *numbered = arg;
    struct submitter *submitter = numbered->submitter;

    submitter->disorder += status != 0 || numbered->number != submitter->next;
    submitter->next++;
}

/* Every way of submitting keeps the same order. */
static int submit_numbered(weir_executor *executor, struct numbered *numbered)
{
    return numbered->number % 3 == 0 ? weir_execute_lazy(executor, check_number, numbered)
                                     : weir_execute(executor, check_number, numbered);
}

static void submit_in_order(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < TASKS_EACH; i++) {
        submitter->tasks[i] = (struct numbered){submitter, i};
        if (submit_numbered(submitter->executor, &submitter->tasks[i]) < 0)
            submitter->refused++;
    }
}

TEST(executor, runs_the_tasks_of_each_thread_in_the_order_submitted)
{
    static struct submitter submitters[SUBMITTERS];
    struct single_executor single = single_executor_open(NULL);

    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i].executor = single.executor;
        assert_int_equal(
            weir__thread_start("submitter", submit_in_order, &submitters[i], &submitters[i].thread),
            0);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        weir__thread_join(&submitters[i].thread);
    single_executor_close(&single);
    for (int i = 0; i < SUBMITTERS; i++) {
        assert_int_equal(submitters[i].refused, 0);
        assert_int_equal(submitters[i].next, TASKS_EACH);
        assert_int_equal(submitters[i].disorder, 0);
    }
}

/* Submits b, then d, on the executor's thread, each after the test has done its step. */
struct step_sync {
    weir_executor *executor;
    struct call_order letters;
    struct gate first, second;
    int err;
};

static void submit_in_steps(void *arg, int status)
{
    struct step_sync *step_sync = arg;

    gate_task(&step_sync->first, status);
    step_sync->err |= call_order_execute(&step_sync->letters, step_sync->executor, 'b');
    gate_task(&step_sync->second, status);
    step_sync->err |= call_order_execute(&step_sync->letters, step_sync->executor, 'd');
}

TEST(executor, runs_submissions_of_its_own_thread_after_queued_tasks)
{
    struct single_executor single = single_executor_open(NULL);
    struct step_sync step_sync = {.executor = single.executor};

    assert_int_equal(weir_execute(single.executor, submit_in_steps, &step_sync), 0);
    assert_true(gate_await_arrivals(&step_sync.first, 1));
    assert_int_equal(call_order_execute(&step_sync.letters, single.executor, 'a'), 0);
    gate_open(&step_sync.first);
    assert_true(gate_await_arrivals(&step_sync.second, 1));
    assert_int_equal(call_order_execute(&step_sync.letters, single.executor, 'c'), 0);
    gate_open(&step_sync.second);
    assert_true(call_order_await(&step_sync.letters, 4));
    assert_int_equal(step_sync.err, 0);
    assert_string_equal(step_sync.letters.text, "abcd");
    single_executor_close(&single);
}

/* ---- lazy tasks ---- */

TEST(executor, runs_lazy_tasks_when_something_else_wakes_it_and_before_that)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};
    weir_task task;

    assert_int_equal(call_order_execute(&letters, single.executor, 'a'), 0);
    assert_true(call_order_await(&letters, 1));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));

    weir_task_init(&task, call_order_task, call_order_arg(&letters, 'c'));
    assert_int_equal(
        weir_execute_lazy(single.executor, call_order_task, call_order_arg(&letters, 'b')), 0);
    assert_int_equal(weir_execute_task_lazy(single.executor, &task), 0);
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER)); /* still */
    assert_string_equal(letters.text, "a");
    assert_int_equal(weir_executor_pending(single.executor), 2);

    assert_int_equal(call_order_execute(&letters, single.executor, 'd'), 0);
    assert_true(call_order_await(&letters, 4));
    assert_string_equal(letters.text, "abcd");
    single_executor_close(&single);
}

TEST(executor, started_by_a_lazy_task_runs_it)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};

    assert_int_equal(
        weir_execute_lazy(single.executor, call_order_task, call_order_arg(&letters, 'a')), 0);
    assert_true(call_order_await(&letters, 1));
    single_executor_close(&single);
}

/* ---- tail tasks ---- */

/* Runs on the executor's thread: two tail tasks among two tasks. */
static void submit_both_kinds(void *arg, int status)
{
    struct step_sync *step_sync = arg;
    weir_executor *executor = step_sync->executor;
    struct call_order *letters = &step_sync->letters;

    (void)status;
    step_sync->err |=
        weir_execute_after_turn(executor, call_order_task, call_order_arg(letters, 'x'));
    step_sync->err |= call_order_execute(letters, executor, 'a');
    step_sync->err |=
        weir_execute_after_turn(executor, call_order_task, call_order_arg(letters, 'y'));
    step_sync->err |= call_order_execute(letters, executor, 'b');
}

TEST(executor, runs_tail_tasks_once_after_all_tasks_of_the_turn)
{
    struct single_executor single = single_executor_open(NULL);
    struct step_sync step_sync = {.executor = single.executor};

    assert_int_equal(weir_execute(single.executor, submit_both_kinds, &step_sync), 0);
    assert_true(call_order_await(&step_sync.letters, 4));
    assert_int_equal(call_order_execute(&step_sync.letters, single.executor, 'c'), 0);
    assert_true(call_order_await(&step_sync.letters, 5));
    assert_int_equal(step_sync.err, 0);
    assert_string_equal(step_sync.letters.text, "abxyc");
    single_executor_close(&single);
}

TEST(executor, runs_the_tail_task_of_another_thread_after_the_tasks_queued_behind_it)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, single.executor);
    assert_int_equal(
        weir_execute_after_turn(single.executor, call_order_task, call_order_arg(&letters, 'x')),
        0);
    assert_int_equal(call_order_execute(&letters, single.executor, 'a'), 0);
    assert_int_equal(call_order_execute(&letters, single.executor, 'b'), 0);
    gate_open(&gate);
    assert_true(call_order_await(&letters, 3));
    assert_string_equal(letters.text, "abx");
    single_executor_close(&single);
    assert_string_equal(letters.text, "abx");
}

TEST(executor, is_woken_by_a_tail_task)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};

    assert_int_equal(call_order_execute(&letters, single.executor, 'a'), 0);
    assert_true(call_order_await(&letters, 1));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    assert_int_equal(
        weir_execute_after_turn(single.executor, call_order_task, call_order_arg(&letters, 'b')),
        0);
    assert_true(call_order_await(&letters, 2));
    single_executor_close(&single);
}

/* Records the turn in which it runs. */
struct turns {
    weir_executor *executor;
    uint64_t first, second;
    struct call_counter calls;
    int err;
};

static uint64_t turns_so_far(const weir_executor *executor)
{
    weir_executor_stats stats;

    weir_executor_read_stats(executor, &stats);
    return stats.turns;
}

static void note_second_turn(void *arg, int status)
{
    struct turns *turns = arg;

    turns->second = turns_so_far(turns->executor);
    call_counter_task(&turns->calls, status);
}

static void note_first_turn(void *arg, int status)
{
    struct turns *turns = arg;

    turns->first = turns_so_far(turns->executor);
    turns->err = weir_execute_after_turn(turns->executor, note_second_turn, turns);
    call_counter_task(&turns->calls, status);
}

TEST(executor, runs_the_tail_task_of_a_tail_task_in_the_next_turn)
{
    struct single_executor single = single_executor_open(NULL);
    struct turns turns = {.executor = single.executor};

    assert_int_equal(weir_execute_after_turn(single.executor, note_first_turn, &turns), 0);
    assert_true(call_counter_await(&turns.calls, 2));
    assert_int_equal(turns.err, 0);
    assert_int_equal(turns.second, turns.first + 1);
    single_executor_close(&single);
}

TEST(executor, counts_a_tail_task_of_whatever_thread_as_one_task)
{
    struct single_executor single = single_executor_open(NULL);
    struct step_sync step_sync = {.executor = single.executor};
    struct gate gate = {0};

    gate_hold(&gate, single.executor);
    assert_int_equal(weir_execute_after_turn(single.executor, call_order_task,
                                             call_order_arg(&step_sync.letters, 'z')),
                     0);
    assert_int_equal(weir_execute(single.executor, submit_both_kinds, &step_sync), 0);
    assert_int_equal(weir_executor_pending(single.executor), 2);
    gate_open(&gate);
    assert_true(call_order_await(&step_sync.letters, 5));
    single_executor_end(&single);
    assert_int_equal(single_executor_stats(&single).tasks_run, 7);
    single_executor_close(&single);
}

/* ---- the usual case and the general one ---- */

typedef int post_fn(weir_executor *executor, weir_task *task);

static int post_in_general(weir_executor *executor, weir_task *task)
{
    task->reserved = 0;
    return weir__executor_post(executor, task, WEIR__NOW);
}

/* Posts tasks in all positions in which a thread can be towards an executor. */
struct positions {
    post_fn *post;
    struct stepper stepper;
    struct call_order letters;
    weir_task tasks[8];
    int results[8];
    unsigned count;
};

static void post_letter(struct positions *positions, char letter)
{
    weir_task *task = &positions->tasks[positions->count];

    weir_task_init(task, call_order_task, call_order_arg(&positions->letters, letter));
    positions->results[positions->count++] = positions->post(positions->stepper.executor, task);
}

static void post_from_outside(void *positions)
{
    post_letter(positions, 'c');
}

static void post_from_another_executor(void *positions, int status)
{
    if (status == 0)
        post_letter(positions, 'e');
}

static void post_from_inside(void *arg, int status)
{
    struct positions *positions = arg;
    weir_executor *inner = NULL;

    if (status < 0)
        return;
    post_letter(positions, 'b');
    run_on_other_thread(post_from_outside, positions);
    post_letter(positions, 'd'); /* the queue is not empty */
    assert_int_equal(weir_manual_create(NULL, &inner), 0);
    assert_int_equal(weir_execute(inner, post_from_another_executor, positions), 0);
    assert_int_equal(weir_manual_run_once(inner, 0, 0), 1);
    weir_executor_release(inner);
    post_letter(positions, 'f');
}

static void post_everywhere(struct positions *positions, post_fn *post)
{
    *positions = (struct positions){.post = post, .stepper = stepper_open()};
    post_letter(positions, 'a');
    assert_int_equal(weir_execute(positions->stepper.executor, post_from_inside, positions), 0);
    stepper_run(&positions->stepper);
    weir_executor_retain(positions->stepper.executor);
    assert_int_equal(weir_executor_shutdown(positions->stepper.executor, 0, 0), 0);
    while (weir_manual_run_once(positions->stepper.executor, 0, 0) >= 0)
        ;
    post_letter(positions, 'g');
}

static void positions_close(struct positions *positions)
{
    weir_executor_release(positions->stepper.executor);
    stepper_close(&positions->stepper);
}

TEST(executor, runs_posted_tasks_in_one_order_by_both_ways)
{
    struct positions fast, general;

    post_everywhere(&fast, weir_execute_task);
    post_everywhere(&general, post_in_general);
    assert_string_equal(fast.letters.text, "abcdef");
    assert_string_equal(general.letters.text, fast.letters.text);
    assert_int_equal(fast.results[fast.count - 1], WEIR_EREJECTED);
    assert_int_equal(general.count, fast.count);
    assert_memory_equal(general.results, fast.results, sizeof(fast.results));
    positions_close(&fast);
    positions_close(&general);
}
