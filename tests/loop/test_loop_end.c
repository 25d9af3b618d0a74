/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an event loop: open handles are closed first, then come timers and the quiet period.
 */
#include "loop/loop.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/promise.h>
#include <weir/timer.h>

#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/test.h"

static void await_end(struct host *host)
{
    assert_int_equal(weir_executor_await_termination(host->loop, TEST_TIMEOUT_NS), 0);
}

TEST_EACH_LOOP(loop_end, runs_the_tasks_that_are_left)
{
    struct gate gate = {0};
    struct call_counter counter = {0};

    gate_hold(&gate, host->loop);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(host->loop, call_counter_task, &counter), 0);
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    gate_open(&gate);
    await_end(host);
    assert_int_equal(atomic_load(&counter.run), 1000);
}

TEST_EACH_LOOP(loop_end, needs_no_thread_if_there_was_none)
{
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_state(host->loop), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_execute(host->loop, call_counter_task, NULL), WEIR_EREJECTED);
}

TEST_EACH_LOOP(loop_end, lets_go_of_what_is_open)
{
    struct fd_event events[20] = {0};

    for (int i = 0; i < 20; i++)
        fd_event_open(&events[i], host->loop);
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    await_end(host);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(atomic_load(&events[i].closed.calls), 1);
        assert_int_equal(atomic_load(&events[i].shut_down.calls), 1);
        assert_int_equal(atomic_load(&events[i].aborted.calls), 0);
        fd_event_free(&events[i]);
    }
}

TEST_EACH_LOOP(loop_end, of_a_group_that_is_released_lets_go_of_what_is_open)
{
    struct fd_event event = {0};
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = weir_loop_io(host->loop), .threads = 2), &group),
        0);
    fd_event_open(&event, weir_group_at(group, 1));
    weir_group_release(group);
    assert_int_equal(atomic_load(&event.closed.calls), 1);
    fd_event_free(&event);
}

static void detach_event(struct fd_event *event)
{
    fd_event_detach(event);
}

/* Timers and tasks run until everything open is closed. */
TEST_EACH_LOOP(loop_end, waits_for_members_that_need_time)
{
    struct fd_event event = {.waits_for_abort = true, .on_event = detach_event};
    struct call_counter timer = {0}, late = {0}, task = {0};

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_schedule(host->loop, weir_ms(5), call_counter_task, &timer, NULL), 0);
    assert_int_equal(weir_schedule(host->loop, weir_seconds(3600), call_counter_task, &late, NULL),
                     0);
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&event.shut_down, 1));
    assert_true(call_counter_await(&timer, 1));
    assert_int_equal(weir_execute(host->loop, call_counter_task, &task), 0);
    assert_true(call_counter_await(&task, 1));
    assert_int_equal(atomic_load(&timer.run), 1);
    assert_int_equal(atomic_load(&late.calls), 0);
    assert_int_equal(weir_executor_state(host->loop), WEIR_EXECUTOR_SHUTTING_DOWN);
    fd_event_trigger(&event);
    await_end(host);
    assert_int_equal(atomic_load(&late.cancelled), 1);
    assert_int_equal(atomic_load(&event.aborted.calls), 0);
    fd_event_free(&event);
}

/* At the deadline minus the quiet period. */
TEST_EACH_LOOP(loop_end, aborts_members_that_take_too_long)
{
    struct fd_event event = {.waits_for_abort = true};
    int64_t start_ns = weir__monotonic_now(), took_ns;

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_executor_shutdown(host->loop, weir_ms(5), weir_ms(25)), 0);
    await_end(host);
    took_ns = weir__monotonic_now() - start_ns;
    assert_int_equal(atomic_load(&event.aborted.calls), 1);
    assert_true(took_ns >= weir_ms(25)); /* 20 until the abort, and a quiet period */
    fd_event_free(&event);
}

static void hang_another(struct fd_event *event)
{
    struct fd_event *another = event->user_data;

    fd_event_open(another, event->loop);
    fd_event_detach(event);
}

TEST_EACH_LOOP(loop_end, shuts_down_members_that_join_late)
{
    struct fd_event late = {0};
    struct fd_event event = {.waits_for_abort = true, .on_event = hang_another, .user_data = &late};

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&event.shut_down, 1));
    fd_event_trigger(&event);
    await_end(host);
    assert_int_equal(atomic_load(&late.shut_down.calls), 1);
    fd_event_free(&event);
    fd_event_free(&late);
}

/* One that nobody answers for. */
static void part(void *arg)
{
    weir__member_leave(arg, weir_executor_current());
}

TEST_EACH_LOOP(loop_end, closes_handles_that_nobody_answers_for)
{
    struct fd_event event = {0};

    fd_event_open(&event, host->loop);
    run_on_executor(host->loop, part, &event.member);
    assert_int_equal(weir_executor_shutdown(host->loop, 0, weir_ms(10)), 0);
    (void)weir_executor_await_termination(host->loop, TEST_TIMEOUT_NS);
    assert_int_equal(atomic_load(&event.shut_down.calls), 0);
    fd_event_free(&event);
}

static void on_hook(void *arg, int status)
{
    struct fd_event *event = arg;

    call_order_write(event->user_data,
                     atomic_load(&event->closed.calls) == 1 && status == 0 ? 'h' : 'x');
}

TEST_EACH_LOOP(loop_end, runs_its_hooks_when_nothing_is_open_any_more)
{
    struct call_order letters = {0};
    struct fd_event event = {.user_data = &letters};

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_executor_add_shutdown_hook(host->loop, on_hook, &event), 0);
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    await_end(host);
    assert_string_equal(letters.text, "h");
    fd_event_free(&event);
}

TEST_EACH_LOOP(loop_end, is_quiet_after_the_last_handle)
{
    struct fd_event event = {.waits_for_abort = true, .on_event = detach_event};
    int64_t start_ns;

    fd_event_open(&event, host->loop);
    assert_int_equal(weir_executor_shutdown(host->loop, weir_ms(20), TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&event.shut_down, 1));
    weir__thread_sleep(weir_ms(25));
    start_ns = weir__monotonic_now();
    fd_event_trigger(&event);
    await_end(host);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(20));
    fd_event_free(&event);
}

TEST_EACH_LOOP(loop_end, comes_to_a_suspended_loop)
{
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(host->loop, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    while (weir_executor_state(host->loop) != WEIR_EXECUTOR_SUSPENDED)
        weir__thread_yield();
    assert_int_equal(weir_executor_shutdown(host->loop, 0, TEST_TIMEOUT_NS), 0);
    await_end(host);
}
