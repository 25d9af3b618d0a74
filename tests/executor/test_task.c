/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task pools: every task returns to its pool, whichever thread ran it and whichever has ended.
 */
#include "executor/task.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/thread.h>

#include "base/queue.h"
#include "executor/executor.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/memory.h"
#include "support/test.h"

#define SLAB 64                /* tasks in an allocation */
#define POOL_MAX (4096 * SLAB) /* tasks that a pool keeps */

static void do_nothing(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static weir_task *take(void)
{
    weir_task *task = weir__task_alloc(do_nothing, NULL);

    assert_non_null(task);
    return task;
}

/* ---- one thread ---- */

TEST(task, is_prepared_with_its_function_and_argument)
{
    weir_task *task;
    int arg;

    task = weir__task_alloc(do_nothing, &arg);
    assert_non_null(task);
    assert_true(task->fn == do_nothing);
    assert_ptr_equal(task->arg, &arg);
    weir__task_free_own(task);
}

TEST(task, that_was_not_used_is_taken_again)
{
    weir_task *task = take();
    size_t allocations = test_memory_allocations();

    weir__task_free_own(task);
    for (int i = 0; i < 1000; i++) {
        assert_ptr_equal(take(), task);
        weir__task_free_own(task);
    }
    assert_int_equal(test_memory_allocations(), allocations);
}

TEST(task, freed_by_its_owner_is_reused)
{
    weir__task_returns returns = {0};
    weir_task *task = take();
    size_t allocations = test_memory_allocations();

    for (int i = 0; i < 1000; i++) {
        weir__task_free(&returns, task);
        assert_ptr_equal(take(), task);
    }
    weir__task_free(&returns, task);
    weir__task_flush(&returns);
    assert_int_equal(test_memory_allocations(), allocations);
}

TEST(task, comes_with_63_others_in_one_allocation)
{
    weir_task *tasks[SLAB + 1];
    size_t allocations;

    tasks[0] = take();
    allocations = test_memory_allocations();
    for (int i = 1; i < SLAB; i++)
        tasks[i] = take();
    assert_int_equal(test_memory_allocations(), allocations);
    tasks[SLAB] = take();
    assert_int_equal(test_memory_allocations(), allocations + 1);
    for (int i = 0; i <= SLAB; i++) {
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(tasks[i], tasks[j]);
    }
    for (int i = 0; i <= SLAB; i++)
        weir__task_free_own(tasks[i]);
}

TEST(task, beyond_the_limit_of_the_pool_is_freed_when_it_returns)
{
    const int count = POOL_MAX + 10;
    weir_task **tasks = malloc((size_t)count * sizeof(*tasks));
    weir__task_returns returns = {0};
    size_t live;

    assert_non_null(tasks);
    for (int i = 0; i < POOL_MAX; i++)
        tasks[i] = take();
    live = test_memory_live();
    for (int i = POOL_MAX; i < count; i++)
        tasks[i] = take();
    assert_int_equal(test_memory_live(), live + 10);
    for (int i = POOL_MAX; i < count - 5; i++)
        weir__task_free_own(tasks[i]);
    for (int i = count - 5; i < count; i++)
        weir__task_free(&returns, tasks[i]);
    assert_int_equal(test_memory_live(), live);

    for (int i = 0; i < POOL_MAX; i++)
        weir__task_free(&returns, tasks[i]);
    weir__task_flush(&returns);
    for (int i = 0; i < POOL_MAX; i++)
        (void)take();
    assert_int_equal(test_memory_live(), live);
    for (int i = 0; i < POOL_MAX; i++)
        weir__task_free_own(tasks[i]);
    free(tasks);
}

TEST(task, is_not_there_when_there_is_no_memory_and_is_afterwards)
{
    unsigned missing = 0;
    weir_task *task;

    for (unsigned n = 1;; n++) {
        weir_locals_remove_all(); /* starts without a pool */
        test_memory_fail_at(n);
        task = weir__task_alloc(do_nothing, NULL);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        missing += task == NULL;
        weir__task_free_own(task != NULL ? task : take());
    }
    assert_true(missing > 1);
    weir__task_free_own(task);
}

TEST(task, is_rejected_without_memory)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_execute(single.executor, call_counter_task, &counter);
        if (err == 0)
            break;
        assert_int_equal(err, -ENOMEM);
        assert_true(test_memory_failed());
        assert_int_equal(weir_executor_pending(single.executor), 0);
    }
    test_memory_fail_at(0);
    single_executor_close(&single);
    assert_int_equal(counter.run, 1);
}

/* A tail task of another thread takes two: the pool has one, and there is no memory for the other.
 */
TEST(task, rejects_a_tail_task_that_cannot_be_carried)
{
    weir_task **tasks = malloc(POOL_MAX * sizeof(*tasks));
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};

    assert_non_null(tasks);
    for (int i = 0; i < POOL_MAX - 1; i++)
        tasks[i] = take();
    test_memory_fail_at(1);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &counter),
                     -ENOMEM);
    test_memory_fail_at(0);
    for (int i = 0; i < POOL_MAX - 1; i++)
        weir__task_free_own(tasks[i]);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &counter), 0);
    single_executor_close(&single);
    assert_int_equal(counter.run, 1);
    free(tasks);
}

/* ---- several threads ---- */

/* All of them are out at once. */
static void execute_hundred(struct single_executor *single)
{
    struct call_counter counter = {0};
    struct gate gate = {0};

    assert_int_equal(weir_execute(single->executor, gate_task, &gate), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(weir_execute(single->executor, call_counter_task, &counter), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 100));
    assert_true(single_executor_await_sleep(single, WEIR_NEVER)); /* it has returned them */
}

TEST(task, comes_back_from_the_executor_that_ran_it)
{
    struct single_executor single = single_executor_open(NULL);
    size_t allocations;

    execute_hundred(&single);
    allocations = test_memory_allocations();
    for (int i = 0; i < 30; i++)
        execute_hundred(&single);
    assert_int_equal(test_memory_allocations(), allocations);
    single_executor_close(&single);
}

struct resubmission {
    weir_executor *executor;
    int left;
    size_t allocations;
    size_t growth;
    struct call_counter over;
};

static void react(void *arg, int status)
{
    struct resubmission *reaction = arg;

    if (reaction->left-- == 0) {
        reaction->growth = test_memory_allocations() - reaction->allocations;
        call_counter_task(&reaction->over, status);
        return;
    }
    IGNORE_RESULT(weir_execute(reaction->executor, react, reaction));
    if (reaction->allocations == 0)
        reaction->allocations = test_memory_allocations();
}

TEST(task, submitted_by_the_executors_own_thread_needs_no_memory)
{
    struct single_executor single = single_executor_open(NULL);
    struct resubmission reaction = {.executor = single.executor, .left = 10000};

    assert_int_equal(weir_execute(single.executor, react, &reaction), 0);
    assert_true(call_counter_await(&reaction.over, 1));
    assert_int_equal(reaction.growth, 0);
    single_executor_close(&single);
}

struct submitter {
    weir__thread thread;
    weir_executor *executor;
    struct call_counter *counter;
    int count;
    int refused;
};

static void submit(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < submitter->count; i++)
        submitter->refused +=
            weir_execute(submitter->executor, call_counter_task, submitter->counter) < 0;
}

TEST(task, outlives_the_thread_that_submitted_it)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    struct gate gate = {0};
    struct submitter submitter = {.executor = single.executor, .counter = &counter, .count = 200};

    gate_hold(&gate, single.executor);
    run_on_other_thread(submit, &submitter);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 200));
    assert_int_equal(submitter.refused, 0);
    single_executor_close(&single);
}

/* More threads than the executor has chains for returning tasks. */
TEST(task, of_many_threads_in_one_batch_comes_back)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    struct gate gate = {0};
    struct submitter submitter = {.executor = single.executor, .counter = &counter, .count = 3};

    gate_hold(&gate, single.executor);
    for (int i = 0; i < 2 * WEIR__TASK_RETURNS; i++)
        run_on_other_thread(submit, &submitter);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 2 * WEIR__TASK_RETURNS * 3));
    assert_int_equal(submitter.refused, 0);
    single_executor_close(&single);
}

TEST(task, comes_back_to_each_of_many_threads)
{
    struct submitter submitters[2 * WEIR__TASK_RETURNS];
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    const int count = 2 * WEIR__TASK_RETURNS;

    for (int i = 0; i < count; i++) {
        submitters[i] =
            (struct submitter){.executor = single.executor, .counter = &counter, .count = 5000};
        assert_int_equal(
            weir__thread_start("submitter", submit, &submitters[i], &submitters[i].thread), 0);
    }
    for (int i = 0; i < count; i++) {
        weir__thread_join(&submitters[i].thread);
        assert_int_equal(submitters[i].refused, 0);
    }
    assert_true(call_counter_await(&counter, (uint32_t)count * 5000));
    single_executor_close(&single);
}

/* A thread allocates tasks and ends while another returns them. */
struct relay {
    weir__queue queue;
    int count;
};

static void take_and_end(void *arg)
{
    struct relay *relay = arg;

    for (int i = 0; i < relay->count; i++) {
        weir_task *task = weir__task_alloc(do_nothing, NULL);

        if (task == NULL || !weir__queue_push(&relay->queue, &task->node))
            abort();
    }
}

TEST(task, may_come_back_while_its_thread_ends)
{
    for (int round = 0; round < 200; round++) {
        struct relay relay = {.count = 1 + round * 7 % 300};
        weir__task_returns returns = {0};
        weir__chain chain = {0};
        weir_queue_node *node;
        weir__thread owner;
        int given = 0;

        weir__queue_init(&relay.queue);
        weir__queue_open(&relay.queue);
        assert_int_equal(weir__thread_start("owner", take_and_end, &relay, &owner), 0);
        while (given < relay.count) {
            (void)weir__queue_take(&relay.queue, &chain);
            while ((node = weir__chain_pop(&chain)) != NULL) {
                weir__task_free(&returns, WEIR_CONTAINER_OF(node, weir_task, node));
                given++;
            }
            weir__task_flush(&returns);
        }
        weir__thread_join(&owner);
        assert_int_equal(test_memory_live(), 0);
    }
}
