/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn of an event loop: tasks, timers and I/O on one thread, the share of each, and the cost
 * of waking it. Its end is in test_loop_end.c, rebuilds in test_loop_rebuild.c.
 */
#include "loop/loop.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/promise.h>
#include <weir/timer.h>

#include "support/executor/call_counter.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/test.h"

static uint64_t wakeups_of(const weir_executor *loop)
{
    weir_executor_stats stats;

    weir_executor_read_stats(loop, &stats);
    return stats.wakeups_made;
}

static void await_sleep(const weir_executor *loop)
{
    while (atomic_load(&loop->next_wakeup) == WEIR__AWAKE)
        weir__thread_yield();
}

/* ---- what it is ---- */

struct place {
    weir_executor *current;
    bool is_inside;
    int waited;
};

static void check_state(void *arg)
{
    struct place *place = arg;
    weir_promise *promise;

    place->current = weir_executor_current();
    place->is_inside = weir_in_executor(place->current);
    if (weir_promise_create(NULL, &promise) == 0) {
        place->waited = weir_promise_await(promise, weir_ms(1));
        weir_promise_release(promise);
    }
}

TEST_EACH_LOOP(loop, runs_tasks_on_a_thread_that_may_not_wait)
{
    struct place place = {0};

    run_on_executor(host->loop, check_state, &place);
    assert_ptr_equal(place.current, host->loop);
    assert_true(place.is_inside);
    assert_int_equal(place.waited, -EDEADLK);
}

TEST_EACH_LOOP(loop, reports_its_backend)
{
    assert_int_equal(weir_loop_io(host->loop), weir__loop_of(host->loop)->options.io);
    assert_ptr_equal(weir__loop_io(host->loop)->type, host->backend->type);
    assert_int_equal(weir_loop_io(weir_executor_global()), WEIR_IO_NONE);
    assert_int_equal(weir_loop_io(NULL), WEIR_IO_NONE);
    assert_null(weir__loop_io(weir_executor_global()));
}

/* ---- one turn ---- */

TEST_EACH_LOOP(loop, dispatches_io)
{
    struct fd_event event = {0};

    fd_event_open(&event, host->loop);
    for (uint32_t i = 1; i <= 100; i++) {
        fd_event_trigger(&event);
        assert_true(call_counter_await(&event.triggered, i));
    }
    fd_event_close(&event);
}

TEST_EACH_LOOP(loop, fires_timers_and_never_early)
{
    int64_t start_ns = weir__monotonic_now();
    struct call_counter counter = {0};

    assert_int_equal(weir_schedule(host->loop, weir_ms(5), call_counter_task, &counter, NULL), 0);
    assert_true(call_counter_await(&counter, 1));
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(5));
}

/* What the call-backs of a turn start runs in that turn. */
struct order {
    struct call_order letters;
    weir_timer timer;
};

static void on_timer(weir_timer *timer)
{
    call_order_write(&WEIR_CONTAINER_OF(timer, struct order, timer)->letters, 't');
}

static void start_all(struct fd_event *event)
{
    struct order *order = event->user_data;

    call_order_write(&order->letters, 'i');
    IGNORE_RESULT(weir_execute(event->loop, call_order_task, call_order_arg(&order->letters, 'a')));
    IGNORE_RESULT(weir_execute_after_turn(event->loop, call_order_task,
                                          call_order_arg(&order->letters, 'z')));
    (void)weir_timer_start(event->loop, &order->timer, 0, on_timer);
}

TEST_EACH_LOOP(loop, does_io_then_timers_then_tasks_then_the_tail)
{
    struct order order = {0};
    struct fd_event event = {.on_event = start_all, .user_data = &order};

    fd_event_open(&event, host->loop);
    fd_event_trigger(&event);
    assert_true(call_order_await(&order.letters, 4));
    assert_string_equal(order.letters.text, "itaz");
    fd_event_close(&event);
}

/* ---- sleeping and waking ---- */

static void stand_at_gate(struct fd_event *event)
{
    gate_task(event->user_data, 0);
}

/* While it does I/O it is awake. */
TEST_EACH_LOOP(loop, is_not_woken_for_a_thousand_tasks_while_it_does_io)
{
    struct gate gate = {0};
    struct fd_event event = {.on_event = stand_at_gate, .user_data = &gate};
    struct call_counter counter = {0};
    uint64_t before;

    fd_event_open(&event, host->loop);
    await_sleep(host->loop);
    before = wakeups_of(host->loop);
    fd_event_trigger(&event);
    assert_true(gate_await_arrivals(&gate, 1));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(host->loop, call_counter_task, &counter), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 1000));
    assert_int_equal(wakeups_of(host->loop), before);
    fd_event_close(&event);
}

TEST_EACH_LOOP(loop, asleep_is_woken_once)
{
    struct call_counter counter = {0};
    uint64_t before;

    run_on_executor(host->loop, check_state, &(struct place){0});
    for (uint32_t i = 1; i <= 100; i++) {
        await_sleep(host->loop);
        before = wakeups_of(host->loop);
        assert_int_equal(weir_execute(host->loop, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i));
        assert_int_equal(wakeups_of(host->loop), before + 1);
    }
}

TEST_EACH_LOOP(loop, sleeps_on_while_nothing_earlier_comes)
{
    struct call_counter late = {0}, later = {0};
    weir_loop_stats before, after;

    assert_int_equal(weir_schedule(host->loop, weir_seconds(3600), call_counter_task, &late, NULL),
                     0);
    host_turn(host, 1);
    await_sleep(host->loop);
    assert_int_equal(weir_loop_read_stats(host->loop, &before), 0);
    assert_int_equal(weir_schedule(host->loop, weir_seconds(7200), call_counter_task, &later, NULL),
                     0);
    assert_int_equal(weir_execute_lazy(host->loop, call_counter_task, &later), 0);
    weir__thread_sleep(weir_ms(20));
    assert_int_equal(weir_loop_read_stats(host->loop, &after), 0);
    assert_int_equal(after.waits, before.waits);
    assert_int_equal(after.turns, before.turns);
    assert_int_equal(after.wakeups, before.wakeups);
    host_end(host);
    assert_int_equal(atomic_load(&late.cancelled), 1);
}

/* ---- what I/O and tasks get ---- */

struct mill {
    weir_executor *loop;
    _Atomic bool stopped;
    struct call_counter ground;
};

static void grind(void *arg, int status)
{
    struct mill *mill = arg;

    if (status == 0 && !atomic_load(&mill->stopped) && weir_execute(mill->loop, grind, mill) == 0)
        return;
    call_counter_add(&mill->ground);
}

TEST_EACH_LOOP(loop, dispatches_io_although_its_tasks_never_end)
{
    struct mill mill = {.loop = host->loop};
    struct fd_event event = {0};

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_execute(host->loop, grind, &mill), 0);
    for (uint32_t i = 1; i <= 20; i++) {
        fd_event_trigger(&event);
        assert_true(call_counter_await(&event.triggered, i));
    }
    atomic_store(&mill.stopped, true);
    assert_true(call_counter_await(&mill.ground, 1));
    fd_event_close(&event);
}

/* A ring that brings the next one, and so on. */
static void ring_again(struct fd_event *event)
{
    const struct mill *mill = event->user_data;

    if (!atomic_load(&mill->stopped))
        fd_event_trigger(event);
}

TEST_EACH_LOOP(loop, runs_tasks_although_its_io_never_ends)
{
    struct mill mill = {.loop = host->loop};
    struct fd_event events[3] = {{.on_event = ring_again, .user_data = &mill},
                                 {.on_event = ring_again, .user_data = &mill},
                                 {.on_event = ring_again, .user_data = &mill}};
    struct call_counter counter = {0};

    for (int i = 0; i < 3; i++) {
        fd_event_open(&events[i], host->loop);
        fd_event_trigger(&events[i]);
    }
    for (uint32_t i = 1; i <= 20; i++) {
        assert_int_equal(weir_execute(host->loop, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i));
    }
    atomic_store(&mill.stopped, true);
    for (int i = 0; i < 3; i++)
        fd_event_close(&events[i]);
}

/* ---- suspending ---- */

static void await_state(const weir_executor *loop, enum weir_executor_state state)
{
    while (weir_executor_state(loop) != state)
        weir__thread_yield();
}

TEST_EACH_LOOP(loop, with_a_handle_is_not_suspended)
{
    struct fd_event event = {0};

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    fd_event_trigger(&event);
    assert_true(call_counter_await(&event.triggered, 1));
    await_state(host->loop, WEIR_EXECUTOR_STARTED);
    fd_event_close(&event);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    await_state(host->loop, WEIR_EXECUTOR_SUSPENDED);
}

static void join(void *arg)
{
    weir__member_join(arg, weir_executor_current());
}

static void part(void *arg)
{
    weir__member_leave(arg, weir_executor_current());
}

/* A member without a handle keeps the loop from being suspended. */
TEST_EACH_LOOP(loop, with_a_member_is_not_suspended)
{
    static const weir__member_type type = {.shut_down = NULL};
    weir__member member = {.type = &type};

    run_on_executor(host->loop, join, &member);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    await_state(host->loop, WEIR_EXECUTOR_STARTED);
    assert_int_equal(weir__executor_handles(host->loop), 1);
    run_on_executor(host->loop, part, &member);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    await_state(host->loop, WEIR_EXECUTOR_SUSPENDED);
}

/* Resumes on a new thread, with a new ring and the same eventfd. */
TEST_EACH_LOOP(loop, comes_back_from_a_suspension)
{
    weir_thread_properties before, after;
    int wake_descriptor = weir__loop_io(host->loop)->wake_descriptor;

    for (int i = 0; i < 5; i++) {
        struct fd_event event = {0};

        assert_int_equal(weir_executor_thread(host->loop, &before), 0);
        assert_int_equal(weir_executor_suspend(host->loop), 0);
        await_state(host->loop, WEIR_EXECUTOR_SUSPENDED);
        assert_int_equal(weir_executor_thread(host->loop, &after), 0);
        assert_true(before.id != after.id);
        assert_int_equal(weir__loop_io(host->loop)->wake_descriptor, wake_descriptor);
        fd_event_open(&event, host->loop);
        fd_event_trigger(&event);
        assert_true(call_counter_await(&event.triggered, 1));
        fd_event_close(&event);
    }
}

TEST_EACH_LOOP(loop, that_never_ran_is_suspended_at_once)
{
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    assert_int_equal(weir_executor_state(host->loop), WEIR_EXECUTOR_SUSPENDED);
    run_on_executor(host->loop, check_state, &(struct place){0});
}
