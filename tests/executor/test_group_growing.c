/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that create an executor for each channel: leases, bounds, idle and retiring executors.
 */
#include "executor/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "os/pages.h"
#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/executor/counted_executor.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/thread_factory.h"
#include "support/memory.h"
#include "support/test.h"

static weir_group *make_growing(const weir_group_options *options)
{
    weir_group *group = NULL;

    assert_int_equal(
        weir__group_create_growing(&weir__plain_type, NULL, 0,
                                   options != NULL ? options : WEIR_GROUP_OPTIONS(PLAIN), &group),
        0);
    return group;
}

static weir_executor *lease(weir_group *group)
{
    weir_executor *executor = NULL;

    assert_int_equal(weir__group_lease_next(group, &executor), 0);
    assert_non_null(executor);
    return executor;
}

static weir_group_stats stats_of(const weir_group *group)
{
    weir_group_stats stats;

    weir_group_read_stats(group, &stats);
    return stats;
}

static void assert_in_use(const weir_group *group, uint64_t active, uint64_t idle)
{
    weir_group_stats stats = stats_of(group);

    assert_int_equal(stats.active, active);
    assert_int_equal(stats.idle, idle);
    assert_int_equal(stats.executors, active + idle);
}

/* ---- leasing ---- */

TEST(group_growing, starts_with_one_executor)
{
    weir_group *group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .threads = 7));

    assert_int_equal(weir_group_count(group), 1);
    assert_in_use(group, 0, 1);
    assert_int_equal(stats_of(group).threads, 0);
    assert_true(weir__group_grows(group));
    end_group(group);
}

TEST(group_growing, leases_each_executor_once)
{
    enum { COUNT = 50 };
    weir_group *group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .name = "each"));
    weir_executor *leased[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        leased[i] = lease(group);
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(leased[i], leased[j]);
        assert_ptr_equal(weir_group_at(group, i), leased[i]);
    }
    assert_in_use(group, COUNT, 0);
    assert_string_equal(weir_executor_name(leased[0]), "each-1");
    assert_string_equal(weir_executor_name(leased[COUNT - 1]), "each-50");
    for (size_t i = 0; i < COUNT; i++)
        weir__executor_unlease(leased[i]);
    assert_in_use(group, 0, COUNT);
    end_group(group);
}

TEST(group_growing, leases_the_latest_idle_executor_first)
{
    weir_group *group = make_growing(NULL);
    weir_executor *a = lease(group), *b = lease(group), *c = lease(group);

    weir__executor_unlease(a);
    weir__executor_unlease(c);
    weir__executor_unlease(b);
    assert_ptr_equal(lease(group), b);
    assert_ptr_equal(lease(group), c);
    assert_ptr_equal(lease(group), a);
    assert_int_equal(weir_group_count(group), 3);
    weir__executor_unlease(a);
    weir__executor_unlease(b);
    weir__executor_unlease(c);
    end_group(group);
}

TEST(group_growing, has_no_next_executor)
{
    weir_group *group = make_growing(NULL);
    struct call_counter counter = {0};
    weir_promise *promise = NULL;

    assert_null(weir_group_next(group));
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), -ENOTSUP);
    assert_int_equal(weir_group_submit(group, NULL, NULL, &promise), -ENOTSUP);
    assert_int_equal(weir_group_schedule(group, 0, call_counter_task, &counter, &promise),
                     -ENOTSUP);
    assert_int_equal(weir_group_schedule_at_fixed_rate(group, 0, weir_ms(1), call_counter_task,
                                                       &counter, &promise),
                     -ENOTSUP);
    assert_int_equal(weir_group_schedule_with_fixed_delay(group, 0, weir_ms(1), call_counter_task,
                                                          &counter, &promise),
                     -ENOTSUP);
    assert_null(promise);
    assert_int_equal(counter.calls, 0);
    end_group(group);
}

TEST(group_growing, rejects_a_chooser)
{
    weir_group *group = NULL;
    weir_autoscale_options autoscale;

    log_capture_start();
    autoscale = *WEIR_AUTOSCALE_OPTIONS();
    assert_int_equal(weir__group_create_growing(
                         &weir__plain_type, NULL, 0,
                         WEIR_GROUP_OPTIONS(.chooser = weir_chooser_round_robin()), &group),
                     -EINVAL);
    assert_int_equal(weir__group_create_growing(&weir__plain_type, NULL, 0,
                                                WEIR_GROUP_OPTIONS(.autoscale = &autoscale),
                                                &group),
                     -EINVAL);
    assert_int_equal(weir__group_create_growing(&weir__plain_type, NULL, 0,
                                                WEIR_GROUP_OPTIONS(.max_channels = -1), &group),
                     -EINVAL);
    assert_null(group);
}

/* ---- bounds ---- */

TEST(group_growing, refuses_more_than_its_bound)
{
    weir_group *group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .max_channels = 2));
    weir_executor *a = lease(group), *b = lease(group), *none = NULL;

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__group_lease_next(group, &none), WEIR_ETOOMANY);
    assert_null(none);
    assert_int_equal(stats_of(group).refused, 3);
    weir__executor_lease(a); /* it exists already */
    weir__executor_unlease(a);
    weir__executor_unlease(b);
    assert_ptr_equal(lease(group), b);
    weir__executor_unlease(a);
    weir__executor_unlease(b);
    assert_in_use(group, 0, 2);
    end_group(group);
}

TEST(group_growing, counts_a_direct_lease)
{
    weir_group *group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .max_channels = 1));
    weir_executor *first = weir_group_at(group, 0), *none = NULL;

    weir__executor_lease(first);
    assert_in_use(group, 1, 0);
    assert_int_equal(weir__group_lease_next(group, &none), WEIR_ETOOMANY);
    weir__executor_unlease(first);
    assert_ptr_equal(lease(group), first);
    weir__executor_unlease(first);
    end_group(group);
}

/* ---- members ---- */

struct test_member {
    weir__member member;
    weir_executor *executor;
    struct call_counter shut_downs;
};

static void on_shut_down(weir__member *member)
{
    struct test_member *test_member = WEIR_CONTAINER_OF(member, struct test_member, member);

    weir__member_leave(member, weir_executor_current());
    call_counter_add(&test_member->shut_downs);
}

static const weir__member_type test_member_type = {.shut_down = on_shut_down};

static void join(void *arg)
{
    struct test_member *test_member = arg;

    test_member->member.type = &test_member_type;
    weir__member_join(&test_member->member, test_member->executor);
}

static void leave(void *arg)
{
    weir__member_leave(&((struct test_member *)arg)->member, weir_executor_current());
}

static void join_executor(struct test_member *test_member, weir_executor *executor)
{
    test_member->executor = executor;
    run_on_executor(executor, join, test_member);
}

static void leave_executor(struct test_member *test_member)
{
    run_on_executor(test_member->executor, leave, test_member);
}

TEST(group_growing, keeps_an_executor_in_use_while_it_has_members)
{
    weir_group *group = make_growing(NULL);
    weir_executor *executor = lease(group), *other;
    struct test_member test_members[2] = {0};

    join_executor(&test_members[0], executor);
    weir__executor_unlease(executor);
    assert_in_use(group, 1, 0);
    join_executor(&test_members[1], executor);
    leave_executor(&test_members[0]);
    other = lease(group);
    assert_ptr_not_equal(other, executor);
    weir__executor_unlease(other);
    leave_executor(&test_members[1]);
    assert_in_use(group, 0, 2);
    assert_ptr_equal(lease(group), executor);
    weir__executor_unlease(executor);
    end_group(group);
}

/* The bound does not apply to a member that joins by itself, like a descriptor watch. */
TEST(group_growing, counts_a_member_that_joins_without_a_lease)
{
    weir_group *group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .max_channels = 1));
    weir_executor *first = weir_group_at(group, 0), *none = NULL;
    struct test_member test_member = {0};

    join_executor(&test_member, first);
    assert_in_use(group, 1, 0);
    assert_int_equal(weir__group_lease_next(group, &none), WEIR_ETOOMANY);
    leave_executor(&test_member);
    assert_ptr_equal(lease(group), first);
    weir__executor_unlease(first);
    end_group(group);
}

TEST(group_growing, shuts_its_members_down)
{
    weir_group *group = make_growing(NULL);
    struct test_member test_member = {0};
    weir_executor *executor = lease(group);

    join_executor(&test_member, executor);
    weir__executor_unlease(executor);
    end_group(group);
    assert_int_equal(test_member.shut_downs.calls, 1);
}

/* ---- idle threads ---- */

struct idling {
    weir_manual_clock *clock;
    weir_group *group;
    weir_executor *executor;
};

static void idling_open(struct idling *idling)
{
    assert_int_equal(weir_manual_clock_create(0, &idling->clock), 0);
    idling->group =
        make_growing(WEIR_GROUP_OPTIONS(PLAIN, .clock = weir_manual_clock_clock(idling->clock)));
    idling->executor = lease(idling->group);
}

static void idling_close(struct idling *idling)
{
    end_group(idling->group);
    weir_manual_clock_release(idling->clock);
}

static void advance(struct idling *idling, int64_t seconds)
{
    assert_int_equal(weir_manual_clock_advance(idling->clock, weir_seconds(seconds)), 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

static bool await_threads(const weir_group *group, uint64_t threads)
{
    for (int i = 0; i < 5000; i++) {
        if (stats_of(group).threads == threads)
            return true;
        weir__thread_sleep(weir_ms(2));
    }
    return false;
}

/* It sleeps until then, so it has seen everything before. */
static bool await_sleep(const struct idling *idling, int64_t until_ns)
{
    for (int i = 0; i < 5000; i++) {
        if (atomic_load(&idling->executor->next_wakeup) == until_ns)
            return true;
        weir__thread_sleep(weir_ms(2));
    }
    return false;
}

TEST(group_growing, ends_a_thread_after_a_minute_and_makes_another)
{
    struct idling idling;
    struct test_member test_member = {0};

    idling_open(&idling);
    join_executor(&test_member, idling.executor);
    weir__executor_unlease(idling.executor);
    leave_executor(&test_member);
    assert_true(await_sleep(&idling, weir_seconds(60)));
    advance(&idling, 59);
    run_on_executor(idling.executor, nothing, NULL); /* the idle time starts again */
    assert_true(await_sleep(&idling, weir_seconds(59 + 60)));
    advance(&idling, 60);
    assert_true(await_threads(idling.group, 0));
    assert_int_equal(weir_executor_state(idling.executor), WEIR_EXECUTOR_SUSPENDED);
    assert_in_use(idling.group, 0, 1);

    assert_ptr_equal(lease(idling.group), idling.executor);
    join_executor(&test_member, idling.executor);
    weir__executor_unlease(idling.executor);
    assert_int_equal(stats_of(idling.group).threads, 1);
    leave_executor(&test_member);
    idling_close(&idling);
}

/* It sleeps until woken: with a past deadline it would not sleep at all. */
TEST(group_growing, keeps_the_thread_of_one_that_has_a_member)
{
    struct idling idling;
    struct test_member test_member = {0};

    idling_open(&idling);
    join_executor(&test_member, idling.executor);
    weir__executor_unlease(idling.executor);
    assert_true(await_sleep(&idling, WEIR_NEVER));
    advance(&idling, 600);
    run_on_executor(idling.executor, nothing, NULL);
    assert_true(await_sleep(&idling, WEIR_NEVER));
    leave_executor(&test_member);
    assert_true(await_sleep(&idling, weir_seconds(600 + 60))); /* from when the last member left */
    advance(&idling, 60);
    assert_true(await_threads(idling.group, 0));
    idling_close(&idling);
}

/* ---- executors that retire ---- */

static bool await_executors(const weir_group *group, uint64_t executors)
{
    for (int i = 0; i < 5000; i++) {
        if (stats_of(group).executors == executors)
            return true;
        weir__thread_sleep(weir_ms(2));
    }
    return false;
}

/* Several executors, besides the first, have had a member and become idle. */
static void let_several_idle(struct idling *idling, size_t count)
{
    int64_t now_ns = weir__clock_now(weir_manual_clock_clock(idling->clock));
    weir_executor *leased[16];
    struct test_member test_member = {0};

    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        leased[i] = lease(idling->group);
        join_executor(&test_member, leased[i]);
        leave_executor(&test_member);
    }
    for (size_t i = 0; i < count; i++) {
        idling->executor = leased[i];
        assert_true(await_sleep(idling, now_ns + weir_seconds(60)));
        weir__executor_unlease(leased[i]);
    }
}

static size_t blocks_after_retirement(struct idling *idling, size_t count, size_t blocks)
{
    size_t pages = weir__pages_mapped();

    let_several_idle(idling, count);
    assert_in_use(idling->group, 1, count);
    assert_true(weir__pages_mapped() > pages);
    advance(idling, 60);
    assert_true(await_executors(idling->group, 1));
    for (int i = 0; i < 5000 && weir__pages_mapped() > pages; i++)
        weir__thread_sleep(weir_ms(2));
    assert_int_equal(weir__pages_mapped(), pages);
    for (int i = 0; i < 5000 && test_memory_live() > blocks; i++)
        weir__thread_sleep(weir_ms(2));
    return test_memory_live();
}

TEST(group_growing, frees_an_idle_executor_after_a_minute)
{
    enum { COUNT = 10 };
    struct idling idling;
    weir_executor *first, *next;
    size_t blocks;

    idling_open(&idling);
    first = idling.executor;
    blocks = blocks_after_retirement(&idling, COUNT, SIZE_MAX);
    blocks += COUNT; /* one block per thread may be left until the next member is created */
    for (int i = 0; i < 3; i++)
        assert_in_range(blocks_after_retirement(&idling, COUNT, blocks), 0, blocks);
    assert_ptr_equal(weir_group_at(idling.group, 0), first);
    assert_null(weir_group_at(idling.group, 1));

    next = lease(idling.group);
    assert_ptr_not_equal(next, first);
    run_on_executor(next, nothing, NULL);
    assert_in_use(idling.group, 2, 0);
    weir__executor_unlease(next);
    weir__executor_unlease(first);
    idling_close(&idling);
}

TEST(group_growing, keeps_an_idle_executor_that_is_referenced)
{
    struct idling idling;
    weir_executor *first, *kept;

    idling_open(&idling);
    first = idling.executor;
    let_several_idle(&idling, 1);
    kept = weir_executor_retain(idling.executor);
    advance(&idling, 60);
    assert_true(await_threads(idling.group, 0));
    assert_int_equal(weir_executor_state(kept), WEIR_EXECUTOR_SUSPENDED);
    assert_in_use(idling.group, 1, 1);
    run_on_executor(kept, nothing, NULL); /* it has a thread again */
    weir_executor_release(kept);
    assert_ptr_equal(lease(idling.group), kept);
    weir__executor_unlease(kept);
    weir__executor_unlease(first);
    idling_close(&idling);
}

/* A lease for a channel that takes longer than a minute to join. */
TEST(group_growing, keeps_an_idle_executor_that_is_leased)
{
    struct idling idling;
    weir_executor *first, *held;

    idling_open(&idling);
    first = idling.executor;
    held = lease(idling.group);
    run_on_executor(first, nothing, NULL);
    run_on_executor(held, nothing, NULL);
    assert_true(await_sleep(&idling, weir_seconds(60)));
    idling.executor = held;
    assert_true(await_sleep(&idling, weir_seconds(60)));
    advance(&idling, 60);
    assert_true(await_threads(idling.group, 0));
    assert_in_use(idling.group, 2, 0);
    run_on_executor(held, nothing, NULL);
    assert_in_use(idling.group, 2, 0);
    weir__executor_unlease(held);
    weir__executor_unlease(first);
    idling_close(&idling);
}

TEST(group_growing, an_executor_that_retires_may_be_in_the_middle)
{
    struct idling idling;
    weir_executor *first, *a, *b, *c;

    idling_open(&idling);
    first = idling.executor;
    a = lease(idling.group);
    b = lease(idling.group);
    c = lease(idling.group);
    run_on_executor(a, nothing, NULL);
    idling.executor = a;
    assert_true(await_sleep(&idling, weir_seconds(60)));
    weir__executor_unlease(a);
    advance(&idling, 60);
    assert_true(await_executors(idling.group, 3));
    assert_ptr_equal(weir_group_at(idling.group, 0), first);
    assert_ptr_equal(weir_group_at(idling.group, 1), c);
    assert_ptr_equal(weir_group_at(idling.group, 2), b);
    weir__executor_unlease(b);
    weir__executor_unlease(c);
    weir__executor_unlease(first);
    idling_close(&idling);
}

/* ---- executors retire while others are leased ---- */

struct rush {
    weir_group *group;
    struct call_counter ran;
    _Atomic unsigned leased;
    _Atomic unsigned failed;
};

#define RUSH_THREADS 3
#define RUSH_ROUNDS 300

static void take_and_use(void *arg)
{
    struct rush *rush = arg;

    for (int i = 0; i < RUSH_ROUNDS; i++) {
        weir_executor *executor = NULL;

        if (weir__group_lease_next(rush->group, &executor) < 0 ||
            weir_execute(executor, call_counter_task, &rush->ran) < 0)
            atomic_fetch_add(&rush->failed, 1);
        atomic_fetch_add(&rush->leased, 1);
        if (executor != NULL)
            weir__executor_unlease(executor);
    }
}

/* Each step of the clock is a minute: idle executors retire while other threads lease them. */
TEST(group_growing, loses_no_task_while_executors_retire)
{
    struct idling idling;
    struct rush rush = {0};
    weir__thread threads[RUSH_THREADS];
    weir_group_stats stats;

    idling_open(&idling);
    rush.group = idling.group;
    for (int i = 0; i < RUSH_THREADS; i++)
        assert_int_equal(weir__thread_start("rush", take_and_use, &rush, &threads[i]), 0);
    while (atomic_load(&rush.leased) < RUSH_THREADS * RUSH_ROUNDS) {
        advance(&idling, 60);
        weir_group_read_stats(idling.group, &stats);
        (void)weir_group_state(idling.group);
        weir__thread_sleep(weir_ms(1));
    }
    for (int i = 0; i < RUSH_THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(rush.failed, 0);
    assert_true(call_counter_await(&rush.ran, RUSH_THREADS * RUSH_ROUNDS));
    assert_int_equal(rush.ran.cancelled, 0);
    weir__executor_unlease(idling.executor);
    idling_close(&idling);
}

TEST(group_growing, may_end_while_executors_retire)
{
    for (int round = 0; round < 20; round++) {
        struct idling idling;
        weir_executor *first;

        idling_open(&idling);
        first = idling.executor;
        let_several_idle(&idling, 4);
        weir__executor_unlease(first);
        advance(&idling, 60);
        idling_close(&idling);
    }
}

/* ---- the end ---- */

TEST(group_growing, leases_nothing_when_it_shuts_down)
{
    weir_group *group = make_growing(NULL);
    weir_executor *held = lease(group), *none = NULL;

    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir__group_lease_next(group, &none), WEIR_EREJECTED);
    assert_null(none);
    assert_int_equal(weir_group_count(group), 1);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    weir__executor_unlease(held);
    assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    weir_group_release(group);
}

TEST(group_growing, ends_without_starting_threads)
{
    struct thread_factory_fixture fixture;
    weir_group *group;
    weir_executor *a, *b;

    thread_factory_open(&fixture);
    group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .thread_factory = &fixture.factory));
    a = lease(group);
    b = lease(group);
    weir__executor_unlease(a);
    end_group(group);
    assert_int_equal(fixture.asked, 0);
    (void)b; /* leased to the end, which does not prevent it */
    thread_factory_close(&fixture);
}

/* Executors may be shut down individually; the group continues with others. */
TEST(group_growing, does_not_end_with_its_executors)
{
    weir_group *group = make_growing(NULL);
    weir_executor *first = lease(group), *second;

    weir__executor_unlease(first);
    assert_int_equal(weir_executor_shutdown(first, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(first, TEST_TIMEOUT_NS), 0);
    assert_false(weir_promise_is_done(weir_group_termination(group)));
    second = lease(group);
    assert_ptr_not_equal(second, first);
    run_on_executor(second, nothing, NULL);
    weir__executor_unlease(second);
    end_group(group);
}

TEST(group_growing, may_end_before_a_retained_executor)
{
    struct call_counter *destroyed = counted_executor_open();
    weir_executor *kept = NULL;
    weir_group *group = NULL;

    assert_int_equal(weir__group_create_growing(&counted_executor_type, NULL, 0,
                                                WEIR_GROUP_OPTIONS(PLAIN), &group),
                     0);
    kept = weir_executor_retain(lease(group));
    weir_group_release(group);
    assert_int_equal(destroyed->calls, 0);
    weir__executor_lease(kept);
    weir__executor_unlease(kept);
    weir__executor_unlease(kept);
    weir_executor_release(kept);
    assert_int_equal(destroyed->calls, 1);
}

static void release(void *group)
{
    weir_group_release(group);
}

/* Only the factory waits for that thread; the group is freed after its last step. */
TEST(group_growing, may_be_released_on_a_thread_of_its_own)
{
    struct thread_factory_fixture fixture;
    weir_promise *termination;
    weir_executor *executor;
    weir_group *group;

    thread_factory_open(&fixture);
    group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .thread_factory = &fixture.factory));
    termination = weir_promise_retain(weir_group_termination(group));
    executor = weir_executor_retain(lease(group));
    weir__executor_unlease(executor);
    run_on_executor(executor, release, group);
    assert_int_equal(weir_promise_sync(termination, TEST_TIMEOUT_NS), 0);
    weir_promise_release(termination);
    weir_executor_release(executor);
    thread_factory_close(&fixture);
}

/* ---- errors ---- */

TEST(group_growing, is_not_created_without_memory)
{
    const int cpus[] = {0};
    weir_group_options options = {
        .size = sizeof(options), .io = WEIR_IO_NONE, .cpus = cpus, .cpu_count = 1};
    weir_group *group = NULL;
    unsigned failures = 0;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir__group_create_growing(&weir__plain_type, NULL, 0, &options, &group);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_int_equal(test_memory_live(), 0);
        failures++;
    }
    assert_int_equal(err, 0);
    assert_true(failures >= 6); /* the group, array, promise, factory, leases, and a member */
    end_group(group);
}

TEST(group_growing, is_unchanged_when_it_cannot_grow)
{
    weir_group *group = make_growing(NULL);
    weir_executor *leased[40];
    unsigned failures = 0;

    for (size_t i = 0; i < 40; i++) {
        test_memory_fail_at(1 + (unsigned)i % 3);
        while (weir__group_lease_next(group, &leased[i]) < 0) {
            assert_in_use(group, i, 0);
            test_memory_fail_at(0);
            failures++;
        }
        test_memory_fail_at(0);
    }
    assert_true(failures >= 20);
    assert_in_use(group, 40, 0);
    for (size_t i = 0; i < 40; i++)
        weir__executor_unlease(leased[i]);
    end_group(group);
}

TEST(group_growing, recovers_an_executor_whose_thread_does_not_start)
{
    struct thread_factory_fixture fixture;
    struct call_counter counter = {0};
    weir_executor *executor;
    weir_group *group;

    log_capture_start();
    thread_factory_open(&fixture);
    fixture.answer = -EAGAIN;
    group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .thread_factory = &fixture.factory));
    executor = lease(group);
    assert_int_equal(weir_execute(executor, call_counter_task, &counter), -EAGAIN);
    weir__executor_unlease(executor);
    fixture.answer = 0;
    assert_ptr_equal(lease(group), executor);
    assert_int_equal(weir_execute(executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    weir__executor_unlease(executor);
    end_group(group);
    thread_factory_close(&fixture);
}

/* The options may be gone when the second executor is created. */
TEST(group_growing, copies_its_options)
{
    struct thread_factory_fixture fixture;
    weir_thread_factory factory;
    char name[] = "lasting";
    int cpus[] = {weir__cpu_nth(0)};
    weir_thread_properties thread;
    weir_executor *first, *second;
    weir_group *group;

    thread_factory_open(&fixture);
    factory = fixture.factory;
    group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .name = name, .thread_factory = &factory,
                                            .pin = true, .cpus = cpus, .cpu_count = 1));
    memset(name, 'x', sizeof(name) - 1);
    factory = (weir_thread_factory){0};
    cpus[0] = 12345;
    first = lease(group);
    second = lease(group);
    assert_int_equal(weir_executor_thread(second, &thread), 0);
    assert_string_equal(thread.name, "lasting-2");
    assert_int_equal(thread.cpu, weir__cpu_nth(0));
    assert_int_equal(fixture.started, 1);
    weir__executor_unlease(first);
    weir__executor_unlease(second);
    end_group(group);
    thread_factory_close(&fixture);
}

/* ---- races ---- */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 300
#else
#define ROUNDS 2000
#endif

struct crowd {
    weir_group *group;
    unsigned number;
    uint64_t shared; /* executors leased twice */
    uint64_t refused;
};

/* The executor has no other member or lease. */
static void join_once(struct crowd *crowd, weir_executor *executor)
{
    struct test_member test_member = {0};

    join_executor(&test_member, executor);
    weir__executor_unlease(executor);
    crowd->shared += atomic_load(&executor->members.count) != 1;
    leave_executor(&test_member);
}

static void join_and_leave(void *arg)
{
    struct crowd *crowd = arg;
    weir_executor *executor;

    for (unsigned i = 0; i < ROUNDS; i++) {
        if (weir__group_lease_next(crowd->group, &executor) < 0)
            crowd->refused++;
        else if ((i + crowd->number) % 3 == 0)
            weir__executor_unlease(executor);
        else
            join_once(crowd, executor);
    }
}

/* Leasing on one thread while the last member leaves on another. */
TEST(group_growing, never_leases_an_executor_twice)
{
    enum { THREADS = 6, MOST = 4 };
    weir_group *group = make_growing(WEIR_GROUP_OPTIONS(PLAIN, .max_channels = MOST));
    struct crowd crowds[THREADS] = {0};
    weir__thread threads[THREADS];
    uint64_t refused = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        crowds[i] = (struct crowd){.group = group, .number = i};
        assert_int_equal(weir__thread_start("crowd", join_and_leave, &crowds[i], &threads[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        weir__thread_join(&threads[i]);
        assert_int_equal(crowds[i].shared, 0);
        refused += crowds[i].refused;
    }
    assert_int_equal(stats_of(group).refused, refused);
    assert_int_equal(stats_of(group).active, 0);
    assert_true(weir_group_count(group) <= MOST);
    end_group(group);
}

static void join_until_rejected(void *arg)
{
    struct crowd *crowd = arg;
    weir_executor *executor;
    struct call_counter counter = {0};
    uint32_t submitted = 0;

    while (weir__group_lease_next(crowd->group, &executor) == 0) {
        submitted += weir_execute(executor, call_counter_task, &counter) == 0;
        (void)call_counter_await(&counter, submitted); /* run, or cancelled */
        weir__executor_unlease(executor);
    }
}

TEST(group_growing, shuts_down_while_executors_are_leased)
{
    enum { THREADS = 4 };

    for (int round = 0; round < 20; round++) {
        weir_group *group = make_growing(NULL);
        struct crowd crowd = {.group = group};
        weir__thread threads[THREADS];

        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(weir__thread_start("crowd", join_until_rejected, &crowd, &threads[i]),
                             0);
        assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
        assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
        for (unsigned i = 0; i < THREADS; i++)
            weir__thread_join(&threads[i]);
        assert_int_equal(weir_group_state(group), WEIR_EXECUTOR_TERMINATED);
        weir_group_release(group);
    }
}

/* ---- stats of other groups ---- */

TEST(group, counts_executors_with_open_handles)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));
    struct test_member test_member = {0};

    join_executor(&test_member, weir_group_at(group, 1));
    assert_in_use(group, 1, 2);
    assert_int_equal(stats_of(group).threads, 1);
    assert_int_equal(stats_of(group).refused, 0);
    leave_executor(&test_member);
    assert_in_use(group, 0, 3);
    end_group(group);
}
