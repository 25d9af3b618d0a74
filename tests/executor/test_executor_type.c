/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an executor calls the functions of its type, on which event loops are built.
 */
#include "support/test.h"

#include <stdatomic.h>
#include <string.h>

#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_counter.h"
#include "support/executor/call_order.h"

/* The type under test: records the calls, and returns what the test sets. */
static struct {
    weir__executor_type type;
    struct call_order letters; /* l = busy_poll, w = wait, v = wait with deadline 0, d = dispatch */
    _Atomic bool records;
    _Atomic unsigned looks_left;      /* calls of busy_poll that find work */
    _Atomic unsigned work_left;       /* calls of has_work that return true */
    _Atomic unsigned drains_left;     /* calls of drain that return false */
    _Atomic unsigned drains_aborted;  /* calls of drain with `abort` */
    _Atomic bool awake_while_looking; /* next_wakeup, */
    _Atomic bool awake_in_dispatch;
    _Atomic int64_t dispatched_ns; /* and the clock */
    _Atomic int64_t budget_ns;
    bool heeds_abort;
    weir_executor *executor;
} kind;

static void note(char letter)
{
    if (atomic_load(&kind.records))
        call_order_write(&kind.letters, letter);
}

static bool use_one(_Atomic unsigned *left)
{
    if (atomic_load(left) == 0)
        return false;
    atomic_fetch_sub(left, 1);
    return true;
}

static bool is_awake(const weir_executor *executor)
{
    return atomic_load(&executor->next_wakeup) == WEIR__AWAKE;
}

static bool kind_has_work(weir_executor *executor)
{
    (void)executor;
    return atomic_load(&kind.work_left) > 0;
}

static bool kind_busy_poll(weir_executor *executor, int64_t deadline_ns)
{
    (void)deadline_ns;
    note('l');
    atomic_store(&kind.awake_while_looking, is_awake(executor));
    return use_one(&kind.looks_left);
}

static void kind_wait(weir_executor *executor, int64_t deadline_ns)
{
    note(deadline_ns > 0 ? 'w' : 'v');
    weir__plain_type.wait(executor, deadline_ns);
}

static int64_t kind_dispatch(weir_executor *executor)
{
    note('d');
    (void)use_one(&kind.work_left);
    atomic_store(&kind.awake_in_dispatch, is_awake(executor));
    atomic_store(&kind.dispatched_ns, executor->turn.now_ns);
    return atomic_load(&kind.budget_ns);
}

static bool kind_drain(weir_executor *executor, bool abort)
{
    (void)executor;
    atomic_fetch_add(&kind.drains_aborted, abort);
    return (abort && kind.heeds_abort) || !use_one(&kind.drains_left);
}

static void kind_open(void)
{
    memset(&kind, 0, sizeof(kind));
    kind.type = weir__plain_type;
    kind.type.has_work = kind_has_work;
    kind.type.busy_poll = kind_busy_poll;
    kind.type.wait = kind_wait;
    kind.type.dispatch = kind_dispatch;
    kind.type.drain = kind_drain;
    atomic_store(&kind.budget_ns, weir_ms(10));
    assert_int_equal(weir__executor_create(&kind.type,
                                           &(const weir__executor_options){
                                               .name = "kind",
                                               .clock = weir_clock_monotonic(),
                                               .rejected = weir_reject,
                                               .task_cap_ns = weir_ms(10),
                                               .cpu = -1,
                                               .idle_ns = WEIR_NEVER,
                                           },
                                           &kind.executor),
                     0);
}

static void kind_close(void)
{
    assert_int_equal(weir_executor_shutdown(kind.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(kind.executor, TEST_TIMEOUT_NS), 0);
    weir__executor_join(kind.executor);
    weir_executor_release(kind.executor);
}

static void await_sleep(void)
{
    while (is_awake(kind.executor))
        weir__thread_yield();
}

static void on_record(void *arg, int status)
{
    (void)arg;
    (void)status;
    atomic_store(&kind.records, true);
}

static void run(weir_task_fn *fn, void *arg)
{
    assert_int_equal(weir_execute(kind.executor, fn, arg), 0);
}

TEST(executor_type, is_polled_before_it_waits_and_dispatches_after_it)
{
    struct call_counter counter = {0};

    kind_open();
    run(on_record, NULL);
    assert_true(call_order_await(&kind.letters, 2));
    assert_memory_equal(kind.letters.text, "lw", 2);
    assert_true(atomic_load(&kind.awake_while_looking));
    await_sleep();
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 1));
    assert_true(call_order_await(&kind.letters, 3));
    assert_memory_equal(kind.letters.text, "lwd", 3);
    kind_close();
}

/* A thousand tasks submitted during I/O cause no wakeup: next_wakeup is AWAKE. */
TEST(executor_type, dispatches_awake_with_an_updated_time)
{
    struct call_counter counter = {0};
    int64_t before_ns;

    kind_open();
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 1));
    await_sleep();
    before_ns = weir__monotonic_now();
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 2));
    assert_true(atomic_load(&kind.awake_in_dispatch));
    assert_true(atomic_load(&kind.dispatched_ns) >= before_ns);
    kind_close();
}

static void on_record_with_looks(void *arg, int status)
{
    on_record(arg, status);
    atomic_store(&kind.looks_left, 3);
}

TEST(executor_type, that_finds_something_does_not_wait)
{
    kind_open();
    run(on_record_with_looks, NULL);
    assert_true(call_order_await(&kind.letters, 8));
    assert_memory_equal(kind.letters.text, "ldldldlw", 8);
    kind_close();
}

static void on_record_with_work(void *arg, int status)
{
    on_record(arg, status);
    atomic_store(&kind.work_left, 3);
}

TEST(executor_type, that_has_work_neither_polls_nor_sleeps)
{
    kind_open();
    run(on_record_with_work, NULL);
    assert_true(call_order_await(&kind.letters, 8));
    assert_memory_equal(kind.letters.text, "vdvdvdlw", 8);
    kind_close();
}

/* With a budget of 0 one batch of 64 tasks runs; then dispatch is called again. */
TEST(executor_type, limits_the_time_of_tasks)
{
    struct call_counter counter = {0};
    weir_executor_stats before, after;

    kind_open();
    atomic_store(&kind.budget_ns, 0);
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 1));
    await_sleep();
    weir_executor_read_stats(kind.executor, &before);
    for (int i = 0; i < 640; i++)
        assert_int_equal(weir_execute_lazy(kind.executor, call_counter_task, &counter), 0);
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 642));
    await_sleep();
    weir_executor_read_stats(kind.executor, &after);
    assert_in_range(after.turns - before.turns, 11, 12);
    kind_close();
}

/* Open handles are closed first, while timers still run. */
TEST(executor_type, is_drained_before_timers_are_cancelled)
{
    struct call_counter counter = {0}, late = {0};

    kind_open();
    atomic_store(&kind.drains_left, UINT32_MAX);
    assert_int_equal(weir_schedule(kind.executor, weir_ms(3), call_counter_task, &counter, NULL),
                     0);
    assert_int_equal(
        weir_schedule(kind.executor, weir_seconds(3600), call_counter_task, &late, NULL), 0);
    assert_int_equal(weir_executor_shutdown(kind.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&counter, 1));
    assert_int_equal(atomic_load(&counter.run), 1);
    assert_int_equal(atomic_load(&late.calls), 0);
    atomic_store(&kind.drains_left, 0);
    IGNORE_RESULT(weir_execute(kind.executor, call_counter_task,
                               &counter)); /* a turn, unless it has ended by now */
    kind_close();
    assert_int_equal(atomic_load(&late.cancelled), 1);
    assert_int_equal(atomic_load(&kind.drains_aborted), 0);
}

TEST(executor_type, is_aborted_when_only_the_quiet_period_is_left)
{
    int64_t start_ns = weir__monotonic_now(), took_ns;
    struct call_counter counter = {0};

    kind_open();
    kind.heeds_abort = true;
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 1));
    atomic_store(&kind.drains_left, UINT32_MAX);
    assert_int_equal(weir_executor_shutdown(kind.executor, weir_ms(5), weir_ms(25)), 0);
    kind_close();
    took_ns = weir__monotonic_now() - start_ns;
    assert_int_equal(atomic_load(&kind.drains_aborted), 1);
    assert_true(took_ns >= weir_ms(25)); /* 20 until then, and a quiet period */
}

/* Nothing delays the end beyond the deadline. */
TEST(executor_type, that_is_never_drained_still_ends)
{
    struct call_counter counter = {0};

    kind_open();
    run(call_counter_task, &counter);
    assert_true(call_counter_await(&counter, 1));
    atomic_store(&kind.drains_left, UINT32_MAX);
    assert_int_equal(weir_executor_shutdown(kind.executor, 0, weir_ms(5)), 0);
    kind_close();
}
