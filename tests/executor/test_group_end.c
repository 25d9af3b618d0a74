/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a group, and its references.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/thread.h>

#include "executor/group.h"
#include "os/clock.h"
#include "support/executor/call_counter.h"
#include "support/executor/counted_executor.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/thread_factory.h"

TEST(group, terminates_after_its_last_member)
{
    struct call_counter started = {0};
    struct gate gate = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));

    assert_int_equal(weir_execute(weir_group_at(group, 0), call_counter_task, &started), 0);
    assert_int_equal(weir_execute(weir_group_at(group, 1), gate_task, &gate), 0);
    assert_true(call_counter_await(&started, 1));
    assert_true(gate_await_arrivals(&gate, 1));

    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(weir_group_at(group, 0), TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(weir_group_at(group, 2), TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_promise_result(weir_group_termination(group)), -EINPROGRESS);
    assert_int_equal(weir_group_await_termination(group, weir_us(1)), -ETIMEDOUT);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_SHUTTING_DOWN);

    gate_open(&gate);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_state(weir_group_at(group, 1)), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_TERMINATED);
    weir_group_release(group);
}

TEST(group, that_never_started_starts_no_thread_to_stop)
{
    struct thread_factory_fixture fixture;
    weir_group *group;

    thread_factory_open(&fixture);
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 4, .thread_factory = &fixture.factory));
    assert_int_equal(weir_group_shutdown(group, weir_seconds(2), weir_seconds(15)), 0);
    assert_true(weir_promise_is_done(weir_group_termination(group)));
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_TERMINATED);
    weir_group_release(group);
    assert_int_equal(atomic_load(&fixture.asked), 0);
}

TEST(group, released_before_it_started_starts_no_thread)
{
    struct thread_factory_fixture fixture;

    thread_factory_open(&fixture);
    weir_group_release(
        make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 4, .thread_factory = &fixture.factory)));
    assert_int_equal(atomic_load(&fixture.asked), 0);
}

TEST(group, rejects_invalid_shutdown_times)
{
    struct call_counter counter = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));

    assert_int_equal(weir_group_shutdown(group, -1, 1), -EINVAL);
    assert_int_equal(weir_group_shutdown(group, 0, -1), -EINVAL);
    assert_int_equal(weir_group_shutdown(group, 2, 1), -EINVAL);
    assert_int_equal(weir_group_shutdown(NULL, 0, 0), -EINVAL);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    end_group(group);
}

TEST(group, is_shut_down_by_the_first_call)
{
    struct call_counter counter = {0};
    weir_manual_clock *clock;
    weir_group *group;

    assert_int_equal(weir_manual_clock_create(0, &clock), 0);
    group = make_group(
        WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .clock = weir_manual_clock_clock(clock)));
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 2));
    assert_int_equal(weir_group_shutdown(group, weir_seconds(10), weir_seconds(60)), 0);
    assert_int_equal(weir_group_shutdown(group, 0, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 4));
    assert_int_equal(atomic_load(&counter.run), 4);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_SHUTTING_DOWN);

    assert_int_equal(weir_manual_clock_advance(clock, weir_seconds(60)), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    weir_group_release(group);
    weir_manual_clock_release(clock);
}

TEST(group, has_the_lowest_state_of_its_members)
{
    struct call_counter counter = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));

    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_NOT_STARTED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_STARTED);
    assert_int_equal(weir_executor_shutdown(weir_group_at(group, 1), 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(weir_group_at(group, 1), TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_STARTED);
    end_group(group);
}

static int cannot_begin(weir_executor *executor)
{
    return strcmp(weir_executor_name(executor), "weir-2") == 0 ? -EIO : 0;
}

TEST(group, fails_its_termination_with_the_error_of_a_member)
{
    struct call_counter ran = {0}, cancelled = {0};
    static weir__executor_type type; /* valid until the last reference is released */
    weir_group *group;

    log_capture_start();
    type = weir__plain_type;
    type.begin = cannot_begin;
    assert_int_equal(
        weir__group_create(&type, NULL, WEIR_GROUP_OPTIONS(PLAIN, .threads = 3), &group), 0);
    assert_int_equal(weir_group_execute(group, call_counter_task, &ran), 0);
    IGNORE_RESULT(weir_group_execute(group, call_counter_task,
                                     &cancelled)); /* or refused, if it comes too late */
    assert_int_equal(weir_group_execute(group, call_counter_task, &ran), 0);
    assert_int_equal(weir_executor_await_termination(weir_group_at(group, 1), TEST_TIMEOUT_NS),
                     -EIO);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_STARTED);

    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), -EIO);
    assert_int_equal(atomic_load(&ran.run), 2);
    assert_int_equal(atomic_load(&cancelled.run), 0);
    weir_group_release(group); /* its threads have ended: no memory is left */
}

struct waiting {
    struct call_counter done;
    weir_group *group;
    _Atomic int result;
};

static void on_waiting(void *arg, int status)
{
    struct waiting *waiting = arg;

    if (status == 0)
        atomic_store(&waiting->result,
                     weir_group_await_termination(waiting->group, TEST_TIMEOUT_NS));
    call_counter_task(&waiting->done, status);
}

TEST(group, cannot_be_waited_for_by_its_own_threads)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    weir_group *other = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct waiting here = {.group = group}, there = {.group = group};

    assert_int_equal(weir_execute(weir_group_at(group, 1), on_waiting, &here), 0);
    assert_true(call_counter_await(&here.done, 1));
    assert_int_equal(atomic_load(&here.result), -EDEADLK);

    assert_int_equal(weir_group_execute(other, on_waiting, &there), 0);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&there.done, 1));
    assert_int_equal(atomic_load(&there.result), 0);
    end_group(other);
    weir_group_release(group);
}

/* ---- references ---- */

TEST(group, is_released_when_there_is_none)
{
    weir_group_release(NULL);
}

TEST(group, released_while_it_runs_runs_what_was_submitted_first)
{
    struct call_counter tasks = {0}, timer = {0};
    weir_promise *termination;
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 4));

    for (int i = 0; i < 4000; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &tasks), 0);
    assert_int_equal(
        weir_group_schedule(group, weir_seconds(3600), call_counter_task, &timer, NULL), 0);
    termination = weir_promise_retain(weir_group_termination(group));
    weir_group_release(group);
    assert_int_equal(atomic_load(&tasks.run), 4000);
    assert_int_equal(atomic_load(&tasks.cancelled), 0);
    assert_int_equal(atomic_load(&timer.cancelled), 1);
    assert_int_equal(weir_promise_result(termination), 0);
    weir_promise_release(termination);
}

TEST(group, lives_as_long_as_it_is_retained)
{
    struct call_counter counter = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));

    assert_ptr_equal(weir_group_retain(group), group);
    weir_group_release(group);
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    weir_group_release(group);
}

TEST(group, is_outlived_by_a_retained_executor_that_rejects_tasks)
{
    struct call_counter counter = {0};
    weir_executor_stats stats;
    weir_executor *member;
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));

    member = weir_executor_retain(weir_group_at(group, 0));
    assert_int_equal(weir_execute(member, call_counter_task, &counter), 0);
    weir_group_release(group);
    assert_int_equal(weir_execute(member, call_counter_task, &counter), WEIR_EREJECTED);
    assert_int_equal(weir_executor_state(member), WEIR_EXECUTOR_TERMINATED);
    assert_string_equal(weir_executor_name(member), "weir-1");
    assert_int_equal(weir_executor_await_termination(member, 0), 0);
    weir_executor_read_stats(member, &stats);
    assert_int_equal(stats.tasks_run, 1);
    weir_executor_release(member);
}

static void on_release(void *arg, int status)
{
    (void)status;
    weir_group_release(arg);
}

TEST(group, may_lose_its_last_reference_on_its_own_thread)
{
    struct call_counter *destroyed = counted_executor_open();
    struct thread_factory_fixture fixture;
    struct call_counter later = {0};
    weir_promise *termination;
    weir_group *group;

    thread_factory_open(&fixture);
    assert_int_equal(weir__group_create(&counted_executor_type, NULL,
                                        WEIR_GROUP_OPTIONS(PLAIN, .threads = 3,
                                                           .thread_factory = &fixture.factory),
                                        &group),
                     0);
    termination = weir_promise_retain(weir_group_termination(group));
    weir_group_retain(group);
    assert_int_equal(weir_execute(weir_group_at(group, 1), on_release, group), 0);
    assert_int_equal(weir_execute(weir_group_at(group, 1), call_counter_task, &later), 0);
    weir_group_release(group);
    assert_int_equal(weir_promise_sync(termination, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(destroyed, 3));
    assert_int_equal(atomic_load(&later.run), 1); /* no quiet period, but no task is lost */
    weir_promise_release(termination);
    thread_factory_close(&fixture);
}

/* The first member has been freed when the test checks whether it may wait for the second. */
TEST(group, can_be_waited_for_after_its_release)
{
    struct call_counter *destroyed = counted_executor_open();
    struct thread_factory_fixture fixture;
    struct gate gate = {0};
    weir_promise *termination;
    weir_executor *member;
    weir_group *group;

    thread_factory_open(&fixture);
    assert_int_equal(weir__group_create(&counted_executor_type, NULL,
                                        WEIR_GROUP_OPTIONS(PLAIN, .threads = 2,
                                                           .thread_factory = &fixture.factory),
                                        &group),
                     0);
    termination = weir_promise_retain(weir_group_termination(group));
    gate_hold(&gate, weir_group_at(group, 1));
    member = weir_executor_retain(weir_group_at(group, 0));
    assert_int_equal(weir_execute(member, on_release, group), 0);
    weir_executor_release(member);
    assert_true(call_counter_await(destroyed, 1));
    assert_int_equal(weir_promise_sync(termination, weir_us(1)), -ETIMEDOUT);
    gate_open(&gate);
    assert_int_equal(weir_promise_sync(termination, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(destroyed, 2));
    weir_promise_release(termination);
    thread_factory_close(&fixture);
}

static void on_terminated(weir_promise *termination, void *user_data)
{
    (void)termination;
    weir_group_release(user_data);
}

TEST(group, may_lose_its_last_reference_in_a_listener_of_its_termination)
{
    struct call_counter *destroyed = counted_executor_open();
    struct call_counter counter = {0};
    weir_group *group;

    assert_int_equal(weir__group_create(&counted_executor_type, NULL,
                                        WEIR_GROUP_OPTIONS(PLAIN, .threads = 3), &group),
                     0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_int_equal(weir_promise_add_listener(weir_group_termination(group), on_terminated, group),
                     0);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(destroyed, 3));
    assert_int_equal(atomic_load(&counter.run), 2);
}

/* A thread-local may hold the last reference to the group of its thread. */
struct retainer {
    weir_group *group;
    weir_local *local;
    struct call_counter kept;
};

static void on_removed(void *value)
{
    weir_group_release(((struct retainer *)value)->group);
}

static void on_keep(void *arg, int status)
{
    struct retainer *retainer = arg;

    if (weir_local_set(retainer->local, retainer) < 0)
        abort();
    call_counter_task(&retainer->kept, status);
}

TEST(group, may_lose_its_last_reference_in_a_thread_local_of_its_thread)
{
    struct call_counter *destroyed = counted_executor_open();
    struct thread_factory_fixture fixture;
    struct retainer retainer = {0};
    int64_t started_ns = weir__monotonic_now();

    thread_factory_open(&fixture);
    assert_int_equal(weir_local_create(on_removed, &retainer.local), 0);
    assert_int_equal(weir__group_create(&counted_executor_type, NULL,
                                        WEIR_GROUP_OPTIONS(PLAIN, .threads = 2,
                                                           .thread_factory = &fixture.factory),
                                        &retainer.group),
                     0);
    assert_int_equal(weir_execute(weir_group_at(retainer.group, 0), on_keep, &retainer), 0);
    assert_true(call_counter_await(&retainer.kept, 1));
    assert_int_equal(weir_group_shutdown(retainer.group, 0, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(destroyed, 2));
    assert_true(weir__monotonic_now() - started_ns < TEST_TIMEOUT_NS / 2);
    weir_local_release(retainer.local);
    thread_factory_close(&fixture);
}

TEST(group, may_lose_its_last_reference_in_a_thread_local_of_a_suspended_thread)
{
    struct call_counter *destroyed = counted_executor_open();
    struct thread_factory_fixture fixture;
    struct retainer retainer = {0};
    weir_executor *member;

    thread_factory_open(&fixture);
    assert_int_equal(weir_local_create(on_removed, &retainer.local), 0);
    assert_int_equal(weir__group_create(&counted_executor_type, NULL,
                                        WEIR_GROUP_OPTIONS(PLAIN, .threads = 2,
                                                           .thread_factory = &fixture.factory),
                                        &retainer.group),
                     0);
    assert_int_equal(weir_execute(weir_group_at(retainer.group, 0), on_keep, &retainer), 0);
    assert_true(call_counter_await(&retainer.kept, 1));
    member = weir_executor_retain(weir_group_at(retainer.group, 0));
    assert_int_equal(weir_executor_suspend(member), 0);
    weir_executor_release(member);
    assert_true(call_counter_await(destroyed, 2));
    weir_local_release(retainer.local);
    thread_factory_close(&fixture);
}

struct holder {
    weir_group *group;
    weir__thread thread;
    struct call_counter *counter;
    _Atomic unsigned *accepted;
};

static void hold_and_submit(void *arg)
{
    struct holder *holder = arg;

    for (int i = 0; i < 500; i++) {
        weir_group *group = weir_group_retain(holder->group);

        if (weir_group_execute(group, call_counter_task, holder->counter) == 0)
            atomic_fetch_add(holder->accepted, 1);
        weir_group_release(group);
    }
    weir_group_release(holder->group);
}

TEST(group, is_retained_and_released_by_many_threads)
{
    struct holder holders[4];
    struct call_counter counter = {0};
    _Atomic unsigned accepted = 0;
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));

    for (int i = 0; i < 4; i++) {
        holders[i].group = weir_group_retain(group);
        holders[i].counter = &counter;
        holders[i].accepted = &accepted;
        assert_int_equal(
            weir__thread_start("holder", hold_and_submit, &holders[i], &holders[i].thread), 0);
    }
    weir_group_release(group); /* the last of the five shuts it down, and waits */
    for (int i = 0; i < 4; i++)
        weir__thread_join(&holders[i].thread);
    assert_int_equal(atomic_load(&accepted), 2000);
    assert_int_equal(atomic_load(&counter.run), 2000);
}

/* Tasks that retain their group and submit successors, until it is shut down. */
struct relay {
    weir_group *group;
    struct call_counter *ended;
};

static void on_relay(void *arg, int status)
{
    struct relay *relay = arg;
    weir_group *group = weir_group_retain(relay->group);

    if (status < 0 || weir_group_execute(group, on_relay, relay) < 0)
        call_counter_add(relay->ended);
    weir_group_release(group);
}

TEST(group, is_shut_down_while_its_tasks_use_it)
{
    struct call_counter ended = {0};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));
    struct relay relay = {group, &ended};

    log_capture_start(); /* tasks queued at the deadline are cancelled */
    for (int i = 0; i < 8; i++)
        assert_int_equal(weir_group_execute(group, on_relay, &relay), 0);
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(5)), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(atomic_load(&ended.calls), 8);
    weir_group_release(group);
}
