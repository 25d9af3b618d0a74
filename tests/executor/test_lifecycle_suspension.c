/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor that is suspended: it has no thread until it is needed again.
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

static struct tally thread_exits;

static void on_thread_exit(void *arg)
{
    (void)arg;
    tally_add(&thread_exits);
}

static void watch_thread_exit(void *arg)
{
    (void)arg;
    (void)weir_thread_on_exit(on_thread_exit, NULL);
}

/* D 1 */
TEST(life, suspended_after_a_task_it_has_no_thread_until_the_next_task)
{
    struct workshop workshop;
    struct solo solo;

    memset(&thread_exits, 0, sizeof(thread_exits));
    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    errand_on(solo.executor, watch_thread_exit, NULL);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_SUSPENDED));
    assert_true(tally_await(&thread_exits, 1));
    assert_int_equal(workshop.started, 1);

    solo_run_one(&solo);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(workshop.started, 2);
    solo_close(&solo);
    workshop_close(&workshop);
    assert_int_equal(thread_exits.calls, 1);
}

/* D 2 */
TEST(life, suspended_before_its_start_it_is_so_at_once)
{
    struct workshop workshop;
    struct solo solo;

    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SUSPENDED);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_int_equal(workshop.started, 0);
    solo_run_one(&solo);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(workshop.started, 1);
    solo_close(&solo);
    workshop_close(&workshop);
}

/* D 3 */
TEST(life, a_timer_keeps_it_from_suspension_until_it_has_run)
{
    struct letters letters = {0};
    struct solo solo = solo_open_at(0);

    assert_int_equal(
        weir_schedule(solo.executor, 10, NULL, letters_task, letters_arg(&letters, 'a')), 0);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    solo_run_one(&solo);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(weir_manual_clock_set(solo.clock, 10), 0);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_SUSPENDED));
    assert_string_equal(letters.text, "a");
    solo_close(&solo);
}

/* D 3 */
TEST(life, a_timer_keeps_it_from_suspension_until_it_is_cancelled)
{
    struct letters letters = {0};
    struct solo solo = solo_open_at(0);
    weir_promise *promise;

    assert_int_equal(
        weir_schedule(solo.executor, 10, &promise, letters_task, letters_arg(&letters, 'a')), 0);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    solo_run_one(&solo);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_SUSPENDED));
    assert_string_equal(letters.text, "A");
    weir_promise_release(promise);
    solo_close(&solo);
}

TEST(life, runs_what_is_queued_before_it_is_suspended)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, solo.executor);
    assert_int_equal(letters_execute(&letters, solo.executor, 'a'), 0);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(letters_execute(&letters, solo.executor, 'b'), 0);
    assert_int_equal(
        weir_execute_after_turn(solo.executor, letters_task, letters_arg(&letters, 'c')), 0);
    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'd')), 0);
    gate_open(&gate);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_SUSPENDED));
    assert_true(letters_await(&letters, 4));
    assert_string_equal(letters.text, "abdc");
    solo_close(&solo);
}

TEST(life, any_submission_ends_a_suspension)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    weir_task task;

    solo_suspend(&solo);
    assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 1));
    solo_suspend(&solo);
    weir_task_init(&task, tally_task, &tally);
    assert_int_equal(weir_execute_task(solo.executor, &task), 0);
    assert_true(tally_await(&tally, 2));
    solo_suspend(&solo);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 3));
    solo_suspend(&solo);
    assert_int_equal(weir_submit(solo.executor, NULL, tally_call, &tally), 0);
    assert_true(tally_await(&tally, 4));
    solo_suspend(&solo);
    assert_int_equal(weir_schedule(solo.executor, 1, NULL, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 5));
    solo_close(&solo);
}

TEST(life, a_lazy_task_that_ends_a_suspension_runs)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};

    for (uint32_t i = 1; i <= 100; i++) {
        solo_suspend(&solo);
        assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
        assert_true(tally_await(&tally, i));
    }
    solo_close(&solo);
}

static void suspend_itself(void *arg)
{
    struct solo *solo = arg;

    (void)weir_executor_suspend(solo->executor);
}

TEST(life, may_be_suspended_by_a_task_of_its_own)
{
    struct solo solo = solo_open(NULL);

    errand_on(solo.executor, suspend_itself, &solo);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_SUSPENDED));
    solo_run_one(&solo);
    solo_close(&solo);
}

TEST(life, refuses_suspension_where_there_is_nothing_to_suspend)
{
    struct solo solo = solo_open(NULL);
    weir_executor *manual;

    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_int_equal(weir_executor_suspend(manual), -ENOTSUP);
    assert_int_equal(weir_executor_suspend(weir_executor_immediate()), -ENOTSUP);
    solo_end(&solo);
    assert_int_equal(weir_executor_suspend(solo.executor), WEIR_EREJECTED);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    solo_close(&solo);
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
        struct tally tally = {0};

        if (weir_execute(sender->executor, tally_task, &tally) < 0 || !tally_await(&tally, 1))
            sender->lost++;
    }
    atomic_store(&sender->done, true);
}

TEST(life, loses_no_task_to_a_suspension)
{
    struct solo solo = solo_open(NULL);
    struct sender sender = {.executor = solo.executor};

    assert_int_equal(weir__thread_start(&sender.thread, "sender", send_one_by_one, &sender), 0);
    while (!atomic_load(&sender.done)) {
        assert_int_equal(weir_executor_suspend(solo.executor), 0);
        weir__thread_yield();
    }
    weir__thread_join(&sender.thread);
    assert_int_equal(sender.lost, 0);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_true(solo_await_state(&solo, WEIR_EXECUTOR_SUSPENDED));
    solo_close(&solo);
}
