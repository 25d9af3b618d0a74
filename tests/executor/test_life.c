/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor's life: its thread, its states, suspension, hooks and the end.
 *
 * Where time matters the clock is the test's own, and the executor's sleep tells how far it got:
 * solo_await_sleep.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/local.h>
#include <weir/manual.h>
#include <weir/metric.h>
#include <weir/schedule.h>

#include "executor/executor.h"
#include "support/executor/errand.h"
#include "support/executor/gate.h"
#include "support/executor/letters.h"
#include "support/executor/loop.h"
#include "support/executor/messages.h"
#include "support/executor/solo.h"
#include "support/executor/storm.h"
#include "support/executor/workshop.h"
#include "support/test.h"

#define PATIENCE_NS weir_seconds(10)
#define STEP_NS weir_ms(100) /* how often a thread that shuts down looks for lazy tasks */

static int execute_letter(weir_executor *executor, struct letters *letters, char letter)
{
    return weir_execute(executor, letters_task, letters_arg(letters, letter));
}

static void run_one(struct solo *solo)
{
    struct tally tally = {0};

    assert_int_equal(weir_execute(solo->executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 1));
}

static void occupy(struct solo *solo, struct gate *gate)
{
    assert_int_equal(weir_execute(solo->executor, gate_task, gate), 0);
    assert_true(gate_await_arrivals(gate, 1));
}

static void await_state(struct solo *solo, enum weir_executor_state state)
{
    assert_true(solo_await_state(solo, state));
}

/* A solo on a clock that stands at `now_ns` until the test moves it. */
static struct solo open_with_clock(int64_t now_ns, weir_manual_clock **ret_clock)
{
    assert_int_equal(weir_manual_clock_create(now_ns, ret_clock), 0);
    return solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(*ret_clock)));
}

static void close_with_clock(struct solo *solo, weir_manual_clock *clock)
{
    solo_close(solo);
    weir_manual_clock_release(clock);
}

/* ---- its thread ---- */

TEST(life, begins_without_a_thread_and_starts_one_with_the_first_task)
{
    struct workshop workshop;
    struct solo solo;

    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(workshop.started, 0);
    run_one(&solo);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    for (int i = 0; i < 10; i++)
        run_one(&solo);
    assert_int_equal(workshop.started, 1);
    assert_string_equal(workshop.threads[0].name, weir_executor_name(solo.executor));
    solo_close(&solo);
    workshop_close(&workshop);
}

struct starter {
    weir__thread thread;
    weir_executor *executor;
    _Atomic bool *go;
    struct tally tally;
    int err;
};

static void start_together(void *arg)
{
    struct starter *starter = arg;

    while (!atomic_load(starter->go))
        weir__thread_yield();
    starter->err = weir_execute(starter->executor, tally_task, &starter->tally);
}

TEST(life, starts_one_thread_however_many_submit_the_first_task)
{
    for (int round = 0; round < 50; round++) {
        struct starter starters[4];
        struct workshop workshop;
        _Atomic bool go = false;
        struct solo solo;

        workshop_open(&workshop);
        solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
        for (int i = 0; i < 4; i++) {
            starters[i] = (struct starter){.executor = solo.executor, .go = &go};
            assert_int_equal(
                weir__thread_start(&starters[i].thread, "starter", start_together, &starters[i]),
                0);
        }
        atomic_store(&go, true);
        for (int i = 0; i < 4; i++) {
            weir__thread_join(&starters[i].thread);
            assert_int_equal(starters[i].err, 0);
            assert_true(tally_await(&starters[i].tally, 1));
        }
        assert_int_equal(workshop.started, 1);
        solo_close(&solo);
        workshop_close(&workshop);
    }
}

struct self_portrait {
    char name[16];
    pid_t id;
    cpu_set_t cpus;
    sigset_t blocked;
    weir_executor *executor;
    weir_thread_properties properties;
    int err;
};

static void portray_itself(void *arg)
{
    struct self_portrait *portrait = arg;

    (void)pthread_getname_np(pthread_self(), portrait->name, sizeof(portrait->name));
    portrait->id = weir__thread_id();
    (void)sched_getaffinity(0, sizeof(portrait->cpus), &portrait->cpus);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &portrait->blocked);
    portrait->err = weir_executor_thread(portrait->executor, &portrait->properties);
}

/* D 5 */
TEST(life, telling_its_thread_starts_the_thread_and_matches_it)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.name = "mill"));
    struct self_portrait portrait = {.executor = solo.executor};
    weir_thread_properties properties;

    assert_int_equal(weir_executor_thread(solo.executor, &properties), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    assert_string_equal(properties.name, "mill-1");
    assert_int_equal(properties.cpu, -1);
    assert_int_not_equal(properties.id, weir__thread_id());

    errand_on(solo.executor, portray_itself, &portrait);
    assert_string_equal(portrait.name, "mill-1");
    assert_string_equal(weir_executor_name(solo.executor), "mill-1");
    assert_int_equal(portrait.id, properties.id);
    assert_int_equal(portrait.err, 0); /* asked on its own thread */
    assert_int_equal(portrait.properties.id, properties.id);
    solo_close(&solo);
}

TEST(life, its_thread_has_all_signals_blocked)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    struct solo solo = solo_open(NULL);
    struct self_portrait portrait = {.executor = solo.executor};

    errand_on(solo.executor, portray_itself, &portrait);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        assert_int_equal(sigismember(&portrait.blocked, signals[i]), 1);
    solo_close(&solo);
}

TEST(life, a_pinned_thread_runs_on_its_cpu_only)
{
    int cpu = weir__cpu_nth(weir__cpu_count() - 1);
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.pin = true, .cpus = &cpu, .cpu_count = 1));
    struct self_portrait portrait = {.executor = solo.executor};

    errand_on(solo.executor, portray_itself, &portrait);
    assert_int_equal(portrait.properties.cpu, cpu);
    assert_int_equal(CPU_COUNT(&portrait.cpus), 1);
    assert_true(CPU_ISSET(cpu, &portrait.cpus));
    solo_close(&solo);
}

TEST(life, a_thread_that_cannot_be_pinned_runs_anywhere_and_says_so)
{
    int cpu = CPU_SETSIZE - 1;
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.pin = true, .cpus = &cpu, .cpu_count = 1));
    weir_thread_properties properties;

    messages_catch();
    assert_int_equal(weir_executor_thread(solo.executor, &properties), 0);
    assert_int_equal(properties.cpu, -1);
    assert_int_equal(messages_count(WEIR_LOG_WARN), 1);
    assert_true(messages_last_contains("weir-1"));
    solo_close(&solo);
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

TEST(life, a_full_queue_and_its_policy_do_not_hide_the_thread)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.max_pending = 16, .rejected = take_over));
    weir_thread_properties properties;
    struct gate gate = {0}, more = {0};
    struct tally tally = {0};

    occupy(&solo, &gate);
    assert_int_equal(weir_execute(solo.executor, gate_task, &more), 0);
    for (int i = 0; i < 15; i++)
        assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    gate_open(&gate);
    gate_open(&more);
    assert_int_equal(weir_executor_thread(solo.executor, &properties), 0);
    assert_int_not_equal(properties.id, weir__thread_id());
    solo_close(&solo);
}

static void ask_about_another(void *arg)
{
    struct self_portrait *portrait = arg;

    portrait->err = weir_executor_thread(portrait->executor, &portrait->properties);
}

TEST(life, refuses_to_tell_its_thread_where_it_has_none_and_where_nobody_may_wait)
{
    struct solo solo = solo_open(NULL);
    struct self_portrait portrait = {.executor = solo.executor};
    weir_thread_properties properties;
    weir_executor *loop = loop_open();

    errand_on(loop, ask_about_another, &portrait);
    assert_int_equal(portrait.err, -EDEADLK);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_thread(NULL, &properties), -EINVAL);
    assert_int_equal(weir_executor_thread(solo.executor, NULL), -EINVAL);
    assert_int_equal(weir_executor_thread(weir_executor_immediate(), &properties), -ENOTSUP);
    solo_end(&solo);
    assert_int_equal(weir_executor_thread(solo.executor, &properties), WEIR_EREJECTED);
    solo_close(&solo);
    loop_close(loop);
}

/* The question is cancelled with the other tasks. */
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

TEST(life, does_not_tell_its_thread_when_its_time_is_up)
{
    weir_manual_clock *clock;
    struct tally tally = {0};
    struct gate gate = {0};
    struct solo solo = open_with_clock(0, &clock);
    struct question question = {.executor = solo.executor};

    messages_catch();
    occupy(&solo, &gate);
    for (int i = 0; i < 100; i++) /* more than the rest of the batch */
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir__thread_start(&question.thread, "asker", ask, &question), 0);
    while (weir_executor_pending(solo.executor) <= 100)
        weir__thread_yield();
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_manual_clock_set(clock, weir_seconds(1)), 0);
    gate_open(&gate);
    weir__thread_join(&question.thread);
    assert_int_equal(question.err, WEIR_EREJECTED);
    close_with_clock(&solo, clock);
}

/* D 4; B 4: it never started, so it ends well without. */
TEST(life, refuses_every_task_while_no_thread_can_be_had)
{
    struct workshop workshop;
    struct tally tally = {0};
    weir_promise *promise;
    struct solo solo;
    weir_task task;

    messages_catch();
    workshop_open(&workshop);
    workshop.answer = -EPERM;
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    weir_task_init(&task, tally_task, &tally);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), -EPERM);
        assert_int_equal(weir_execute_task(solo.executor, &task), -EPERM);
    }
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tally), -EPERM);
    assert_int_equal(weir_schedule(solo.executor, 1, &promise, tally_task, &tally), -EPERM);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_pending(solo.executor), 0);
    assert_true(messages_last_contains("weir-1"));
    solo_close(&solo);
    assert_int_equal(tally.calls, 0);
    assert_int_equal(workshop.started, 0);
}

TEST(life, takes_tasks_again_when_a_thread_can_be_had_again)
{
    struct workshop workshop;
    struct tally tally = {0};
    struct solo solo;

    messages_catch();
    workshop_open(&workshop);
    workshop.answer = 1; /* not an error number */
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), -EAGAIN);
    workshop.answer = 0;
    run_one(&solo);
    solo_close(&solo);
    workshop_close(&workshop);
    assert_int_equal(tally.calls, 0);
}

/* A log function may submit, also when it is told that this is not possible. */
static void submit_message(void *user_data, enum weir_log_level level, const char *subsystem,
                           const char *object, const char *message)
{
    struct solo *solo = user_data;
    static _Thread_local bool submitting;

    (void)level;
    (void)subsystem;
    (void)object;
    (void)message;
    if (submitting)
        return;
    submitting = true;
    (void)weir_execute(solo->executor, tally_task, NULL);
    submitting = false;
}

TEST(life, logs_without_holding_a_lock)
{
    struct workshop workshop;
    struct tally tally = {0};
    struct solo solo;

    workshop_open(&workshop);
    workshop.answer = -EPERM;
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    weir_log_set(submit_message, &solo);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), -EPERM);
    weir_log_set(NULL, NULL);
    assert_int_equal(workshop.asked, 2);
    solo_close(&solo);
}

/* ---- suspension ---- */

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
    await_state(&solo, WEIR_EXECUTOR_SUSPENDED);
    assert_true(tally_await(&thread_exits, 1));
    assert_int_equal(workshop.started, 1);

    run_one(&solo);
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
    run_one(&solo);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    assert_int_equal(workshop.started, 1);
    solo_close(&solo);
    workshop_close(&workshop);
}

/* D 3 */
TEST(life, a_timer_keeps_it_from_suspension_until_it_has_run)
{
    struct letters letters = {0};
    weir_manual_clock *clock;
    struct solo solo = open_with_clock(0, &clock);

    assert_int_equal(
        weir_schedule(solo.executor, 10, NULL, letters_task, letters_arg(&letters, 'a')), 0);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    run_one(&solo);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(weir_manual_clock_set(clock, 10), 0);
    await_state(&solo, WEIR_EXECUTOR_SUSPENDED);
    assert_string_equal(letters.text, "a");
    close_with_clock(&solo, clock);
}

/* D 3 */
TEST(life, a_timer_keeps_it_from_suspension_until_it_is_cancelled)
{
    struct letters letters = {0};
    weir_manual_clock *clock;
    struct solo solo = open_with_clock(0, &clock);
    weir_promise *promise;

    assert_int_equal(
        weir_schedule(solo.executor, 10, &promise, letters_task, letters_arg(&letters, 'a')), 0);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    run_one(&solo);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_promise_cancel(promise), 0);
    await_state(&solo, WEIR_EXECUTOR_SUSPENDED);
    assert_string_equal(letters.text, "A");
    weir_promise_release(promise);
    close_with_clock(&solo, clock);
}

TEST(life, runs_what_is_queued_before_it_is_suspended)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    occupy(&solo, &gate);
    assert_int_equal(execute_letter(solo.executor, &letters, 'a'), 0);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(execute_letter(solo.executor, &letters, 'b'), 0);
    assert_int_equal(
        weir_execute_after_turn(solo.executor, letters_task, letters_arg(&letters, 'c')), 0);
    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'd')), 0);
    gate_open(&gate);
    await_state(&solo, WEIR_EXECUTOR_SUSPENDED);
    assert_true(letters_await(&letters, 4));
    assert_string_equal(letters.text, "abdc");
    solo_close(&solo);
}

static int return_nothing(void *arg, int status, void **ret_value)
{
    (void)ret_value;
    tally_task(arg, status);
    return 0;
}

static void suspend(struct solo *solo)
{
    assert_int_equal(weir_executor_suspend(solo->executor), 0);
    await_state(solo, WEIR_EXECUTOR_SUSPENDED);
}

TEST(life, any_submission_ends_a_suspension)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    weir_task task;

    suspend(&solo);
    assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 1));
    suspend(&solo);
    weir_task_init(&task, tally_task, &tally);
    assert_int_equal(weir_execute_task(solo.executor, &task), 0);
    assert_true(tally_await(&tally, 2));
    suspend(&solo);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 3));
    suspend(&solo);
    assert_int_equal(weir_submit(solo.executor, NULL, return_nothing, &tally), 0);
    assert_true(tally_await(&tally, 4));
    suspend(&solo);
    assert_int_equal(weir_schedule(solo.executor, 1, NULL, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 5));
    solo_close(&solo);
}

TEST(life, a_lazy_task_that_ends_a_suspension_runs)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};

    for (uint32_t i = 1; i <= 100; i++) {
        suspend(&solo);
        assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
        assert_true(tally_await(&tally, i));
    }
    solo_close(&solo);
}

struct keepsake {
    weir_local *local;
    weir_executor *executor;
    weir_promise *termination;
    bool terminated; /* when it was removed */
    struct tally removed;
};

static void set_keepsake(void *arg)
{
    struct keepsake *keepsake = arg;

    (void)weir_local_set(keepsake->local, keepsake);
}

/* Leaves a task behind: the thread that removes its locals is none of the executor's any more. */
static void remove_keepsake(void *value)
{
    struct keepsake *keepsake = value;

    if (keepsake->termination != NULL)
        keepsake->terminated = weir_promise_is_done(keepsake->termination);
    if (keepsake->executor != NULL)
        (void)weir_execute(keepsake->executor, tally_task, &keepsake->removed);
    else
        tally_add(&keepsake->removed);
}

TEST(life, a_suspended_thread_removes_its_locals)
{
    struct solo solo = solo_open(NULL);
    struct keepsake keepsake = {.executor = solo.executor};

    assert_int_equal(weir_local_create(remove_keepsake, &keepsake.local), 0);
    errand_on(solo.executor, set_keepsake, &keepsake);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    assert_true(tally_await(&keepsake.removed, 1)); /* by a task, on a new thread */
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    solo_close(&solo);
    assert_int_equal(keepsake.removed.run, 1);
    weir_local_release(keepsake.local);
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
    await_state(&solo, WEIR_EXECUTOR_SUSPENDED);
    run_one(&solo);
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
    await_state(&solo, WEIR_EXECUTOR_SUSPENDED);
    solo_close(&solo);
}

/* ---- shutting down ---- */

TEST(life, refuses_a_shutdown_with_bad_times_and_changes_nothing)
{
    struct solo solo = solo_open(NULL);

    assert_int_equal(weir_executor_shutdown(NULL, 0, 0), -EINVAL);
    assert_int_equal(weir_executor_shutdown(solo.executor, -1, 10), -EINVAL);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, -1), -EINVAL);
    assert_int_equal(weir_executor_shutdown(solo.executor, 11, 10), -EINVAL);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_NOT_STARTED);
    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, 11, 10), -EINVAL);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_STARTED);
    solo_close(&solo);
}

TEST(life, the_immediate_and_the_global_executor_do_not_end)
{
    weir_executor *executors[] = {weir_executor_immediate(), weir_executor_global()};
    struct tally tally = {0};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_executor_shutdown(executors[i], 0, 0), -EPERM);
        assert_int_equal(weir_executor_add_shutdown_hook(executors[i], tally_task, &tally), -EPERM);
        assert_int_equal(weir_executor_await_termination(executors[i], 0), -EPERM);
        assert_int_equal(weir_execute(executors[i], tally_task, &tally), 0);
    }
    assert_true(tally_await(&tally, 2));
}

/* D 11, B 4 */
TEST(life, shut_down_before_its_start_it_ends_at_once_and_starts_no_thread)
{
    struct workshop workshop;
    struct tally tally = {0};
    struct solo solo;

    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_promise_result(weir_executor_termination(solo.executor)), 0);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), WEIR_EREJECTED);
    solo_close(&solo);
    assert_int_equal(workshop.asked, 0);
    assert_int_equal(tally.calls, 0);
}

TEST(life, shut_down_while_suspended_it_ends_at_once_and_starts_no_thread)
{
    struct workshop workshop;
    struct tally tally = {0};
    struct solo solo;

    workshop_open(&workshop);
    solo = solo_open(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory));
    run_one(&solo);
    suspend(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), WEIR_EREJECTED);
    solo_close(&solo);
    workshop_close(&workshop);
    assert_int_equal(workshop.started, 1);
}

/* D 16 */
TEST(life, runs_all_that_is_queued_when_it_is_shut_down)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    struct gate gate = {0};

    occupy(&solo, &gate);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    gate_open(&gate);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(tally.run, 1001);
    assert_int_equal(weir_executor_pending(solo.executor), 0);
    solo_close(&solo);
}

/* D 19 */
TEST(life, the_quiet_period_begins_anew_with_every_task)
{
    const int64_t quiet_ns = 10 * STEP_NS;
    weir_manual_clock *clock;
    struct solo solo = open_with_clock(0, &clock);

    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    for (int64_t at_ns = 9 * STEP_NS; at_ns < 50 * STEP_NS; at_ns += 9 * STEP_NS) {
        assert_int_equal(weir_manual_clock_set(clock, at_ns), 0);
        run_one(&solo);
        assert_true(solo_await_sleep(&solo, at_ns + STEP_NS));
        assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    }
    assert_int_equal(weir_manual_clock_set(clock, 45 * STEP_NS + quiet_ns - 1), 0);
    assert_true(solo_await_sleep(&solo, 45 * STEP_NS + quiet_ns));
    assert_int_equal(weir_manual_clock_advance(clock, 1), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    close_with_clock(&solo, clock);
}

TEST(life, the_quiet_period_begins_with_the_shutdown_at_the_earliest)
{
    const int64_t at_ns = weir_seconds(5), quiet_ns = weir_seconds(1);
    weir_manual_clock *clock;
    struct solo solo = open_with_clock(0, &clock);

    run_one(&solo);
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));
    assert_int_equal(weir_manual_clock_set(clock, at_ns), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(solo_await_sleep(&solo, at_ns + STEP_NS));
    assert_int_equal(weir_manual_clock_set(clock, at_ns + quiet_ns), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    close_with_clock(&solo, clock);
}

TEST(life, without_a_quiet_period_it_ends_as_soon_as_nothing_is_left)
{
    weir_manual_clock *clock;
    struct solo solo = open_with_clock(0, &clock);

    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    close_with_clock(&solo, clock);
}

TEST(life, what_is_cancelled_does_not_prolong_the_quiet_period)
{
    const int64_t quiet_ns = 10 * STEP_NS;
    weir_manual_clock *clock;
    struct tally tally = {0};
    struct solo solo = open_with_clock(0, &clock);

    assert_int_equal(weir_schedule(solo.executor, quiet_ns, NULL, tally_task, &tally), 0);
    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, 10 * quiet_ns), 0);
    assert_true(tally_await(&tally, 1));
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_manual_clock_set(clock, STEP_NS), 0);
    assert_true(solo_await_sleep(&solo, 2 * STEP_NS));
    assert_int_equal(weir_manual_clock_set(clock, quiet_ns), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    close_with_clock(&solo, clock);
    assert_int_equal(tally.cancelled, 1);
}

/* The hard limit comes before the end of the quiet period. */
TEST(life, tasks_do_not_keep_it_alive_beyond_its_time)
{
    const int64_t quiet_ns = 10 * STEP_NS, timeout_ns = 15 * STEP_NS;
    weir_manual_clock *clock;
    struct tally tally = {0};
    struct solo solo = open_with_clock(0, &clock);

    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, quiet_ns, timeout_ns), 0);
    assert_int_equal(weir_manual_clock_set(clock, 9 * STEP_NS), 0);
    run_one(&solo);
    assert_true(solo_await_sleep(&solo, 10 * STEP_NS));
    assert_int_equal(weir_manual_clock_set(clock, timeout_ns - 1), 0);
    assert_true(solo_await_sleep(&solo, timeout_ns));
    assert_int_equal(weir_manual_clock_set(clock, timeout_ns), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), WEIR_EREJECTED);
    close_with_clock(&solo, clock);
    assert_int_equal(tally.calls, 0);
}

TEST(life, looks_for_lazy_tasks_while_it_shuts_down)
{
    weir_manual_clock *clock;
    struct letters letters = {0};
    struct solo solo = open_with_clock(0, &clock);

    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'a')), 0);
    assert_int_equal(weir_manual_clock_set(clock, STEP_NS), 0);
    assert_true(letters_await(&letters, 1));
    assert_string_equal(letters.text, "a");
    assert_int_equal(weir_manual_clock_set(clock, weir_seconds(2)), 0);
    close_with_clock(&solo, clock);
}

TEST(life, the_first_shutdown_counts_and_later_ones_change_nothing)
{
    weir_manual_clock *clock;
    struct solo solo = open_with_clock(0, &clock);

    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, 0), 0);
    run_one(&solo);
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(weir_manual_clock_set(clock, weir_seconds(1)), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, 0), 0);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_TERMINATED);
    close_with_clock(&solo, clock);
}

static void fire_never(weir_timer *timer)
{
    (void)timer;
    abort();
}

struct timers {
    weir_executor *executor;
    weir_timer timer;
    int err;
};

static void start_timer(void *arg)
{
    struct timers *timers = arg;

    timers->err = weir_timer_start(timers->executor, &timers->timer, weir_ms(1), fire_never);
}

TEST(life, cancels_its_timers_when_it_begins_to_shut_down)
{
    weir_manual_clock *clock;
    struct letters letters = {0};
    weir_promise *once, *again;
    struct solo solo = open_with_clock(0, &clock);
    struct timers timers = {.executor = solo.executor};
    uint64_t tasks_run;

    errand_on(solo.executor, start_timer, &timers);
    assert_int_equal(timers.err, 0);
    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(1), &once, letters_task, letters_arg(&letters, 'a')),
        0);
    assert_int_equal(weir_schedule_at_fixed_rate(solo.executor, weir_ms(2), weir_ms(1), &again,
                                                 letters_task, letters_arg(&letters, 'b')),
                     0);
    run_one(&solo); /* they are filed */
    assert_true(solo_await_sleep(&solo, weir_ms(1)));
    tasks_run = solo_stats(&solo).tasks_run;
    assert_int_equal(weir_executor_shutdown(solo.executor, weir_seconds(1), weir_seconds(2)), 0);
    assert_true(letters_await(&letters, 2));
    assert_int_equal(weir_promise_await(once, PATIENCE_NS), 0);
    assert_true(weir_promise_is_cancelled(once));
    assert_true(weir_promise_is_cancelled(again));
    assert_true(solo_await_sleep(&solo, STEP_NS));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(solo_stats(&solo).tasks_cancelled, 2);
    assert_int_equal(solo_stats(&solo).tasks_run, tasks_run);

    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(1), NULL, letters_task, letters_arg(&letters, 'c')),
        0); /* too late, but accepted: it is called */
    assert_true(letters_await(&letters, 3));
    assert_int_equal(weir_manual_clock_set(clock, weir_seconds(2)), 0);
    close_with_clock(&solo, clock);
    assert_true(strcmp(letters.text, "ABC") == 0 || strcmp(letters.text, "BAC") == 0);
    weir_promise_release(once);
    weir_promise_release(again);
}

struct phoenix {
    weir_executor *executor;
    struct tally calls;
};

/* A timer that starts another one, whatever becomes of it. */
static void rise_again(void *arg, int status)
{
    struct phoenix *phoenix = arg;

    tally_task(&phoenix->calls, status);
    (void)weir_schedule(phoenix->executor, weir_seconds(100), NULL, rise_again, phoenix);
}

TEST(life, ends_although_each_cancelled_timer_starts_another)
{
    struct solo solo = solo_open(NULL);
    struct phoenix phoenix = {.executor = solo.executor};

    assert_int_equal(weir_schedule(solo.executor, weir_seconds(100), NULL, rise_again, &phoenix),
                     0);
    solo_close(&solo);
    assert_int_equal(phoenix.calls.run, 0);
    assert_true(phoenix.calls.cancelled > 0);
}

struct treadmill {
    weir_executor *executor;
    int refusal;
    struct tally stopped;
};

static void keep_going(void *arg, int status)
{
    struct treadmill *treadmill = arg;
    int err = weir_execute(treadmill->executor, keep_going, treadmill);

    if (err < 0) {
        treadmill->refusal = err;
        tally_task(&treadmill->stopped, status);
    }
}

/* D 20 */
TEST(life, ends_at_its_hard_limit_although_the_queue_is_never_empty)
{
    const int64_t caps[] = {0, WEIR_OFF};

    messages_catch();
    for (int i = 0; i < 2; i++) {
        struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.task_cap_ns = caps[i]));
        struct treadmill treadmill = {.executor = solo.executor};

        assert_int_equal(weir_execute(solo.executor, keep_going, &treadmill), 0);
        assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_ms(5)), 0);
        assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
        assert_int_equal(weir_execute(solo.executor, keep_going, &treadmill), WEIR_EREJECTED);
        assert_int_equal(treadmill.refusal, WEIR_EREJECTED);
        assert_int_equal(treadmill.stopped.cancelled, 1);
        solo_close(&solo);
    }
}

TEST(life, cancels_what_is_left_at_its_hard_limit_and_says_how_much)
{
    weir_manual_clock *clock;
    struct tally tally = {0}, tail = {0};
    struct gate gate = {0};
    struct solo solo = open_with_clock(0, &clock);
    char expected[64];

    messages_catch();
    occupy(&solo, &gate);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tail), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_seconds(1)), 0);
    assert_int_equal(weir_manual_clock_set(clock, weir_seconds(1)), 0);
    gate_open(&gate);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);

    assert_int_equal(tally.calls, 301);
    assert_int_equal(tally.run + tally.cancelled, 301);
    assert_true(tally.cancelled >= 301 - 64); /* the rest of the batch was run */
    assert_int_equal(tail.run, 1);
    assert_int_equal(messages_count(WEIR_LOG_WARN), 1);
    (void)snprintf(expected, sizeof(expected), "weir-1: %u tasks were cancelled", tally.cancelled);
    assert_true(messages_last_contains(expected));
    assert_int_equal(solo_stats(&solo).tasks_cancelled, tally.cancelled);
    assert_int_equal(solo_stats(&solo).tasks_run, tally.run + 2);
    assert_int_equal(solo_stats(&solo).pending, 0);
    close_with_clock(&solo, clock);
}

/* It must not be waited for while its thread is there; afterwards it may go. */
TEST(life, names_a_thread_that_does_not_come_back_and_fails_its_termination)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.name = "stuck"));
    weir_executor *executor = weir_executor_retain(solo.executor);
    struct gate gate = {0};

    messages_catch();
    occupy(&solo, &gate);
    assert_int_equal(weir_group_shutdown(solo.group, 0, weir_ms(1)), 0);
    assert_int_equal(weir_group_await_termination(solo.group, PATIENCE_NS), -ETIMEDOUT);
    assert_int_equal(weir_promise_result(weir_executor_termination(executor)), -ETIMEDOUT);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_SHUTTING_DOWN);
    assert_int_equal(messages_count(WEIR_LOG_ERROR), 1);
    assert_true(messages_last_contains("stuck-1"));
    weir_group_release(solo.group);

    gate_open(&gate);
    await_state(&solo, WEIR_EXECUTOR_TERMINATED);
    weir__executor_join(executor);
    assert_int_equal(weir_promise_result(weir_executor_termination(executor)), -ETIMEDOUT);
    weir_executor_release(executor);
}

static void shut_itself_down(void *arg)
{
    struct solo *solo = arg;

    (void)weir_executor_shutdown(solo->executor, 0, PATIENCE_NS);
}

TEST(life, may_be_shut_down_by_a_task_of_its_own)
{
    struct solo solo = solo_open(NULL);

    errand_on(solo.executor, shut_itself_down, &solo);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    solo_close(&solo);
}

TEST(life, terminates_after_its_thread_has_removed_its_locals)
{
    struct solo solo = solo_open(NULL);
    struct keepsake keepsake = {.termination = weir_executor_termination(solo.executor)};

    assert_int_equal(weir_local_create(remove_keepsake, &keepsake.local), 0);
    errand_on(solo.executor, set_keepsake, &keepsake);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(keepsake.removed.calls, 1);
    assert_false(keepsake.terminated);
    solo_close(&solo);
    weir_local_release(keepsake.local);
}

struct waiter {
    weir_executor *executor;
    int err;
};

static void await_end(void *arg)
{
    struct waiter *waiter = arg;

    waiter->err = weir_executor_await_termination(waiter->executor, PATIENCE_NS);
}

TEST(life, its_own_thread_and_event_loops_may_not_wait_for_its_end)
{
    struct solo solo = solo_open(NULL);
    struct waiter waiter = {.executor = solo.executor};
    weir_executor *loop = loop_open();

    errand_on(solo.executor, await_end, &waiter);
    assert_int_equal(waiter.err, -EDEADLK);
    waiter.err = 0;
    errand_on(loop, await_end, &waiter);
    assert_int_equal(waiter.err, -EDEADLK);
    assert_int_equal(weir_executor_await_termination(solo.executor, 0), -ETIMEDOUT);
    solo_close(&solo);
    loop_close(loop);
}

TEST(life, a_kept_executor_outlives_its_group_and_refuses_tasks)
{
    struct solo solo = solo_open(NULL);
    weir_executor *executor = weir_executor_retain(solo.executor);
    weir_executor_stats stats;
    struct tally tally = {0};

    run_one(&solo);
    solo_close(&solo);
    assert_int_equal(weir_execute(executor, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_execute_after_turn(executor, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_schedule(executor, 0, NULL, tally_task, &tally), WEIR_EREJECTED);
    assert_int_equal(weir_submit(executor, NULL, return_nothing, &tally), WEIR_EREJECTED);
    weir_executor_read_stats(executor, &stats);
    assert_int_equal(stats.state, WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(stats.tasks_run, 1);
    assert_string_equal(weir_executor_name(executor), "weir-1");
    weir_executor_release(executor);
    weir_executor_release(NULL);
    assert_int_equal(tally.calls, 0);
}

static void see_metric(const weir_metric_value *value, void *user_data)
{
    (void)value;
    ++*(int *)user_data;
}

/* All that would look at the clock of one that lives: every 64th submission does. */
static void use_an_ended(weir_executor *executor)
{
    weir_executor_stats stats;
    struct tally tally = {0};
    int metrics = 0;

    weir_metrics_foreach(see_metric, &metrics);
    weir_executor_read_stats(executor, &stats);
    assert_true(stats.active_ns >= 0);
    assert_true(stats.utilisation == 0);
    assert_int_equal(weir_schedule(executor, 0, NULL, tally_task, &tally), WEIR_EREJECTED);
    for (int i = 0; i < 64; i++)
        assert_int_equal(weir_execute(executor, tally_task, &tally), WEIR_EREJECTED);
}

TEST(life, needs_its_clock_until_its_end_and_no_longer)
{
    weir_manual_clock *clock;
    weir_promise *promise;
    struct solo solo = open_with_clock(0, &clock);

    assert_int_equal(weir_promise_create(solo.executor, &promise), 0); /* keeps the executor */
    run_one(&solo);
    close_with_clock(&solo, clock);
    use_an_ended(weir_promise_executor(promise));
    weir_promise_release(promise);
}

/* ---- hooks ---- */

static int add_hook(struct solo *solo, struct letters *letters, char letter)
{
    return weir_executor_add_shutdown_hook(solo->executor, letters_task,
                                           letters_arg(letters, letter));
}

static int remove_hook(struct solo *solo, struct letters *letters, char letter)
{
    return weir_executor_remove_shutdown_hook(solo->executor, letters_task,
                                              letters_arg(letters, letter));
}

/* B 4: also without a quiet period, and although there were tasks to the last. */
TEST(life, runs_its_hooks_in_the_order_added_after_the_tasks)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    occupy(&solo, &gate);
    for (char letter = 'x'; letter <= 'z'; letter++)
        assert_int_equal(add_hook(&solo, &letters, letter), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(execute_letter(solo.executor, &letters, 'a'), 0);
    assert_int_equal(execute_letter(solo.executor, &letters, 'b'), 0);
    gate_open(&gate);
    solo_close(&solo);
    assert_string_equal(letters.text, "abxyz");
}

TEST(life, removes_the_first_hook_that_was_added_so)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};

    run_one(&solo);
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(add_hook(&solo, &letters, 'b'), 0);
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(remove_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(remove_hook(&solo, &letters, 'c'), -ENOENT);
    assert_int_equal(
        weir_executor_remove_shutdown_hook(solo.executor, tally_task, letters_arg(&letters, 'b')),
        -ENOENT);
    solo_close(&solo);
    assert_string_equal(letters.text, "ba");
}

struct hooked {
    struct solo *solo;
    struct letters letters;
    weir_executor *current;
    bool in_executor;
    int err;
};

/* Adds c, removes b, and leaves a task. */
static void change_hooks(void *arg, int status)
{
    struct hooked *hooked = arg;

    (void)status;
    letters_write(&hooked->letters, 'a');
    hooked->err |= add_hook(hooked->solo, &hooked->letters, 'c');
    hooked->err |= remove_hook(hooked->solo, &hooked->letters, 'b');
    hooked->err |= execute_letter(hooked->solo->executor, &hooked->letters, 't');
}

TEST(life, hooks_may_add_and_remove_hooks_and_leave_tasks)
{
    struct solo solo = solo_open(NULL);
    struct hooked hooked = {.solo = &solo};

    run_one(&solo);
    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, change_hooks, &hooked), 0);
    assert_int_equal(add_hook(&solo, &hooked.letters, 'b'), 0);
    assert_int_equal(add_hook(&solo, &hooked.letters, 'd'), 0);
    solo_close(&solo);
    assert_int_equal(hooked.err, 0);
    assert_string_equal(hooked.letters.text, "adct");
}

static void look_around(void *arg, int status)
{
    struct hooked *hooked = arg;

    hooked->current = weir_executor_current();
    hooked->in_executor = weir_in_executor(hooked->solo->executor);
    hooked->err = execute_letter(hooked->solo->executor, &hooked->letters, 'a');
    letters_write(&hooked->letters, status == 0 ? 'h' : '!');
}

TEST(life, runs_hooks_on_its_thread)
{
    struct solo solo = solo_open(NULL);
    struct hooked hooked = {.solo = &solo};

    run_one(&solo);
    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, look_around, &hooked), 0);
    solo_end(&solo);
    assert_ptr_equal(hooked.current, solo.executor);
    assert_true(hooked.in_executor);
    assert_int_equal(hooked.err, 0);
    assert_string_equal(hooked.letters.text, "ha");
    solo_close(&solo);
}

/* The hooks of an executor without a thread: on the thread that shuts it down, and no tasks. */
static void check_hooks_without_thread(struct solo *solo)
{
    struct hooked hooked = {.solo = solo};

    assert_int_equal(weir_executor_add_shutdown_hook(solo->executor, look_around, &hooked), 0);
    assert_int_equal(weir_executor_shutdown(solo->executor, 0, PATIENCE_NS), 0);
    assert_string_equal(hooked.letters.text, "h");
    assert_ptr_equal(hooked.current, solo->executor);
    assert_int_equal(hooked.err, WEIR_EREJECTED);
    assert_null(weir_executor_current());
    solo_close(solo);
}

TEST(life, runs_hooks_where_it_is_shut_down_if_it_never_started)
{
    struct solo solo = solo_open(NULL);

    check_hooks_without_thread(&solo);
}

static void release_group(void *arg, int status)
{
    (void)status;
    weir_group_release(arg);
}

TEST(life, may_be_released_by_its_own_hook)
{
    struct solo solo = solo_open(NULL);

    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, release_group, solo.group), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
}

TEST(life, runs_hooks_where_it_is_shut_down_if_it_is_suspended)
{
    struct solo solo = solo_open(NULL);

    run_one(&solo);
    suspend(&solo);
    check_hooks_without_thread(&solo);
}

TEST(life, runs_its_hooks_at_its_hard_limit_too)
{
    struct solo solo = solo_open(NULL);
    struct treadmill treadmill = {.executor = solo.executor};
    struct letters letters = {0};

    messages_catch();
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(weir_execute(solo.executor, keep_going, &treadmill), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_ms(5)), 0);
    solo_close(&solo);
    assert_string_equal(letters.text, "a");
}

TEST(life, takes_hooks_until_they_have_run)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    occupy(&solo, &gate);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    gate_open(&gate);
    solo_end(&solo);
    assert_string_equal(letters.text, "a");
    assert_int_equal(add_hook(&solo, &letters, 'b'), WEIR_EREJECTED);
    assert_int_equal(remove_hook(&solo, &letters, 'a'), -ENOENT);
    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, NULL, NULL), -EINVAL);
    solo_close(&solo);
    assert_string_equal(letters.text, "a");
}

/* Adds a hook each time the last one has run, which is when there seem to be no more. */
struct hook_adder {
    weir__thread thread;
    weir_executor *executor;
    struct tally hooks;
    uint32_t accepted;
};

static void add_hooks(void *arg)
{
    struct hook_adder *adder = arg;

    while (adder->accepted < 100 &&
           weir_executor_add_shutdown_hook(adder->executor, tally_task, &adder->hooks) == 0) {
        adder->accepted++;
        while (atomic_load(&adder->hooks.run) < adder->accepted &&
               weir_executor_state(adder->executor) < WEIR_EXECUTOR_TERMINATED)
            continue;
    }
}

TEST(life, a_hook_that_was_added_in_time_runs_once)
{
    for (int round = 0; round < 200; round++) {
        struct solo solo = solo_open(NULL);
        struct hook_adder adder = {.executor = solo.executor};

        if (round % 2 == 0)
            run_one(&solo);
        assert_int_equal(weir__thread_start(&adder.thread, "adder", add_hooks, &adder), 0);
        weir__thread_yield();
        solo_end(&solo);
        weir__thread_join(&adder.thread);
        assert_int_equal(adder.hooks.run, adder.accepted);
        solo_close(&solo);
    }
}

/* ---- a kind that cannot run ---- */

static struct tally kind_ends;

/* Not before the task that started it is in the queue: a closed one would refuse it. */
static int fail_to_begin(weir_executor *executor)
{
    while (weir_executor_pending(executor) == 0)
        weir__thread_yield();
    return -EIO;
}

static void count_end(weir_executor *executor)
{
    (void)executor;
    tally_add(&kind_ends);
}

/* A type is a constant: the executor may outlive the test a little. */
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

static struct tally kinds_destroyed;

static void count_destruction(weir_executor *executor)
{
    (void)executor;
    tally_add(&kinds_destroyed);
}

/* Nobody waits for its thread, which then has the last reference. */
TEST(life, its_thread_frees_it_if_nobody_else_does)
{
    static weir__executor_type type;
    struct workshop workshop;
    struct gate gate = {0};
    struct solo solo = {0};

    memset(&kinds_destroyed, 0, sizeof(kinds_destroyed));
    type = weir__plain_type;
    type.destroy = count_destruction;
    workshop_open(&workshop);
    solo.executor = create_of_kind(&type, &workshop.factory);
    occupy(&solo, &gate);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, WEIR_NEVER), 0);
    weir_executor_release(solo.executor);
    gate_open(&gate);
    workshop_close(&workshop);
    assert_int_equal(kinds_destroyed.calls, 1);
}

/* D 10 */
TEST(life, ends_with_the_error_with_which_its_kind_failed_to_begin)
{
    static weir__executor_type type;
    struct letters letters = {0};
    weir_executor *executor;

    messages_catch();
    memset(&kind_ends, 0, sizeof(kind_ends));
    type = weir__plain_type;
    type.begin = fail_to_begin;
    type.end = count_end;
    executor = create_of_kind(&type, NULL);
    assert_int_equal(
        weir_executor_add_shutdown_hook(executor, letters_task, letters_arg(&letters, 'h')), 0);
    assert_int_equal(execute_letter(executor, &letters, 'a'), 0);
    assert_int_equal(weir_executor_await_termination(executor, PATIENCE_NS), -EIO);
    assert_int_equal(weir_executor_state(executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(execute_letter(executor, &letters, 'b'), WEIR_EREJECTED);
    assert_int_equal(weir_executor_shutdown(executor, 0, 0), 0);
    assert_string_equal(letters.text, "hA");
    assert_int_equal(kind_ends.calls, 0);
    assert_int_equal(messages_count(WEIR_LOG_ERROR), 1);
    weir__executor_join(executor);
    weir_executor_release(executor);
}

static uint64_t one_handle(const weir_executor *executor)
{
    (void)executor;
    return 1;
}

TEST(life, its_kind_ends_with_each_of_its_threads)
{
    static weir__executor_type type;
    struct solo solo = {0};

    memset(&kind_ends, 0, sizeof(kind_ends));
    type = weir__plain_type;
    type.end = count_end;
    solo.executor = create_of_kind(&type, NULL);
    run_one(&solo);
    suspend(&solo);
    assert_int_equal(kind_ends.calls, 1);
    run_one(&solo);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    assert_int_equal(kind_ends.calls, 2);
    weir__executor_join(solo.executor);
    weir_executor_release(solo.executor);
}

/* D 37, as far as it needs no channels */
TEST(life, a_handle_keeps_it_from_suspension)
{
    static weir__executor_type type;
    struct solo solo = {0};

    type = weir__plain_type;
    type.handles = one_handle;
    solo.executor = create_of_kind(&type, NULL);
    run_one(&solo);
    assert_int_equal(weir_executor_suspend(solo.executor), 0);
    run_one(&solo);
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_SUSPENDING);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    weir__executor_join(solo.executor);
    weir_executor_release(solo.executor);
}

/* An executor that nobody shut down: only one without a thread can come to that. */
TEST(life, released_for_good_it_cancels_what_it_was_given)
{
    struct letters letters = {0};
    weir_executor *manual;

    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_int_equal(
        weir_executor_add_shutdown_hook(manual, letters_task, letters_arg(&letters, 'h')), 0);
    assert_int_equal(execute_letter(manual, &letters, 'a'), 0);
    assert_int_equal(weir_execute_after_turn(manual, letters_task, letters_arg(&letters, 'b')), 0);
    weir_executor_release(manual);
    assert_string_equal(letters.text, "hAB"); /* hooks always run: B 4 */
}

/* ---- everything at once ---- */

/* D 8; ./dev soak executor does more of it */
TEST(life, each_task_of_a_storm_is_run_cancelled_or_refused_exactly_once)
{
    messages_catch();
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct storm storm = {.seed = seed, .tasks = 20000};
        const char *fault = storm_rage(&storm);

        if (fault != NULL)
            fail_msg("seed %llu: %s", (unsigned long long)seed, fault);
    }
}
