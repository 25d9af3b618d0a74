/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length of an executor's turn, and the bound of its queue.
 */
#include <stdlib.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/busy_task.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/single_executor.h"
#include "support/test.h"

#define SUBMITTERS 4
#define BATCH 64 /* tasks between two clock reads */

/* ---- the length of a turn ---- */

/* Tasks that take a millisecond each, by a manual clock. */
struct work {
    weir_manual_clock *clock;
    weir_executor *executor;
    int done;
    int done_before_tail; /* the end of the turn */
    int left;
    struct call_counter ended;
};

static void work_a_millisecond(void *arg, int status)
{
    struct work *work = arg;

    (void)status;
    (void)weir_manual_clock_advance(work->clock, weir_ms(1));
    if (++work->done == work->left)
        call_counter_add(&work->ended);
}

static void note_end_of_turn(void *arg, int status)
{
    struct work *work = arg;

    work->done_before_tail = work->done;
    call_counter_task(&work->ended, status);
}

/* The first task of the turn: it is counted in the batch. */
static void submit_work(void *arg, int status)
{
    struct work *work = arg;

    (void)status;
    IGNORE_RESULT(weir_execute_after_turn(work->executor, note_end_of_turn, work));
    for (int i = 0; i < work->left; i++)
        IGNORE_RESULT(weir_execute(work->executor, work_a_millisecond, work));
}

static int tasks_of_a_turn(int64_t task_cap_ns)
{
    struct work work = {.left = 1000};
    struct single_executor single;

    assert_int_equal(weir_manual_clock_create(1, &work.clock), 0);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(work.clock),
                                                     .task_cap_ns = task_cap_ns));
    work.executor = single.executor;
    assert_int_equal(weir_execute(single.executor, submit_work, &work), 0);
    assert_true(call_counter_await(&work.ended, 2));
    assert_int_equal(work.done, 1000);
    single_executor_close(&single);
    weir_manual_clock_release(work.clock);
    return work.done_before_tail;
}

/* A batch may also contain the task that submitted the work. */
static void assert_batches(int tasks, int batches)
{
    assert_in_range(tasks, batches * (BATCH - 1), batches * BATCH);
}

TEST(executor, looks_at_the_clock_every_64_tasks_and_ends_the_turn_when_its_time_is_up)
{
    assert_batches(tasks_of_a_turn(0), 1); /* the default is 10 ms */
    assert_batches(tasks_of_a_turn(weir_ms(1)), 1);
    assert_batches(tasks_of_a_turn(weir_ms(70)), 2);
    assert_batches(tasks_of_a_turn(weir_ms(140)), 3);
}

TEST(executor, without_a_cap_ends_the_turn_when_nothing_is_left)
{
    assert_int_equal(tasks_of_a_turn(WEIR_OFF), 1000);
}

static void stop_busy_task(void *arg, int status)
{
    struct busy_task *busy = arg;

    (void)status;
    atomic_store(&busy->stop, true);
}

TEST(executor, fires_a_timer_although_the_queue_is_never_empty)
{
    const int64_t caps[] = {0, WEIR_OFF};

    for (int i = 0; i < 2; i++) {
        weir_manual_clock *clock;
        struct busy_task busy = {0};
        struct single_executor single;

        assert_int_equal(weir_manual_clock_create(1, &clock), 0);
        single = single_executor_open(
            WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock), .task_cap_ns = caps[i]));
        busy.executor = single.executor;
        assert_int_equal(weir_execute(single.executor, busy_task_run, &busy), 0);
        assert_int_equal(weir_schedule(single.executor, weir_ms(1), stop_busy_task, &busy, NULL),
                         0);
        assert_int_equal(weir_manual_clock_advance(clock, weir_ms(1)), 0);
        assert_true(call_counter_await(&busy.stopped, 1));
        single_executor_close(&single);
        weir_manual_clock_release(clock);
    }
}

TEST(executor, runs_due_timers_before_the_tasks_of_a_turn)
{
    struct call_order letters = {0};
    struct single_executor single = single_executor_open_at(1);

    assert_int_equal(
        weir_schedule(single.executor, 10, call_order_task, call_order_arg(&letters, 'b'), NULL),
        0);
    assert_int_equal(
        weir_schedule(single.executor, 9, call_order_task, call_order_arg(&letters, 'a'), NULL), 0);
    assert_true(single_executor_await_sleep(&single, 10));
    assert_int_equal(
        weir_execute_lazy(single.executor, call_order_task, call_order_arg(&letters, 'c')), 0);
    assert_int_equal(weir_manual_clock_set(single.clock, 11), 0);
    assert_true(call_order_await(&letters, 3));
    assert_string_equal(letters.text, "abc");
    single_executor_close(&single);
}

/* ---- the bound of the queue ---- */

/* The number of `tries` tasks that an executor accepts while it waits at the gate. */
static int count_accepted(struct single_executor *single, struct call_counter *counter, int tries)
{
    int accepted = 0, err;

    for (int i = 0; i < tries; i++) {
        err = i % 2 == 0 ? weir_execute(single->executor, call_counter_task, counter)
                         : weir_execute_lazy(single->executor, call_counter_task, counter);
        if (err == 0)
            accepted++;
        else
            assert_int_equal(err, WEIR_EFULL);
    }
    return accepted;
}

static void check_bound(int64_t max_pending, int expected)
{
    struct single_executor single =
        single_executor_open(WEIR_GROUP_OPTIONS(.max_pending = max_pending));
    struct call_counter counter = {0};

    for (int round = 0; round < 2; round++) {
        struct gate gate = {0};

        gate_hold(&gate, single.executor);
        assert_int_equal(count_accepted(&single, &counter, expected + 10), expected);
        assert_int_equal(weir_executor_pending(single.executor), expected);
        gate_open(&gate);
        assert_true(call_counter_await(&counter, (uint32_t)(expected * (round + 1))));
    }
    single_executor_close(&single);
    assert_int_equal(counter.run, 2 * expected);
}

TEST(executor, with_a_bound_accepts_exactly_that_many_tasks)
{
    check_bound(17, 17);
    check_bound(100, 100);
}

TEST(executor, raises_a_bound_to_16_and_no_further)
{
    check_bound(1, 16);
    check_bound(15, 16);
    check_bound(16, 16);
}

/* Fills the queue from the executor's own thread, with tasks and with tail tasks. */
struct filler {
    weir_executor *executor;
    struct call_counter counter;
    int accepted;
    int tail_accepted;
    struct gate gate;
};

static void fill(void *arg, int status)
{
    struct filler *filler = arg;

    for (int i = 0; i < 30; i++)
        filler->accepted +=
            weir_execute(filler->executor, call_counter_task, &filler->counter) == 0;
    filler->tail_accepted =
        weir_execute_after_turn(filler->executor, call_counter_task, &filler->counter) == 0;
    gate_task(&filler->gate, status);
}

static void fill_tail(void *arg, int status)
{
    struct filler *filler = arg;

    for (int i = 0; i < 30; i++)
        filler->tail_accepted +=
            weir_execute_after_turn(filler->executor, call_counter_task, &filler->counter) == 0;
    gate_task(&filler->gate, status);
}

TEST(executor, bounds_the_submissions_of_its_own_thread_too)
{
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.max_pending = 20));
    struct filler filler = {.executor = single.executor};

    assert_int_equal(weir_execute(single.executor, fill, &filler), 0);
    assert_true(gate_await_arrivals(&filler.gate, 1));
    assert_int_equal(filler.accepted, 20);
    assert_int_equal(filler.tail_accepted, 0);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &filler.counter), WEIR_EFULL);
    gate_open(&filler.gate);
    assert_true(call_counter_await(&filler.counter, 20));
    single_executor_close(&single);
}

TEST(executor, bounds_tail_tasks_with_the_others)
{
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.max_pending = 20));
    struct filler filler = {.executor = single.executor};

    assert_int_equal(weir_execute(single.executor, fill_tail, &filler), 0);
    assert_true(gate_await_arrivals(&filler.gate, 1));
    assert_int_equal(filler.tail_accepted, 20);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &filler.counter),
                     WEIR_EFULL);
    gate_open(&filler.gate);
    assert_true(call_counter_await(&filler.counter, 20));

    for (int i = 0; i < 16; i++) /* and there is room again */
        assert_int_equal(
            weir_execute_after_turn(single.executor, call_counter_task, &filler.counter), 0);
    assert_true(call_counter_await(&filler.counter, 36));
    single_executor_close(&single);
}

struct crowd {
    weir__thread thread;
    struct single_executor *single;
    struct call_counter *counter;
    int accepted;
};

static void crowd_in(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < 500; i++)
        crowd->accepted +=
            weir_execute(crowd->single->executor, call_counter_task, crowd->counter) == 0;
}

TEST(executor, does_not_exceed_its_bound_when_several_threads_fill_it)
{
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.max_pending = 1000));
    struct crowd crowds[SUBMITTERS];
    struct call_counter counter = {0};
    struct gate gate = {0};
    int accepted = 0;

    gate_hold(&gate, single.executor);
    for (int i = 0; i < SUBMITTERS; i++) {
        crowds[i] = (struct crowd){.single = &single, .counter = &counter};
        assert_int_equal(weir__thread_start("crowd", crowd_in, &crowds[i], &crowds[i].thread), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        weir__thread_join(&crowds[i].thread);
        accepted += crowds[i].accepted;
    }
    assert_int_equal(accepted, 1000);
    gate_open(&gate);
    single_executor_close(&single);
    assert_int_equal(counter.run, 1000);
}
