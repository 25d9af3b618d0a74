/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor sleeps, or is about to, when next_wakeup holds a deadline. Waiting for a state or a
 * deadline polls.
 */
#include "support/executor/single_executor.h"

#include "executor/executor.h"
#include "os/clock.h"
#include "support/executor/call_counter.h"
#include "support/executor/plain_group.h"
#include "support/test.h"

struct single_executor single_executor_open(const weir_group_options *options)
{
    weir_group_options given;
    struct single_executor single = {.clock = NULL};

    given = *WEIR_GROUP_OPTIONS();
    if (options != NULL)
        given = *options;
    given.threads = 1;
    given.io = WEIR_IO_NONE;
    assert_int_equal(plain_group_create(&given, &single.group), 0);
    single.executor = weir_group_at(single.group, 0);
    return single;
}

struct single_executor single_executor_open_at(int64_t now_ns)
{
    weir_manual_clock *clock;
    struct single_executor single;

    assert_int_equal(weir_manual_clock_create(now_ns, &clock), 0);
    single = single_executor_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    single.clock = clock;
    return single;
}

void single_executor_end(struct single_executor *single)
{
    assert_int_equal(weir_group_shutdown(single->group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(single->group, TEST_TIMEOUT_NS), 0);
}

void single_executor_close(struct single_executor *single)
{
    single_executor_end(single);
    weir_group_release(single->group);
    weir_manual_clock_release(single->clock);
}

void single_executor_run_one(struct single_executor *single)
{
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(single->executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
}

bool single_executor_await_sleep(const struct single_executor *single, int64_t deadline_ns)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (atomic_load(&single->executor->next_wakeup) != deadline_ns) {
        if (weir__monotonic_now() >= end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

bool single_executor_await_state(const struct single_executor *single,
                                 enum weir_executor_state state)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (weir_executor_state(single->executor) != state) {
        if (weir__monotonic_now() >= end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

weir_executor_stats single_executor_stats(const struct single_executor *single)
{
    weir_executor_stats stats;

    weir_executor_read_stats(single->executor, &stats);
    return stats;
}

void single_executor_suspend(struct single_executor *single)
{
    assert_int_equal(weir_executor_suspend(single->executor), 0);
    assert_true(single_executor_await_state(single, WEIR_EXECUTOR_SUSPENDED));
}
