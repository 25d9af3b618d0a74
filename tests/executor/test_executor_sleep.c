/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an executor sleeps, and what wakes it.
 */
#include <stdlib.h>

#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/single_executor.h"
#include "support/test.h"

TEST(executor, is_woken_at_most_once_by_a_thousand_tasks)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    struct gate gate = {0};
    uint64_t made;

    gate_hold(&gate, single.executor);
    made = single_executor_stats(&single).wakeups_made;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(single_executor_stats(&single).wakeups_made, made);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 1000));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));

    assert_int_equal(single_executor_stats(&single).wakeups_made, made);
    assert_int_equal(single_executor_stats(&single).wakeups_saved, 1001 - made);
    single_executor_close(&single);
}

TEST(executor, that_sleeps_is_woken_by_one_call)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    uint64_t made;

    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    made = single_executor_stats(&single).wakeups_made;
    for (uint32_t i = 1; i <= 10; i++) {
        assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
        assert_int_equal(single_executor_stats(&single).wakeups_made, made + i);
        assert_true(call_counter_await(&counter, i + 1));
    }
    single_executor_close(&single);
}

TEST(executor, is_woken_by_an_earlier_timer_and_not_by_a_later_one)
{
    struct call_order letters = {0};
    weir_promise *late;
    struct single_executor single = single_executor_open_at(0);
    uint64_t made;

    assert_int_equal(weir_schedule(single.executor, weir_ms(20), call_order_task,
                                   call_order_arg(&letters, 'b'), NULL),
                     0);
    assert_true(single_executor_await_sleep(&single, weir_ms(20)));
    made = single_executor_stats(&single).wakeups_made;

    assert_int_equal(weir_schedule(single.executor, weir_ms(30), call_order_task,
                                   call_order_arg(&letters, 'c'), &late),
                     0);
    assert_int_equal(weir_schedule(single.executor, weir_ms(20), call_order_task,
                                   call_order_arg(&letters, 'd'), NULL),
                     0);
    assert_int_equal(weir_promise_cancel(late), 0);
    assert_int_equal(single_executor_stats(&single).wakeups_made, made);
    assert_true(single_executor_await_sleep(&single, weir_ms(20))); /* still */

    assert_int_equal(weir_schedule(single.executor, weir_ms(10), call_order_task,
                                   call_order_arg(&letters, 'a'), NULL),
                     0);
    assert_int_equal(single_executor_stats(&single).wakeups_made, made + 1);
    assert_true(single_executor_await_sleep(&single, weir_ms(10)));
    assert_int_equal(weir_manual_clock_set(single.clock, weir_ms(40)), 0);
    assert_true(call_order_await(&letters, 4));
    assert_string_equal(letters.text, "Cabd"); /* the cancelled one when it was found */
    weir_promise_release(late);
    single_executor_close(&single);
}

/* Submits one task at a time and waits for it, so that the executor is about to sleep each time. */
struct caller {
    weir__thread thread;
    weir_executor *executor;
    int lost;
};

static void call_again_and_again(void *arg)
{
    struct caller *caller = arg;

    for (int i = 0; i < 2000 && caller->lost == 0; i++) {
        struct call_counter counter = {0};

        if (weir_execute(caller->executor, call_counter_task, &counter) < 0 ||
            !call_counter_await(&counter, 1))
            caller->lost++;
    }
}

TEST(executor, loses_no_wake_up)
{
    struct single_executor single = single_executor_open(NULL);
    struct caller callers[2];

    for (int i = 0; i < 2; i++) {
        callers[i] = (struct caller){.executor = single.executor};
        assert_int_equal(
            weir__thread_start("caller", call_again_and_again, &callers[i], &callers[i].thread), 0);
    }
    for (int i = 0; i < 2; i++) {
        weir__thread_join(&callers[i].thread);
        assert_int_equal(callers[i].lost, 0);
    }
    single_executor_close(&single);
}

TEST(executor, sleeps_although_its_clock_is_at_its_end)
{
    struct call_counter due = {0}, never = {0};
    struct single_executor single = single_executor_open_at(1);

    assert_int_equal(weir_schedule(single.executor, weir_ms(1), call_counter_task, &due, NULL), 0);
    assert_int_equal(weir_schedule(single.executor, WEIR_NEVER, call_counter_task, &never, NULL),
                     0);
    assert_int_equal(weir_manual_clock_advance(single.clock, WEIR_NEVER), 0);
    assert_true(call_counter_await(&due, 1));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    assert_int_equal(never.calls, 0);
    single_executor_close(&single);
}

static int64_t ahead(const weir_clock *clock)
{
    (void)clock;
    return weir__monotonic_now() + weir_seconds(1000);
}

static int64_t behind(const weir_clock *clock)
{
    (void)clock;
    return weir__monotonic_now() / 2;
}

/* The kernel sleeps by one clock; deadlines are of the executor's clock. */
static void check_sleep_by(int64_t (*now)(const weir_clock *clock))
{
    weir_clock clock = {.now = now};
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.clock = &clock));
    weir_executor_stats stats;
    weir_promise *promise;
    struct call_counter counter = {0};

    assert_int_equal(
        weir_schedule(single.executor, weir_ms(20), call_counter_task, &counter, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    stats = single_executor_stats(&single);
    assert_true(stats.turns < 100);
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(executor, sleeps_by_whatever_clock_it_has)
{
    check_sleep_by(ahead);
    check_sleep_by(behind);
}

/* A clock that is set while the thread goes to sleep: the thread sees that the deadline passed. */
TEST(executor, misses_no_move_of_a_manual_clock)
{
    struct single_executor single = single_executor_open_at(1);

    for (int i = 0; i < 2000; i++) {
        struct call_counter counter = {0};

        assert_int_equal(weir_schedule(single.executor, 1, call_counter_task, &counter, NULL), 0);
        assert_int_equal(weir_manual_clock_advance(single.clock, 1), 0);
        assert_true(call_counter_await(&counter, 1));
    }
    single_executor_close(&single);
}

/*
 * Events between a thread's decision to sleep and its sleep. The only call it makes there reads the
 * clock, so the clock is a trap: a tail task arms it, and the next read runs a function on another
 * thread, which finds the executor still awake.
 */
struct trap {
    weir_clock clock;
    struct single_executor single;
    _Atomic int64_t now_ns;
    weir_clock_observer *observer;
    void (*spring)(void *trap); /* on another thread */
    _Atomic bool set;
    weir_timer timer;
    struct call_counter sprung;
};

static int64_t look_into_trap(const weir_clock *clock)
{
    struct trap *trap = WEIR_CONTAINER_OF((uintptr_t)clock, struct trap, clock);
    int64_t now_ns = atomic_load(&trap->now_ns);
    weir__thread thread;

    if (atomic_load(&trap->set) && weir_in_executor(trap->single.executor)) {
        atomic_store(&trap->set, false);
        if (weir__thread_start("spring", trap->spring, trap, &thread) < 0)
            abort();
        weir__thread_join(&thread);
    }
    return now_ns;
}

static void fire_never(weir_timer *timer)
{
    (void)timer;
    abort();
}

/* The last task of a turn. A timer without a deadline makes the thread read its clock. */
static void set_trap(void *arg, int status)
{
    struct trap *trap = arg;

    (void)status;
    atomic_store(&trap->set, true);
    trap->timer.fn = fire_never;
    trap->timer.executor = trap->single.executor;
    weir__timers_start_after(&trap->single.executor->timers, &trap->timer.node, weir_seconds(1));
}

static void subscribe(weir_clock *clock, weir_clock_observer *observer)
{
    WEIR_CONTAINER_OF(clock, struct trap, clock)->observer = observer;
}

static void unsubscribe(weir_clock *clock, weir_clock_observer *observer)
{
    (void)clock;
    (void)observer;
}

static void open_trap(struct trap *trap, void (*spring)(void *trap))
{
    *trap = (struct trap){
        .clock = {look_into_trap, subscribe, unsubscribe, true},
        .spring = spring,
        .now_ns = 1,
    };
    weir_timer_init(&trap->timer);
    trap->single = single_executor_open(WEIR_GROUP_OPTIONS(.clock = &trap->clock));
}

static void submit_a_task(void *arg)
{
    struct trap *trap = arg;

    IGNORE_RESULT(weir_execute(trap->single.executor, call_counter_task, &trap->sprung));
}

TEST(executor, that_is_about_to_sleep_sees_a_task)
{
    struct trap trap;

    open_trap(&trap, submit_a_task);
    assert_int_equal(weir_execute_after_turn(trap.single.executor, set_trap, &trap), 0);
    assert_true(call_counter_await(&trap.sprung, 1));
    single_executor_close(&trap.single);
}

static void shut_down(void *arg)
{
    struct trap *trap = arg;

    (void)weir_executor_shutdown(trap->single.executor, 0, weir_seconds(1));
}

TEST(executor, that_is_about_to_sleep_sees_a_change_of_its_state)
{
    struct trap trap;

    open_trap(&trap, shut_down);
    assert_int_equal(weir_execute_after_turn(trap.single.executor, set_trap, &trap), 0);
    assert_int_equal(weir_executor_await_termination(trap.single.executor, TEST_TIMEOUT_NS), 0);
    single_executor_close(&trap.single);
}

static void move_clock(void *arg)
{
    struct trap *trap = arg;

    atomic_store(&trap->now_ns, weir_ms(2));
    trap->observer->moved(trap->observer);
}

TEST(executor, that_is_about_to_sleep_sees_a_move_of_its_clock)
{
    struct trap trap;

    open_trap(&trap, move_clock);
    assert_int_equal(
        weir_schedule(trap.single.executor, weir_ms(1), call_counter_task, &trap.sprung, NULL), 0);
    assert_int_equal(weir_execute_after_turn(trap.single.executor, set_trap, &trap), 0);
    assert_true(call_counter_await(&trap.sprung, 1));
    assert_int_equal(trap.sprung.run, 1);
    single_executor_close(&trap.single);
}
