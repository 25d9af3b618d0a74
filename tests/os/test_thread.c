/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, mutexes, CPUs and exit hooks.
 */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/local.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "support/memory.h"

struct properties {
    char name[16];
    sigset_t blocked;
    pid_t id;
};

static void look_around(void *arg)
{
    struct properties *properties = arg;

    pthread_getname_np(pthread_self(), properties->name, sizeof(properties->name));
    pthread_sigmask(SIG_SETMASK, NULL, &properties->blocked);
    properties->id = weir__thread_id();
}

TEST(thread, runs_its_function_under_its_name)
{
    struct properties properties = {0};
    weir__thread thread;

    assert_int_equal(weir__thread_start("weir-1", look_around, &properties, &thread), 0);
    weir__thread_join(&thread);
    assert_string_equal(properties.name, "weir-1");
    assert_int_not_equal(properties.id, weir__thread_id());
    assert_int_equal(weir__thread_id(), getpid()); /* the id of the main thread */
}

static void store_name(void *arg)
{
    weir__thread_name(arg, 32);
}

TEST(thread, knows_its_name)
{
    char name[32] = "", start[4];
    weir__thread thread;

    assert_int_equal(weir__thread_start("weir-1", store_name, name, &thread), 0);
    weir__thread_join(&thread);
    assert_string_equal(name, "weir-1");
    weir__thread_name(start, sizeof(start));
    assert_int_equal(strlen(start), 3); /* truncated: the main thread has the name of the program */
}

/* Its id is in the first word; waits until the second is set. */
static void wait_for_word(void *arg)
{
    _Atomic uint32_t *words = arg;

    atomic_store(&words[0], (uint32_t)weir__thread_id());
    weir__futex_wake(&words[0], 1);
    while (atomic_load(&words[1]) == 0)
        weir__futex_wait(&words[1], 0, WEIR_NEVER);
}

TEST(thread, is_runnable_unless_it_waits)
{
    _Atomic uint32_t words[2] = {0};
    weir__thread thread;

    assert_true(weir__thread_is_runnable(weir__thread_id()));
    assert_int_equal(weir__thread_start("a) R (b", wait_for_word, words, &thread), 0);
    while (atomic_load(&words[0]) == 0)
        weir__futex_wait(&words[0], 0, WEIR_NEVER);
    while (weir__thread_is_runnable((pid_t)atomic_load(&words[0])))
        weir__thread_yield();
    atomic_store(&words[1], 1);
    weir__futex_wake(&words[1], 1);
    weir__thread_join(&thread);
    assert_false(weir__thread_is_runnable(0));
    assert_int_equal(weir__thread_run_delay(0), 0);
}

TEST(thread, has_a_clock_of_its_cpu_time)
{
    clockid_t clock = weir__thread_cpu_clock();
    int64_t before_ns = weir__thread_cpu_time(clock);

    while (weir__thread_cpu_time(clock) == before_ns)
        ;
    assert_true(weir__thread_cpu_time(clock) > before_ns);
    assert_true(before_ns > 0);
}

TEST(thread, a_long_name_is_cut)
{
    struct properties properties = {0};
    weir__thread thread;

    assert_int_equal(weir__thread_start("0123456789abcdefghij", look_around, &properties, &thread),
                     0);
    weir__thread_join(&thread);
    assert_string_equal(properties.name, "0123456789abcde");
}

TEST(thread, starts_with_all_signals_blocked_and_leaves_the_makers_mask)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGPROF};
    struct properties properties = {0};
    weir__thread thread;
    sigset_t mine;

    assert_int_equal(weir__thread_start("masked", look_around, &properties, &thread), 0);
    weir__thread_join(&thread);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        assert_int_equal(sigismember(&properties.blocked, signals[i]), 1);
        assert_int_equal(sigismember(&mine, signals[i]), 0);
    }
}

TEST(thread, without_memory_the_function_never_runs)
{
    struct properties properties = {0};
    weir__thread thread;

    test_memory_fail_at(1);
    assert_int_equal(weir__thread_start("none", look_around, &properties, &thread), -ENOMEM);
    assert_int_equal(properties.id, 0);
}

static void set_flag(void *arg)
{
    atomic_store((_Atomic bool *)arg, true);
}

TEST(thread, a_detached_one_needs_no_join)
{
    static _Atomic bool done;
    weir__thread thread;

    assert_int_equal(weir__thread_start("detached", set_flag, &done, &thread), 0);
    weir__thread_detach(&thread);
    while (!atomic_load(&done))
        weir__thread_yield();
}

static void look_at_timer_slack(void *arg)
{
    *(int *)arg = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}

TEST(thread, sleeps_hardly_longer_than_it_asks_for)
{
    weir__thread thread;
    int slack_ns = -1;

    assert_int_equal(weir__thread_start("slack", look_at_timer_slack, &slack_ns, &thread), 0);
    weir__thread_join(&thread);
    assert_in_range(slack_ns, 1, weir_us(1));
}

TEST(thread, sleep_is_not_too_short)
{
    int64_t before = weir__monotonic_now();

    weir__thread_sleep(weir_us(300));
    assert_true(weir__monotonic_now() - before >= weir_us(300));
    weir__thread_sleep(0);
    weir__thread_sleep(-1);
    weir__thread_sleep(INT64_MIN);
}

struct pinned {
    int cpu, err, err_for_none, ran_on;
};

static void pin(void *arg)
{
    struct pinned *pinned = arg;

    pinned->err_for_none = weir__thread_set_affinity(-1);
    pinned->err = weir__thread_set_affinity(pinned->cpu);
    pinned->ran_on = sched_getcpu();
}

TEST(thread, can_be_pinned_to_each_cpu_it_may_use)
{
    for (unsigned i = 0; i < weir__cpu_count(); i++) {
        struct pinned pinned = {.cpu = weir__cpu_nth(i)};
        weir__thread thread;

        assert_int_equal(weir__thread_start("pinned", pin, &pinned, &thread), 0);
        weir__thread_join(&thread);
        assert_int_equal(pinned.err, 0);
        assert_int_equal(pinned.ran_on, pinned.cpu);
        assert_int_equal(pinned.err_for_none, -EINVAL);
    }
    assert_int_equal(weir__thread_set_affinity(CPU_SETSIZE), -EINVAL);
}

/* Changed from outside: taskset, a container. */
static void count_confined(void *arg)
{
    unsigned *count = arg;
    int second = weir__cpu_nth(1);
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(second, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
    count[0] = weir__cpu_count();
    count[1] = (unsigned)(weir__cpu_nth(0) == second && weir__cpu_nth(5) == second);
}

TEST(thread, cpu_nth_wraps_around_the_usable_cpus)
{
    unsigned count = weir__cpu_count(), confined[2];
    weir__thread thread;

    assert_true(count >= 1);
    assert_int_equal(weir__cpu_nth(0), weir__cpu_nth(count));
    if (count > 1)
        assert_true(weir__cpu_nth(0) < weir__cpu_nth(1));

    assert_int_equal(weir__thread_start("confined", count_confined, confined, &thread), 0);
    weir__thread_join(&thread);
    assert_int_equal(confined[0], 1);
    assert_int_equal(confined[1], 1);
}

static struct {
    weir__mutex lock;
    int count; /* plain: the mutex orders it */
} guarded;

static void count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++) {
        weir__mutex_lock(&guarded.lock);
        guarded.count++;
        weir__mutex_unlock(&guarded.lock);
    }
}

static void count_cpus(void *arg)
{
    cpu_set_t set;

    *(int *)arg = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
}

static void start_while_pinned(void *arg)
{
    weir__thread inner;

    if (weir__thread_set_affinity(weir__cpu_nth(0)) < 0 ||
        weir__thread_start("inner", count_cpus, arg, &inner) < 0)
        return;
    weir__thread_join(&inner);
}

TEST(thread, started_by_a_pinned_thread_is_not_pinned)
{
    weir__thread outer;
    int cpus = 0;

    assert_int_equal(weir__thread_start("outer", start_while_pinned, &cpus, &outer), 0);
    weir__thread_join(&outer);
    assert_int_equal(cpus, weir__cpu_count());
}

TEST(thread, a_mutex_admits_one_thread)
{
    weir__thread threads[3];

    weir__mutex_init(&guarded.lock);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("count", count_up, NULL, &threads[i]), 0);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(guarded.count, 30000);
    weir__mutex_deinit(&guarded.lock);
}

static weir__once once = WEIR__ONCE_INIT;
static int times;

static void count_times(void)
{
    times++;
}

static void run_once(void *arg)
{
    weir__once_run(&once, count_times);
    *(int *)arg = times;
}

TEST(thread, once_runs_once_and_all_see_it)
{
    weir__thread threads[3];
    int seen[3] = {0};

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("once", run_once, &seen[i], &threads[i]), 0);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen[i], 1);
}

/* The hooks that ran at the end of a thread, as letters in order. */
struct trail {
    char text[32];
    size_t length;
    weir_local *local;
};

struct step {
    struct trail *trail;
    char letter;
};

static void leave_letter(void *arg)
{
    struct step *step = arg;

    step->trail->text[step->trail->length++] = step->letter;
}

TEST(thread, exit_hooks_run_the_last_added_first)
{
    struct trail trail = {.length = 0};
    struct step steps[] = {{&trail, 'a'}, {&trail, 'b'}, {&trail, 'c'}};

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_thread_on_exit(leave_letter, &steps[i]), 0);
    assert_string_equal(trail.text, "");
    weir_locals_remove_all();
    assert_string_equal(trail.text, "cba");
    weir_locals_remove_all();
    assert_string_equal(trail.text, "cba");
}

static void *add_a_hook(void *arg)
{
    return weir_thread_on_exit(leave_letter, arg) == 0 ? arg : NULL;
}

TEST(thread, exit_hooks_run_on_a_thread_that_weir_did_not_make)
{
    struct trail trail = {.length = 0};
    struct step step = {&trail, 'a'};
    pthread_t thread;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, add_a_hook, &step), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &step);
    assert_string_equal(trail.text, "a");
}

static void leave_letter_and_add_a_hook(void *arg)
{
    static struct step added;
    struct step *step = arg;

    leave_letter(step);
    added = (struct step){step->trail, 'z'};
    if (weir_thread_on_exit(leave_letter, &added) < 0)
        abort();
}

TEST(thread, an_exit_hook_added_by_one_runs_too)
{
    struct trail trail = {.length = 0};
    struct step steps[] = {{&trail, 'a'}, {&trail, 'b'}};

    assert_int_equal(weir_thread_on_exit(leave_letter, &steps[0]), 0);
    assert_int_equal(weir_thread_on_exit(leave_letter_and_add_a_hook, &steps[1]), 0);
    weir_locals_remove_all();
    assert_string_equal(trail.text, "baz");
}

TEST(thread, an_exit_hook_that_cannot_be_added_is_never_called)
{
    struct trail trail = {.length = 0};
    struct step step = {&trail, 'a'};
    unsigned n = 1;

    assert_int_equal(weir_thread_on_exit(NULL, &step), -EINVAL);
    for (;; n++) {
        test_memory_fail_at(n);
        if (weir_thread_on_exit(leave_letter, &step) == 0)
            break;
        assert_true(test_memory_failed());
        weir_locals_remove_all();
        assert_string_equal(trail.text, "");
    }
    assert_int_equal(n, 3); /* the hook, the slots */
    weir_locals_remove_all();
    assert_string_equal(trail.text, "a");
}
