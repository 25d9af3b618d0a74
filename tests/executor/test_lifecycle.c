/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifecycle of an executor: its thread, its states, and types that fail. Suspension, shutdown
 * and hooks are in test_lifecycle_suspension.c, test_lifecycle_end.c and test_hooks.c.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_order.h"
#include "support/executor/fake_loop.h"
#include "support/executor/gate.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/submit_stress.h"
#include "support/executor/thread_factory.h"
#include "support/test.h"

/* ---- its thread ---- */

TEST(lifecycle, begins_without_a_thread_and_starts_one_with_the_first_task)
{
    struct thread_factory_fixture fixture;
    struct single_executor single;

    thread_factory_open(&fixture);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(fixture.started, 0);
    single_executor_run_one(&single);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    for (int i = 0; i < 10; i++)
        single_executor_run_one(&single);
    assert_int_equal(fixture.started, 1);
    assert_string_equal(fixture.threads[0].name, weir_executor_name(single.executor));
    single_executor_close(&single);
    thread_factory_close(&fixture);
}

struct starter {
    weir__thread thread;
    weir_executor *executor;
    _Atomic bool *go;
    struct call_counter counter;
    int err;
};

static void start_together(void *arg)
{
    struct starter *starter = arg;

    while (!atomic_load(starter->go))
        weir__thread_yield();
    starter->err = weir_execute(starter->executor, call_counter_task, &starter->counter);
}

TEST(lifecycle, starts_one_thread_however_many_submit_the_first_task)
{
    for (int round = 0; round < 50; round++) {
        struct starter starters[4];
        struct thread_factory_fixture fixture;
        _Atomic bool go = false;
        struct single_executor single;

        thread_factory_open(&fixture);
        single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
        for (int i = 0; i < 4; i++) {
            starters[i] = (struct starter){.executor = single.executor, .go = &go};
            assert_int_equal(
                weir__thread_start("starter", start_together, &starters[i], &starters[i].thread),
                0);
        }
        atomic_store(&go, true);
        for (int i = 0; i < 4; i++) {
            weir__thread_join(&starters[i].thread);
            assert_int_equal(starters[i].err, 0);
            assert_true(call_counter_await(&starters[i].counter, 1));
        }
        assert_int_equal(fixture.started, 1);
        single_executor_close(&single);
        thread_factory_close(&fixture);
    }
}

struct thread_record {
    char name[16];
    pid_t id;
    cpu_set_t cpus;
    sigset_t blocked;
    weir_executor *executor;
    weir_thread_properties properties;
    int err;
};

static void record_thread(void *arg)
{
    struct thread_record *portrait = arg;

    (void)pthread_getname_np(pthread_self(), portrait->name, sizeof(portrait->name));
    portrait->id = weir__thread_id();
    (void)sched_getaffinity(0, sizeof(portrait->cpus), &portrait->cpus);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &portrait->blocked);
    portrait->err = weir_executor_thread(portrait->executor, &portrait->properties);
}

TEST(lifecycle, returns_its_thread_and_starts_it)
{
    struct single_executor single = single_executor_open(WEIR_GROUP_OPTIONS(.name = "mill"));
    struct thread_record portrait = {.executor = single.executor};
    weir_thread_properties properties;

    assert_int_equal(weir_executor_thread(single.executor, &properties), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    assert_string_equal(properties.name, "mill-1");
    assert_int_equal(properties.cpu, -1);
    assert_int_not_equal(properties.id, weir__thread_id());

    run_on_executor(single.executor, record_thread, &portrait);
    assert_string_equal(portrait.name, "mill-1");
    assert_string_equal(weir_executor_name(single.executor), "mill-1");
    assert_int_equal(portrait.id, properties.id);
    assert_int_equal(portrait.err, 0); /* called on its own thread */
    assert_int_equal(portrait.properties.id, properties.id);
    single_executor_close(&single);
}

TEST(lifecycle, its_thread_has_all_signals_blocked)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    struct single_executor single = single_executor_open(NULL);
    struct thread_record portrait = {.executor = single.executor};

    run_on_executor(single.executor, record_thread, &portrait);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        assert_int_equal(sigismember(&portrait.blocked, signals[i]), 1);
    single_executor_close(&single);
}

TEST(lifecycle, a_pinned_thread_runs_on_its_cpu_only)
{
    int cpu = weir__cpu_nth(weir__cpu_count() - 1);
    struct single_executor single =
        single_executor_open(WEIR_GROUP_OPTIONS(.pin = true, .cpus = &cpu, .cpu_count = 1));
    struct thread_record portrait = {.executor = single.executor};

    run_on_executor(single.executor, record_thread, &portrait);
    assert_int_equal(portrait.properties.cpu, cpu);
    assert_int_equal(CPU_COUNT(&portrait.cpus), 1);
    assert_true(CPU_ISSET(cpu, &portrait.cpus));
    single_executor_close(&single);
}

TEST(lifecycle, a_thread_that_cannot_be_pinned_runs_anywhere_and_logs_it)
{
    int cpu = CPU_SETSIZE - 1;
    struct single_executor single =
        single_executor_open(WEIR_GROUP_OPTIONS(.pin = true, .cpus = &cpu, .cpu_count = 1));
    weir_thread_properties properties;

    log_capture_start();
    assert_int_equal(weir_executor_thread(single.executor, &properties), 0);
    assert_int_equal(properties.cpu, -1);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_true(log_capture_last_contains("weir-1"));
    single_executor_close(&single);
}

static int take_over(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                     void *user_data)
{
    (void)executor;
    (void)reason;
    (void)user_data;
    fn(arg, 0);
    return 0;
}

TEST(lifecycle, a_full_queue_and_its_policy_do_not_hide_the_thread)
{
    struct single_executor single =
        single_executor_open(WEIR_GROUP_OPTIONS(.max_pending = 16, .rejected = take_over));
    weir_thread_properties properties;
    struct gate gate = {0}, more = {0};
    struct call_counter counter = {0};

    gate_hold(&gate, single.executor);
    assert_int_equal(weir_execute(single.executor, gate_task, &more), 0);
    for (int i = 0; i < 15; i++)
        assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
    gate_open(&gate);
    gate_open(&more);
    assert_int_equal(weir_executor_thread(single.executor, &properties), 0);
    assert_int_not_equal(properties.id, weir__thread_id());
    single_executor_close(&single);
}

static void ask_about_another(void *arg)
{
    struct thread_record *portrait = arg;

    portrait->err = weir_executor_thread(portrait->executor, &portrait->properties);
}

TEST(lifecycle, does_not_return_a_thread_without_one_or_where_waiting_is_refused)
{
    struct single_executor single = single_executor_open(NULL);
    struct thread_record portrait = {.executor = single.executor};
    weir_thread_properties properties;
    weir_executor *loop = fake_loop_open();

    run_on_executor(loop, ask_about_another, &portrait);
    assert_int_equal(portrait.err, -EDEADLK);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_thread(NULL, &properties), -EINVAL);
    assert_int_equal(weir_executor_thread(single.executor, NULL), -EINVAL);
    assert_int_equal(weir_executor_thread(weir_executor_immediate(), &properties), -ENOTSUP);
    single_executor_end(&single);
    assert_int_equal(weir_executor_thread(single.executor, &properties), WEIR_EREJECTED);
    single_executor_close(&single);
    fake_loop_close(loop);
}

/* The query is cancelled with the other tasks. */
struct question {
    weir__thread thread;
    weir_executor *executor;
    int err;
};

static void ask(void *arg)
{
    struct question *question = arg;
    weir_thread_properties properties;

    question->err = weir_executor_thread(question->executor, &properties);
}

TEST(lifecycle, does_not_return_its_thread_after_its_timeout)
{
    struct call_counter counter = {0};
    struct gate gate = {0};
    struct single_executor single = single_executor_open_at(0);
    struct question question = {.executor = single.executor};

    log_capture_start();
    gate_hold(&gate, single.executor);
    for (int i = 0; i < 100; i++) /* more than the rest of the batch */
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir__thread_start("asker", ask, &question, &question.thread), 0);
    while (weir_executor_pending(single.executor) <= 100)
        weir__thread_yield();
    assert_int_equal(weir_executor_shutdown(single.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_manual_clock_set(single.clock, weir_seconds(1)), 0);
    gate_open(&gate);
    weir__thread_join(&question.thread);
    assert_int_equal(question.err, WEIR_EREJECTED);
    single_executor_close(&single);
}

/* It never started, so it ends without an error. */
TEST(lifecycle, rejects_tasks_while_no_thread_starts)
{
    struct thread_factory_fixture fixture;
    struct call_counter counter = {0};
    weir_promise *promise;
    struct single_executor single;
    weir_task task;

    log_capture_start();
    thread_factory_open(&fixture);
    fixture.answer = -EPERM;
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    weir_task_init(&task, call_counter_task, &counter);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), -EPERM);
        assert_int_equal(weir_execute_task(single.executor, &task), -EPERM);
    }
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &counter), -EPERM);
    assert_int_equal(weir_schedule(single.executor, 1, call_counter_task, &counter, &promise),
                     -EPERM);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_pending(single.executor), 0);
    assert_true(log_capture_last_contains("weir-1"));
    single_executor_close(&single);
    assert_int_equal(counter.calls, 0);
    assert_int_equal(fixture.started, 0);
}

TEST(lifecycle, accepts_tasks_again_when_a_thread_starts_again)
{
    struct thread_factory_fixture fixture;
    struct call_counter counter = {0};
    struct single_executor single;

    log_capture_start();
    thread_factory_open(&fixture);
    fixture.answer = 1; /* not an error number */
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), -EAGAIN);
    fixture.answer = 0;
    single_executor_run_one(&single);
    single_executor_close(&single);
    thread_factory_close(&fixture);
    assert_int_equal(counter.calls, 0);
}

/* A log function may submit, even while it logs that a submission failed. */
static void submit_message(void *user_data, enum weir_log_level level, const char *subsystem,
                           const char *object, const char *message)
{
    struct single_executor *single = user_data;
    static _Thread_local bool submitting;

    (void)level;
    (void)subsystem;
    (void)object;
    (void)message;
    if (submitting)
        return;
    submitting = true;
    IGNORE_RESULT(weir_execute(single->executor, call_counter_task, NULL));
    submitting = false;
}

TEST(lifecycle, logs_without_holding_a_lock)
{
    struct thread_factory_fixture fixture;
    struct call_counter counter = {0};
    struct single_executor single;

    thread_factory_open(&fixture);
    fixture.answer = -EPERM;
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    weir_log_set(submit_message, &single);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), -EPERM);
    weir_log_set(NULL, NULL);
    assert_int_equal(fixture.asked, 2);
    single_executor_close(&single);
}

/* ---- the locals of its thread ---- */

struct local_value {
    weir_local *local;
    weir_executor *executor;
    weir_promise *termination;
    bool terminated; /* when it was removed */
    struct call_counter removed;
};

static void set_local_value(void *arg)
{
    struct local_value *local_value = arg;

    if (weir_local_set(local_value->local, local_value) < 0)
        abort();
}

/* Submits a task: a thread that removes its locals is already detached from the executor. */
static void remove_local_value(void *value)
{
    struct local_value *local_value = value;

    if (local_value->termination != NULL)
        local_value->terminated = weir_promise_is_done(local_value->termination);
    if (local_value->executor != NULL)
        IGNORE_RESULT(
            weir_execute(local_value->executor, call_counter_task, &local_value->removed));
    else
        call_counter_add(&local_value->removed);
}

TEST(lifecycle, a_suspended_thread_removes_its_locals)
{
    struct single_executor single = single_executor_open(NULL);
    struct local_value local_value = {.executor = single.executor};

    assert_int_equal(weir_local_create(remove_local_value, &local_value.local), 0);
    run_on_executor(single.executor, set_local_value, &local_value);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(call_counter_await(&local_value.removed, 1)); /* by a task on a new thread */
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_STARTED);
    single_executor_close(&single);
    assert_int_equal(local_value.removed.run, 1);
    weir_local_release(local_value.local);
}

TEST(lifecycle, terminates_after_its_thread_has_removed_its_locals)
{
    struct single_executor single = single_executor_open(NULL);
    struct local_value local_value = {.termination = weir_executor_termination(single.executor)};

    assert_int_equal(weir_local_create(remove_local_value, &local_value.local), 0);
    run_on_executor(single.executor, set_local_value, &local_value);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    assert_int_equal(local_value.removed.calls, 1);
    assert_false(local_value.terminated);
    single_executor_close(&single);
    weir_local_release(local_value.local);
}

/* ---- a type whose begin fails ---- */

static struct call_counter kind_ends;

/* Not before the task that started it is queued: a closed queue would reject it. */
static int fail_to_begin(weir_executor *executor)
{
    while (weir_executor_pending(executor) == 0)
        weir__thread_yield();
    return -EIO;
}

static void count_end(weir_executor *executor)
{
    (void)executor;
    call_counter_add(&kind_ends);
}

/* Static: the executor may outlive the test. */
static weir_executor *create_of_kind(const weir__executor_type *type,
                                     const weir_thread_factory *factory)
{
    weir__executor_options options = {
        .name = "odd",
        .clock = weir_clock_monotonic(),
        .rejected = weir_reject,
        .task_cap_ns = WEIR_NEVER,
        .cpu = -1,
        .idle_ns = WEIR_NEVER,
    };
    weir_executor *executor;

    if (factory != NULL)
        options.thread_factory = *factory;
    assert_int_equal(weir__executor_create(type, &options, &executor), 0);
    return executor;
}

static struct call_counter kinds_destroyed;

static void count_destruction(weir_executor *executor)
{
    (void)executor;
    call_counter_add(&kinds_destroyed);
}

/* The thread is not waited for, and releases the last reference. */
TEST(lifecycle, its_thread_may_release_the_last_reference)
{
    static weir__executor_type type;
    struct thread_factory_fixture fixture;
    struct gate gate = {0};
    struct single_executor single = {0};

    memset(&kinds_destroyed, 0, sizeof(kinds_destroyed));
    type = weir__plain_type;
    type.destroy = count_destruction;
    thread_factory_open(&fixture);
    single.executor = create_of_kind(&type, &fixture.factory);
    gate_hold(&gate, single.executor);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, WEIR_NEVER), 0);
    weir_executor_release(single.executor);
    gate_open(&gate);
    thread_factory_close(&fixture);
    assert_int_equal(kinds_destroyed.calls, 1);
}

TEST(lifecycle, ends_with_the_error_of_its_type)
{
    static weir__executor_type type;
    struct call_order letters = {0};
    weir_executor *executor;

    log_capture_start();
    memset(&kind_ends, 0, sizeof(kind_ends));
    type = weir__plain_type;
    type.begin = fail_to_begin;
    type.end = count_end;
    executor = create_of_kind(&type, NULL);
    assert_int_equal(
        weir_executor_add_shutdown_hook(executor, call_order_task, call_order_arg(&letters, 'h')),
        0);
    assert_int_equal(call_order_execute(&letters, executor, 'a'), 0);
    assert_int_equal(weir_executor_await_termination(executor, TEST_TIMEOUT_NS), -EIO);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(call_order_execute(&letters, executor, 'b'), WEIR_EREJECTED);
    assert_int_equal(weir_executor_shutdown(executor, 0, 0), 0);
    assert_string_equal(letters.text, "hA");
    assert_int_equal(kind_ends.calls, 0);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    weir__executor_join(executor);
    weir_executor_release(executor);
}

static uint64_t one_handle(const weir_executor *executor)
{
    (void)executor;
    return 1;
}

TEST(lifecycle, its_type_ends_with_each_of_its_threads)
{
    static weir__executor_type type;
    struct single_executor single = {0};

    memset(&kind_ends, 0, sizeof(kind_ends));
    type = weir__plain_type;
    type.end = count_end;
    single.executor = create_of_kind(&type, NULL);
    single_executor_run_one(&single);
    single_executor_suspend(&single);
    assert_int_equal(kind_ends.calls, 1);
    single_executor_run_one(&single);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    assert_int_equal(kind_ends.calls, 2);
    weir__executor_join(single.executor);
    weir_executor_release(single.executor);
}

/* As far as it needs no channels */
TEST(lifecycle, a_handle_prevents_suspension)
{
    static weir__executor_type type;
    struct single_executor single = {0};

    type = weir__plain_type;
    type.handles = one_handle;
    single.executor = create_of_kind(&type, NULL);
    single_executor_run_one(&single);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_STARTED));
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    weir__executor_join(single.executor);
    weir_executor_release(single.executor);
}

/* An executor that is released without a shutdown: possible only without a thread. */
TEST(lifecycle, cancels_its_tasks_with_the_last_reference)
{
    struct call_order letters = {0};
    weir_executor *manual;

    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_int_equal(
        weir_executor_add_shutdown_hook(manual, call_order_task, call_order_arg(&letters, 'h')), 0);
    assert_int_equal(call_order_execute(&letters, manual, 'a'), 0);
    assert_int_equal(
        weir_execute_after_turn(manual, call_order_task, call_order_arg(&letters, 'b')), 0);
    weir_executor_release(manual);
    assert_string_equal(letters.text, "hAB"); /* hooks always run: B 4 */
}

/* ---- stress ---- */

/* ./dev soak executor runs larger ones. */
TEST(lifecycle, each_task_is_run_cancelled_or_rejected_exactly_once)
{
    log_capture_start();
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct submit_stress stress = {.seed = seed, .tasks = 20000};
        const char *fault = submit_stress_run(&stress);

        if (fault != NULL)
            fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
    }
}
