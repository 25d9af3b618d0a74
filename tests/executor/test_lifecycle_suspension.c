/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended executors, which have no thread until the next submission.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/thread_factory.h"
#include "support/test.h"

static struct call_counter thread_exits;

static void on_thread_exit(void *arg)
{
    (void)arg;
    call_counter_add(&thread_exits);
}

static void watch_thread_exit(void *arg)
{
    (void)arg;
    if (weir_thread_on_exit(on_thread_exit, NULL) < 0)
        abort();
}

TEST(lifecycle, suspended_after_a_task_it_has_no_thread_until_the_next_task)
{
    struct thread_factory_fixture fixture;
    struct single_executor single;

    memset(&thread_exits, 0, sizeof(thread_exits));
    thread_factory_open(&fixture);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    run_on_executor(single.executor, watch_thread_exit, NULL);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    assert_true(call_counter_await(&thread_exits, 1));
    assert_int_equal(fixture.started, 1);

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(fixture.started, 2);
    single_executor_close(&single);
    thread_factory_close(&fixture);
    assert_int_equal(thread_exits.calls, 1);
}

TEST(lifecycle, suspended_before_its_start_it_is_so_at_once)
{
    struct thread_factory_fixture fixture;
    struct single_executor single;

    thread_factory_open(&fixture);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_SUSPENDED);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_int_equal(fixture.started, 0);
    single_executor_run_one(&single);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(fixture.started, 1);
    single_executor_close(&single);
    thread_factory_close(&fixture);
}

TEST(lifecycle, a_timer_ends_a_suspension_that_has_begun)
{
    struct call_order letters = {0};
    struct single_executor single = single_executor_open_at(0);

    assert_int_equal(
        weir_schedule(single.executor, 10, call_order_task, call_order_arg(&letters, 'a'), NULL),
        0);
    assert_true(single_executor_await_sleep(&single, 10));
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_STARTED));
    assert_true(single_executor_await_sleep(&single, 10));
    assert_int_equal(weir_manual_clock_set(single.clock, 10), 0);
    assert_true(call_order_await(&letters, 1));
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    single_executor_suspend(&single);
    single_executor_close(&single);
}

static void schedule_and_suspend(void *arg)
{
    struct single_executor *single = arg;

    (void)weir_executor_suspend(single->executor);
    if (weir_schedule(single->executor, 10, call_counter_task, &thread_exits, NULL) < 0)
        abort();
}

TEST(lifecycle, a_timer_started_while_suspending_ends_the_suspension)
{
    struct single_executor single = single_executor_open_at(0);

    memset(&thread_exits, 0, sizeof(thread_exits));
    run_on_executor(single.executor, schedule_and_suspend, &single);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_STARTED));
    assert_true(single_executor_await_sleep(&single, 10));
    single_executor_close(&single);
}

TEST(lifecycle, runs_what_is_queued_before_it_is_suspended)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, single.executor);
    assert_int_equal(call_order_execute(&letters, single.executor, 'a'), 0);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(call_order_execute(&letters, single.executor, 'b'), 0);
    assert_int_equal(
        weir_execute_after_turn(single.executor, call_order_task, call_order_arg(&letters, 'c')),
        0);
    assert_int_equal(
        weir_execute_lazy(single.executor, call_order_task, call_order_arg(&letters, 'd')), 0);
    gate_open(&gate);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    assert_true(call_order_await(&letters, 4));
    assert_string_equal(letters.text, "abdc");
    single_executor_close(&single);
}

TEST(lifecycle, any_submission_ends_a_suspension)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};
    weir_task task;

    single_executor_suspend(&single);
    assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    single_executor_suspend(&single);
    weir_task_init(&task, call_counter_task, &counter);
    assert_int_equal(weir_execute_task(single.executor, &task), 0);
    assert_true(call_counter_await(&counter, 2));
    single_executor_suspend(&single);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 3));
    single_executor_suspend(&single);
    assert_int_equal(weir_submit(single.executor, call_counter_work, &counter, NULL), 0);
    assert_true(call_counter_await(&counter, 4));
    single_executor_suspend(&single);
    assert_int_equal(weir_schedule(single.executor, 1, call_counter_task, &counter, NULL), 0);
    assert_true(call_counter_await(&counter, 5));
    single_executor_close(&single);
}

TEST(lifecycle, a_lazy_task_that_ends_a_suspension_runs)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_counter counter = {0};

    for (uint32_t i = 1; i <= 100; i++) {
        single_executor_suspend(&single);
        assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i));
    }
    single_executor_close(&single);
}

static void suspend_itself(void *arg)
{
    struct single_executor *single = arg;

    (void)weir_executor_suspend(single->executor);
}

TEST(lifecycle, may_be_suspended_by_a_task_of_its_own)
{
    struct single_executor single = single_executor_open(NULL);

    run_on_executor(single.executor, suspend_itself, &single);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    single_executor_run_one(&single);
    single_executor_close(&single);
}

TEST(lifecycle, rejects_suspension_without_a_thread)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *manual;

    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_int_equal(weir_executor_suspend(manual), -ENOTSUP);
    assert_int_equal(weir_executor_suspend(weir_executor_immediate()), -ENOTSUP);
    single_executor_end(&single);
    assert_int_equal(weir_executor_suspend(single.executor), WEIR_EREJECTED);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_TERMINATED);
    single_executor_close(&single);
    weir_executor_release(manual);
}

struct sender {
    weir__thread thread;
    weir_executor *executor;
    _Atomic bool done;
    int lost;
};

static void send_one_by_one(void *arg)
{
    struct sender *sender = arg;

    for (int i = 0; i < 300 && sender->lost == 0; i++) {
        struct call_counter counter = {0};

        if (weir_execute(sender->executor, call_counter_task, &counter) < 0 ||
            !call_counter_await(&counter, 1))
            sender->lost++;
    }
    atomic_store(&sender->done, true);
}

TEST(lifecycle, loses_no_task_to_a_suspension)
{
    struct single_executor single = single_executor_open(NULL);
    struct sender sender = {.executor = single.executor};

    assert_int_equal(weir__thread_start("sender", send_one_by_one, &sender, &sender.thread), 0);
    while (!atomic_load(&sender.done)) {
        assert_int_equal(weir_executor_suspend(single.executor), 0);
        weir__thread_yield();
    }
    weir__thread_join(&sender.thread);
    assert_int_equal(sender.lost, 0);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    single_executor_close(&single);
}

/* ---- members that join meanwhile ---- */

static void ignore_shutdown(weir__member *member)
{
    weir__member_leave(member, weir_executor_current());
}

static const weir__member_type member_type = {.shut_down = ignore_shutdown};

struct joiner {
    weir__member member;
    weir_executor *executor;
};

static void join_it(void *arg)
{
    struct joiner *joiner = arg;

    weir__member_join(&joiner->member, joiner->executor);
}

static void leave_it(void *arg)
{
    struct joiner *joiner = arg;

    weir__member_leave(&joiner->member, joiner->executor);
}

TEST(lifecycle, a_member_that_joins_while_suspending_ends_the_suspension)
{
    struct single_executor single = single_executor_open(NULL);
    struct joiner joiner = {.member.type = &member_type, .executor = single.executor};

    run_on_executor(single.executor, join_it, &joiner);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_STARTED));
    run_on_executor(single.executor, leave_it, &joiner);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    single_executor_suspend(&single);
    single_executor_close(&single);
}

#define ROUNDS 4000

struct suspender {
    weir__thread thread;
    weir_executor *executor;
    _Atomic int round;
    _Atomic int suspended;
};

static void suspend_once_a_round(void *arg)
{
    struct suspender *suspender = arg;

    for (int round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&suspender->round) < round)
            weir__thread_yield();
        (void)weir_executor_suspend(suspender->executor);
        atomic_store(&suspender->suspended, round);
    }
}

/* A suspension and a registration at the same time, in any order. */
TEST(lifecycle, is_not_left_suspending_by_a_member_that_joins)
{
    struct single_executor single = single_executor_open(NULL);
    struct joiner joiner = {.member.type = &member_type, .executor = single.executor};
    struct suspender suspender = {.executor = single.executor};

    assert_int_equal(
        weir__thread_start("suspender", suspend_once_a_round, &suspender, &suspender.thread), 0);
    for (int round = 1; round <= ROUNDS; round++) {
        single_executor_run_one(&single);
        atomic_store(&suspender.round, round);
        run_on_executor(single.executor, join_it, &joiner);
        while (atomic_load(&suspender.suspended) < round)
            weir__thread_yield();
        assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_STARTED));
        run_on_executor(single.executor, leave_it, &joiner);
    }
    weir__thread_join(&suspender.thread);
    single_executor_close(&single);
}
