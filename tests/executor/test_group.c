/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: number of members, choosing, options, threads. Their end is in test_group_end.c.
 */
#include "support/test.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "executor/group.h"
#include "os/clock.h"
#include "support/child.h"
#include "support/executor/call_counter.h"
#include "support/executor/counted_executor.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/plain_group.h"
#include "support/executor/thread_factory.h"
#include "support/memory.h"

/* ---- number of members ---- */

TEST(group, has_as_many_executors_as_asked_for)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 5));

    assert_int_equal(weir_group_count(group), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_non_null(weir_group_at(group, i));
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(weir_group_at(group, i), weir_group_at(group, j));
    }
    assert_null(weir_group_at(group, 5));
    assert_null(weir_group_at(group, SIZE_MAX));
    weir_group_release(group);
}

TEST(group, has_two_executors_per_cpu_by_default)
{
    weir_group *group;

    unsetenv("WEIR_LOOP_THREADS");
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN));
    assert_int_equal(weir_group_count(group), 2 * weir__cpu_count());
    weir_group_release(group);
}

TEST(group, takes_its_default_from_the_environment)
{
    weir_group *group;

    setenv("WEIR_LOOP_THREADS", "3", 1);
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN));
    assert_int_equal(weir_group_count(group), 3);
    weir_group_release(group);

    group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    assert_int_equal(weir_group_count(group), 2);
    weir_group_release(group);
    unsetenv("WEIR_LOOP_THREADS");
}

TEST(group, ignores_an_invalid_environment_variable)
{
    static const char *const wrong[] = {"",   "0",          "-1",   "x",
                                        "3x", "2147483648", "1e99", "99999999999999999999"};

    log_capture_start();
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        weir_group *group;

        setenv("WEIR_LOOP_THREADS", wrong[i], 1);
        group = make_group(WEIR_GROUP_OPTIONS(PLAIN));
        assert_int_equal(weir_group_count(group), 2 * weir__cpu_count());
        assert_int_equal(log_capture_count(WEIR_LOG_WARN), i + 1);
        assert_true(log_capture_last_contains("WEIR_LOOP_THREADS"));
        weir_group_release(group);
    }
    unsetenv("WEIR_LOOP_THREADS");
}

/* ---- errors ---- */

static weir_executor *first_member(void *state, weir_group *group)
{
    (void)state;
    return weir_group_at(group, 0);
}

static int start_nothing(void *user_data, const char *name, weir_thread_fn *fn, void *arg)
{
    (void)user_data;
    (void)name;
    (void)fn;
    (void)arg;
    return -EAGAIN;
}

TEST(group, refuses_bad_options)
{
    static const weir_chooser without_next = {.name = "broken"};
    static const weir_chooser first = {.name = "first", .next = first_member};
    static const weir_thread_factory without_start = {.start = NULL};
    const weir_group_options *wrong[] = {
        WEIR_GROUP_OPTIONS(PLAIN, .threads = -1),
        WEIR_GROUP_OPTIONS(PLAIN, .threads = INT32_MIN),
        WEIR_GROUP_OPTIONS(PLAIN, .max_pending = -1),
        WEIR_GROUP_OPTIONS(PLAIN, .task_cap_ns = -2),
        WEIR_GROUP_OPTIONS(PLAIN, .pin = true, .cpus = (const int[]){0}, .cpu_count = 0),
        WEIR_GROUP_OPTIONS(PLAIN, .pin = true, .cpus = (const int[]){0, -1}, .cpu_count = 2),
        WEIR_GROUP_OPTIONS(PLAIN, .thread_factory = &without_start),
        WEIR_GROUP_OPTIONS(PLAIN, .chooser = &without_next),
        WEIR_GROUP_OPTIONS(PLAIN, .chooser = &first, .autoscale = WEIR_AUTOSCALE_OPTIONS()),
        &(const weir_group_options){.size = 0, PLAIN},
    };

    log_capture_start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        weir_group *group = NULL;

        assert_int_equal(plain_group_create(wrong[i], &group), -EINVAL);
        assert_null(group);
    }
    assert_int_equal(test_memory_live(), 0);
}

TEST(group, options_made_step_by_step_are_the_defaults)
{
    weir_group_options options;
    weir_group *group;

    memset(&options, 0xff, sizeof(options));
    options = *WEIR_GROUP_OPTIONS();
    options.io = WEIR_IO_NONE;
    options.threads = 1;
    group = make_group(&options);
    assert_string_equal(weir_executor_name(weir_group_at(group, 0)), "weir-1");
    weir_group_release(group);
}

TEST(group, is_not_created_without_memory)
{
    weir_group *group = NULL;
    unsigned failures = 0;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = plain_group_create(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3), &group);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_null(group);
        assert_int_equal(test_memory_live(), 0);
        failures++;
    }
    assert_int_equal(err, 0);
    assert_true(failures >= 4); /* the group, its promise, its members, its chooser */
    weir_group_release(group);
}

TEST(group, ends_its_members_when_another_cannot_be_created)
{
    struct call_counter *destroyed = counted_executor_open();
    uint32_t ended_before = 0, most = 0;
    weir_group *group = NULL;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir__group_create(&counted_executor_type, NULL,
                                 WEIR_GROUP_OPTIONS(PLAIN, .threads = 4), &group);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        if (atomic_load(&destroyed->calls) - ended_before > most)
            most = atomic_load(&destroyed->calls) - ended_before;
        ended_before = atomic_load(&destroyed->calls);
        assert_int_equal(test_memory_live(), 0);
    }
    assert_int_equal(err, 0);
    assert_int_equal(most, 4); /* the chooser sees all four */
    weir_group_release(group);
}

/* ---- choosing ---- */

struct own_chooser {
    weir_group *group;
    const void *options;
    int inits;
    int nexts;
    int deinits;
    struct call_counter tasks;
    int init_err;
};

static struct own_chooser own;

static int own_init(void *state, weir_group *group, const void *options)
{
    uint64_t *turn = state;

    own.inits++;
    own.group = group;
    own.options = options;
    assert_int_equal(turn[0] + turn[1], 0);
    assert_int_equal(weir_group_count(group), 3);
    for (size_t i = 0; own.init_err < 0 && i < 3; i++)
        assert_int_equal(weir_execute(weir_group_at(group, i), call_counter_task, &own.tasks), 0);
    turn[1] = 7;
    return own.init_err;
}

static weir_executor *own_next(void *state, weir_group *group)
{
    uint64_t *turn = state;

    own.nexts++;
    assert_ptr_equal(group, own.group);
    assert_int_equal(turn[1], 7);
    return weir_group_at(group, 2 - turn[0]++ % 3); /* backwards */
}

static void own_deinit(void *state)
{
    own.deinits++;
    assert_int_equal(((uint64_t *)state)[1], 7);
}

static const weir_chooser own_chooser = {
    .name = "own",
    .state_size = 2 * sizeof(uint64_t),
    .init = own_init,
    .next = own_next,
    .deinit = own_deinit,
};

TEST(group, calls_a_custom_chooser)
{
    static const char options[] = "options";
    weir_group *group;

    own = (struct own_chooser){0};
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3, .chooser = &own_chooser,
                                          .chooser_options = options));
    assert_int_equal(own.inits, 1);
    assert_ptr_equal(own.options, options);
    for (size_t i = 0; i < 6; i++)
        assert_ptr_equal(weir_group_next(group), weir_group_at(group, 2 - i % 3));
    assert_int_equal(own.nexts, 6);
    assert_int_equal(own.deinits, 0);

    weir_group_retain(group);
    weir_group_release(group);
    assert_int_equal(own.deinits, 0);
    weir_group_release(group);
    assert_int_equal(own.deinits, 1);
}

TEST(group, ends_its_members_when_the_chooser_fails)
{
    struct call_counter *destroyed = counted_executor_open();
    weir_group *group = NULL;

    own = (struct own_chooser){.init_err = -EIO};
    assert_int_equal(weir__group_create(
                         &counted_executor_type, NULL,
                         WEIR_GROUP_OPTIONS(PLAIN, .threads = 3, .chooser = &own_chooser), &group),
                     -EIO);
    assert_null(group);
    assert_int_equal(own.deinits, 0);
    /* They were started, and joined. */
    assert_int_equal(atomic_load(&own.tasks.run), 3);
    assert_true(call_counter_await(destroyed, 3));
}

TEST(group, accepts_a_chooser_without_state)
{
    static const weir_chooser first = {.name = "first", .next = first_member};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .chooser = &first));

    assert_null(weir__group_chooser_state(group));
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(weir_group_next(group), weir_group_at(group, 0));
    weir_group_release(group);
}

/* ---- calls on the next member ---- */

struct visit {
    struct call_counter counter;
    _Atomic(weir_executor *) where;
};

static void on_visit(void *arg, int status)
{
    struct visit *visit = arg;

    if (status == 0)
        atomic_store(&visit->where, weir_executor_current());
    call_counter_task(&visit->counter, status);
}

static int work_visit(void *arg, int status, void **ret_value)
{
    on_visit(arg, status);
    *ret_value = arg;
    return 0;
}

TEST(group, runs_scheduled_and_submitted_work_on_the_next_member)
{
    struct visit visits[5] = {0};
    weir_promise *submitted, *periodic[2];
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 5));

    assert_int_equal(weir_group_execute(group, on_visit, &visits[0]), 0);
    assert_int_equal(weir_group_submit(group, work_visit, &visits[1], &submitted), 0);
    assert_int_equal(weir_group_schedule(group, 1, on_visit, &visits[2], NULL), 0);
    assert_int_equal(
        weir_group_schedule_at_fixed_rate(group, 0, weir_ms(1), on_visit, &visits[3], &periodic[0]),
        0);
    assert_int_equal(weir_group_schedule_with_fixed_delay(group, 0, weir_ms(1), on_visit,
                                                          &visits[4], &periodic[1]),
                     0);
    assert_int_equal(weir_promise_sync(submitted, TEST_TIMEOUT_NS), 0);
    assert_ptr_equal(weir_promise_value(submitted), &visits[1]);
    for (size_t i = 0; i < 5; i++) {
        assert_true(call_counter_await(&visits[i].counter, i < 3 ? 1 : 3));
        assert_ptr_equal(atomic_load(&visits[i].where), weir_group_at(group, i));
    }
    assert_int_equal(weir_promise_cancel(periodic[0]), 0);
    weir_promise_release(submitted);
    weir_promise_release(periodic[0]);
    end_group(group);
    assert_int_equal(weir_promise_result(periodic[1]), WEIR_ECANCELED);
    weir_promise_release(periodic[1]);
}

TEST(group, returns_the_errors_of_its_member)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_promise *promise = NULL;
    struct call_counter counter = {0};

    assert_int_equal(weir_group_execute(group, NULL, NULL), -EINVAL);
    assert_int_equal(weir_group_submit(group, NULL, NULL, &promise), -EINVAL);
    assert_int_equal(weir_group_schedule(group, 0, NULL, NULL, &promise), -EINVAL);
    assert_int_equal(
        weir_group_schedule_at_fixed_rate(group, 0, 0, call_counter_task, &counter, &promise),
        -EINVAL);
    assert_int_equal(
        weir_group_schedule_at_fixed_rate(group, -1, 1, call_counter_task, &counter, &promise),
        -EINVAL);
    assert_int_equal(
        weir_group_schedule_with_fixed_delay(group, 0, -1, call_counter_task, &counter, &promise),
        -EINVAL);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_NOT_STARTED);

    assert_int_equal(weir_group_shutdown(group, 0, 0), 0);
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), WEIR_EREJECTED);
    assert_int_equal(weir_group_submit(group, work_visit, NULL, &promise), WEIR_EREJECTED);
    assert_int_equal(weir_group_schedule(group, 0, call_counter_task, &counter, &promise),
                     WEIR_EREJECTED);
    assert_null(promise);
    assert_int_equal(atomic_load(&counter.calls), 0);
    weir_group_release(group);
}

/* ---- options of members ---- */

static int count_rejection(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                           void *user_data)
{
    (void)executor;
    (void)fn;
    (void)arg;
    call_counter_add(user_data);
    return reason;
}

TEST(group, passes_its_bound_and_rejection_policy_to_each_member)
{
    struct call_counter ran = {0}, rejected = {0};
    struct gate gate = {0};
    weir_group *group =
        make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .max_pending = 20,
                                      .rejected = count_rejection, .rejected_data = &rejected));

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(weir_execute(weir_group_at(group, i), gate_task, &gate), 0);
    assert_true(gate_await_arrivals(&gate, 2));
    for (size_t i = 0; i < 2; i++) {
        for (int j = 0; j < 20; j++)
            assert_int_equal(weir_execute(weir_group_at(group, i), call_counter_task, &ran), 0);
        assert_int_equal(weir_execute(weir_group_at(group, i), call_counter_task, &ran),
                         WEIR_EFULL);
        assert_int_equal(atomic_load(&rejected.calls), i + 1);
    }
    gate_open(&gate);
    end_group(group);
    assert_int_equal(atomic_load(&ran.run), 40);
}

TEST(group, passes_its_clock_to_each_member)
{
    struct call_counter counter = {0};
    weir_manual_clock *clock;
    weir_group *group;

    assert_int_equal(weir_manual_clock_create(0, &clock), 0);
    group = make_group(
        WEIR_GROUP_OPTIONS(PLAIN, .threads = 3, .clock = weir_manual_clock_clock(clock)));
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            weir_group_schedule(group, weir_seconds(3600), call_counter_task, &counter, NULL), 0);
    assert_int_equal(weir_manual_clock_advance(clock, weir_seconds(3600) - 1), 0);
    assert_int_equal(atomic_load(&counter.calls), 0);
    assert_int_equal(weir_manual_clock_advance(clock, 1), 0);
    assert_true(call_counter_await(&counter, 3));
    assert_int_equal(atomic_load(&counter.run), 3);
    end_group(group);
    weir_manual_clock_release(clock);
}

TEST(group, names_its_threads)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .name = "http"));
    weir_thread_properties thread;

    assert_string_equal(weir_executor_name(weir_group_at(group, 0)), "http-1");
    assert_string_equal(weir_executor_name(weir_group_at(group, 1)), "http-2");
    assert_int_equal(weir_executor_thread(weir_group_at(group, 1), &thread), 0);
    assert_string_equal(thread.name, "http-2");
    assert_int_equal(thread.cpu, -1);
    weir_group_release(group);
}

TEST(group, keeps_the_number_of_a_thread_with_a_long_name)
{
    weir_group *group =
        make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 12, .name = "a-name-without-end"));

    assert_string_equal(weir_executor_name(weir_group_at(group, 11)), "a-name-wit-12");
    weir_group_release(group);
}

static void on_affinity(void *arg, int status)
{
    cpu_set_t *set = arg;

    if (status == 0)
        (void)sched_getaffinity(0, sizeof(*set), set);
}

static void assert_pinned(weir_executor *member, int cpu)
{
    weir_thread_properties thread;
    cpu_set_t set;

    CPU_ZERO(&set);
    assert_int_equal(weir_execute(member, on_affinity, &set), 0);
    assert_int_equal(weir_executor_thread(member, &thread), 0); /* comes after it */
    assert_int_equal(thread.cpu, cpu);
    assert_int_equal(CPU_COUNT(&set), 1);
    assert_true(CPU_ISSET(cpu, &set));
}

TEST(group, pins_thread_i_to_cpu_i)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3, .pin = true));

    for (unsigned i = 0; i < 3; i++)
        assert_pinned(weir_group_at(group, i), weir__cpu_nth(i));
    end_group(group);
}

TEST(group, pins_its_threads_to_the_cpus_it_was_given)
{
    const int last = weir__cpu_nth(weir__cpu_count() - 1), first = weir__cpu_nth(0);
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(
        PLAIN, .threads = 3, .pin = true, .cpus = (const int[]){last, first}, .cpu_count = 2));

    assert_pinned(weir_group_at(group, 0), last);
    assert_pinned(weir_group_at(group, 1), first);
    assert_pinned(weir_group_at(group, 2), last);
    end_group(group);
}

TEST(group, a_thread_that_cannot_be_pinned_runs_anyway)
{
    weir_thread_properties thread;
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(
        PLAIN, .threads = 1, .pin = true, .cpus = (const int[]){CPU_SETSIZE}, .cpu_count = 1));

    log_capture_start();
    assert_int_equal(weir_executor_thread(weir_group_at(group, 0), &thread), 0);
    assert_int_equal(thread.cpu, -1);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_true(log_capture_last_contains("weir-1: cannot pin its thread to CPU 1024"));
    end_group(group);
}

/* ---- threads ---- */

TEST(group, takes_its_threads_from_a_factory)
{
    struct thread_factory_fixture fixture;
    weir_thread_properties thread;
    weir_group *group;

    thread_factory_open(&fixture);
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .thread_factory = &fixture.factory));
    assert_int_equal(atomic_load(&fixture.asked), 0);
    assert_int_equal(weir_executor_thread(weir_group_at(group, 1), &thread), 0);
    assert_int_equal(weir_executor_thread(weir_group_at(group, 1), &thread), 0);
    assert_int_equal(atomic_load(&fixture.started), 1);
    assert_string_equal(fixture.threads[0].name, "weir-2");
    assert_int_equal(weir_executor_thread(weir_group_at(group, 0), &thread), 0);
    assert_int_equal(atomic_load(&fixture.started), 2);
    assert_string_equal(fixture.threads[1].name, "weir-1");
    end_group(group);
    thread_factory_close(&fixture);
}

TEST(group, reports_that_no_thread_starts_and_recovers)
{
    struct call_counter counter = {0};
    struct thread_factory_fixture fixture;
    weir_group *group;

    log_capture_start();
    thread_factory_open(&fixture);
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .thread_factory = &fixture.factory));
    atomic_store(&fixture.answer, -EPERM);
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), -EPERM);
    atomic_store(&fixture.answer, EBUSY); /* it should have been negative */
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), -EAGAIN);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 2);
    assert_int_equal(atomic_load(&fixture.asked), 2);

    atomic_store(&fixture.answer, 0);
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    end_group(group);
    thread_factory_close(&fixture);
    assert_int_equal(atomic_load(&counter.calls), 1);
}

TEST(group, whose_factory_always_fails_still_ends)
{
    static const weir_thread_factory dead = {.start = start_nothing};
    struct call_counter counter = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .thread_factory = &dead));

    log_capture_start();
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), -EAGAIN);
    end_group(group);
    assert_int_equal(atomic_load(&counter.calls), 0);
}

TEST(group, starts_only_the_threads_that_have_work)
{
    struct call_counter counter = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));

    assert_int_equal(weir_execute(weir_group_at(group, 1), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    assert_int_equal(weir_executor_state(weir_group_at(group, 0)), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_state(weir_group_at(group, 1)), WEIR_EXECUTOR_STARTED);
    assert_int_equal(weir_executor_state(weir_group_at(group, 2)), WEIR_EXECUTOR_NOT_STARTED);
    end_group(group);
}

/* ---- a type whose creation fails ---- */

static int creations;

static int refuse_the_third(weir_executor *executor)
{
    (void)executor;
    return ++creations == 3 ? -EPERM : 0;
}

/* The group fails with the error of the type: io_uring may be unavailable. */
TEST(group, fails_with_the_error_of_its_type)
{
    struct call_counter *destroyed = counted_executor_open();
    weir_group *group = NULL;

    creations = 0;
    counted_executor_type.create = refuse_the_third;
    assert_int_equal(weir__group_create(&counted_executor_type, NULL,
                                        WEIR_GROUP_OPTIONS(PLAIN, .threads = 4), &group),
                     -EPERM);
    assert_null(group);
    assert_int_equal(creations, 3);
    assert_int_equal(atomic_load(&destroyed->calls), 2); /* not the refused one */
}

#ifndef NDEBUG
static void release_a_group_twice(void)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));

    weir_group_release(group);
    weir_group_release(group);
}

static void release_a_running_group_twice(void)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct gate gate = {{0}, {0}};

    gate_hold(&gate, weir_group_at(group, 0));
    weir_group_release(group);
    weir_group_release(group);
}

static void release_an_executor_twice(void)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_executor *executor = weir_executor_retain(weir_group_at(group, 0));

    for (int i = 0; i < 3; i++)
        weir_executor_release(executor);
}

TEST(group, released_once_too_often_fails_an_assertion)
{
    assert_true(child_dies_with_output(release_a_group_twice, "weir_group_release: the group"));
    assert_true(
        child_dies_with_output(release_a_running_group_twice, "weir_group_release: the group"));
    assert_true(
        child_dies_with_output(release_an_executor_twice, "weir_executor_release: the executor"));
}
#endif
