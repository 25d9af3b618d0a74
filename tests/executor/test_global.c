/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global executor, whose thread ends when it is idle.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/run_on_thread.h"

static bool await_state(enum weir_executor_state state)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (weir_executor_state(weir_executor_global()) != state &&
           weir__monotonic_now() < deadline_ns)
        weir__thread_yield();
    return weir_executor_state(weir_executor_global()) == state;
}

TEST(global, is_always_the_same_and_always_there)
{
    weir_executor *global = weir_executor_global();

    assert_non_null(global);
    assert_ptr_equal(weir_executor_global(), global);
    assert_string_equal(weir_executor_name(global), "weir-global");
    assert_false(weir_in_executor(global));
    assert_ptr_equal(weir_executor_retain(global), global);
    weir_executor_release(global);
}

struct visit {
    struct call_counter counter;
    weir_executor *current;
    bool is_inside;
    int wait;
    weir_promise *promise;
};

static void on_visit(void *arg, int status)
{
    struct visit *visit = arg;

    visit->current = weir_executor_current();
    visit->is_inside = weir_in_executor(weir_executor_global());
    visit->wait = weir_promise_await(visit->promise, TEST_TIMEOUT_NS);
    call_counter_task(&visit->counter, status);
}

TEST(global, runs_tasks_on_a_thread_of_its_own)
{
    weir_thread_properties thread;
    struct visit visit = {0};

    assert_int_equal(weir_promise_create(NULL, &visit.promise), 0);
    assert_ptr_equal(weir_promise_executor(visit.promise), weir_executor_global());
    assert_int_equal(weir_execute(weir_executor_global(), on_visit, &visit), 0);
    assert_true(call_counter_await(&visit.counter, 1));
    assert_ptr_equal(visit.current, weir_executor_global());
    assert_true(visit.is_inside);
    assert_int_equal(visit.wait, -EDEADLK);
    assert_int_equal(weir_executor_thread(weir_executor_global(), &thread), 0);
    assert_string_equal(thread.name, "weir-global");
    assert_true(thread.id != weir__thread_id());
    weir_promise_release(visit.promise);
}

TEST(global, runs_timers)
{
    struct call_counter counter = {0};
    weir_promise *promise;
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(
        weir_schedule(weir_executor_global(), weir_ms(2), call_counter_task, &counter, &promise),
        0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(2));
    assert_int_equal(atomic_load(&counter.run), 1);
    weir_promise_release(promise);
}

TEST(global, cannot_be_ended)
{
    weir_executor *global = weir_executor_global();
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(global, call_counter_task, &counter), 0);
    assert_int_equal(weir_executor_shutdown(global, 0, 0), -EPERM);
    assert_int_equal(weir_executor_await_termination(global, 0), -EPERM);
    assert_null(weir_executor_termination(global));
    assert_int_equal(weir_executor_add_shutdown_hook(global, call_counter_task, &counter), -EPERM);
    assert_int_equal(weir_execute(global, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 2));
    assert_int_equal(atomic_load(&counter.run), 2);
    assert_true(weir_executor_state(global) < WEIR_EXECUTOR_SHUTTING_DOWN);
}

/* ---- its thread ---- */

struct life {
    struct call_counter ran;
    struct call_counter ended;
    _Atomic int64_t ran_ns;
    _Atomic int64_t ended_ns;
    _Atomic int64_t thread_id;
    _Atomic int state; /* at its run: a second later the thread may have ended */
};

static void on_thread_exit(void *arg)
{
    struct life *life = arg;

    atomic_store(&life->ended_ns, weir__monotonic_now());
    call_counter_add(&life->ended);
}

static void on_live(void *arg, int status)
{
    struct life *life = arg;

    atomic_store(&life->thread_id, weir__thread_id());
    atomic_store(&life->state, weir_executor_state(weir_executor_global()));
    if (weir_thread_on_exit(on_thread_exit, life) < 0)
        abort();
    atomic_store(&life->ran_ns, weir__monotonic_now());
    call_counter_task(&life->ran, status);
}

/* The only test that waits for real time. */
TEST(global, ends_its_thread_after_a_second_of_idleness_and_starts_another)
{
    struct life lives[2] = {0};
    int64_t idle_ns;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_execute(weir_executor_global(), on_live, &lives[i]), 0);
        assert_true(call_counter_await(&lives[i].ran, 1));
        assert_int_equal(atomic_load(&lives[i].state), WEIR_EXECUTOR_STARTED);
        if (i == 1)
            (void)weir_executor_suspend(weir_executor_global()); /* one second is enough */
        assert_true(call_counter_await(&lives[i].ended, 1));
    }
    idle_ns = atomic_load(&lives[0].ended_ns) - atomic_load(&lives[0].ran_ns);
    assert_true(idle_ns >= weir_seconds(1));
    assert_true(await_state(WEIR_EXECUTOR_SUSPENDED));
}

TEST(global, comes_back_on_a_new_thread)
{
    struct life lives[2] = {0};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_execute(weir_executor_global(), on_live, &lives[i]), 0);
        assert_true(call_counter_await(&lives[i].ran, 1));
        assert_int_equal(weir_executor_suspend(weir_executor_global()), 0);
        assert_true(call_counter_await(&lives[i].ended, 1));
        assert_true(await_state(WEIR_EXECUTOR_SUSPENDED));
    }
    assert_int_equal(atomic_load(&lives[0].ran.calls), 1);
}

TEST(global, keeps_its_thread_while_a_timer_runs)
{
    struct life life = {0};
    struct call_counter timer = {0};
    weir_promise *promise;

    assert_int_equal(weir_schedule(weir_executor_global(), weir_seconds(3600), call_counter_task,
                                   &timer, &promise),
                     0);
    assert_int_equal(weir_execute(weir_executor_global(), on_live, &life), 0);
    assert_true(call_counter_await(&life.ran, 1));
    assert_int_equal(weir_executor_suspend(weir_executor_global()), 0);
    assert_int_equal(weir_execute(weir_executor_global(), call_counter_task, &life.ran), 0);
    assert_true(call_counter_await(&life.ran, 2));
    while (weir_executor_state(weir_executor_global()) != WEIR_EXECUTOR_STARTED)
        weir__thread_yield();
    assert_int_equal(atomic_load(&life.ended.calls), 0);

    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(weir_executor_suspend(weir_executor_global()), 0);
    assert_true(call_counter_await(&life.ended, 1));
    assert_int_equal(atomic_load(&timer.cancelled), 1);
    weir_promise_release(promise);
}

/* ---- the end of the thread races with the next task ---- */

#define SUBMITTERS 2
#define TASKS_EACH 1500

struct race {
    _Atomic bool over;
    _Atomic unsigned out_of_order;
    struct call_counter ran;
};

struct submitter {
    weir__thread thread;
    struct race *race;
    unsigned next; /* accessed by the global executor: the number of the next task */
    struct numbered {
        struct submitter *submitter;
        unsigned number;
    } tasks[TASKS_EACH];
};

static void on_numbered(void *arg, int status)
{
    struct numbered *numbered = arg;
    struct submitter *submitter = numbered->submitter;

    if (submitter->next++ != numbered->number)
        atomic_fetch_add(&submitter->race->out_of_order, 1);
    call_counter_task(&submitter->race->ran, status);
}

static void submit_numbered(void *arg)
{
    struct submitter *submitter = arg;

    for (unsigned i = 0; i < TASKS_EACH; i++) {
        submitter->tasks[i] = (struct numbered){submitter, i};
        IGNORE_RESULT(weir_execute(weir_executor_global(), on_numbered, &submitter->tasks[i]));
        if (i % 16 == 0)
            weir__thread_yield();
    }
}

static void suspend_often(void *arg)
{
    struct race *race = arg;

    while (!atomic_load(&race->over)) {
        (void)weir_executor_suspend(weir_executor_global());
        weir__thread_yield();
    }
}

/* However often the thread ends meanwhile: each task runs once, in order, on one thread at a time.
 */
TEST(global, loses_no_task_that_comes_while_its_thread_ends)
{
    static struct submitter submitters[SUBMITTERS];
    struct race race = {0};
    weir__thread suspender;

    assert_int_equal(weir__thread_start("suspender", suspend_often, &race, &suspender), 0);
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i].race = &race;
        submitters[i].next = 0;
        assert_int_equal(
            weir__thread_start("submitter", submit_numbered, &submitters[i], &submitters[i].thread),
            0);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        weir__thread_join(&submitters[i].thread);
    assert_true(call_counter_await(&race.ran, SUBMITTERS * TASKS_EACH));
    atomic_store(&race.over, true);
    weir__thread_join(&suspender);
    assert_int_equal(atomic_load(&race.ran.run), SUBMITTERS * TASKS_EACH);
    assert_int_equal(atomic_load(&race.out_of_order), 0);
}

/* In each round the task arrives at another step of the end. */
TEST(global, starts_exactly_one_thread_for_a_task_that_comes_while_it_ends)
{
    struct call_counter counter = {0};

    for (uint32_t i = 0; i < 500; i++) {
        assert_int_equal(weir_executor_suspend(weir_executor_global()), 0);
        for (uint32_t j = 0; j < i % 7; j++)
            weir__thread_yield();
        assert_int_equal(weir_execute(weir_executor_global(), call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i + 1));
    }
    assert_int_equal(atomic_load(&counter.run), 500);
}
