/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor sleeps, or is about to, when next_wakeup holds a deadline. Waiting for a state or a
 * deadline is looking again and again: nobody tells.
 */
#include "support/executor/single_executor.h"

#include "executor/executor.h"
#include "os/clock.h"
#include "support/executor/call_counter.h"
#include "support/executor/plain.h"
#include "support/test.h"

struct solo solo_open(const weir_group_options *options)
{
    weir_group_options given;
    struct solo solo = {.clock = NULL};

    given = *WEIR_GROUP_OPTIONS();
    if (options != NULL)
        given = *options;
    given.threads = 1;
    given.io = WEIR_IO_NONE;
    assert_int_equal(plain_group_create(&given, &solo.group), 0);
    solo.executor = weir_group_at(solo.group, 0);
    return solo;
}

struct solo solo_open_at(int64_t now_ns)
{
    weir_manual_clock *clock;
    struct solo solo;

    assert_int_equal(weir_manual_clock_create(now_ns, &clock), 0);
    solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    solo.clock = clock;
    return solo;
}

void solo_end(struct solo *solo)
{
    assert_int_equal(weir_group_shutdown(solo->group, 0, PATIENCE_NS), 0);
    assert_int_equal(weir_group_await_termination(solo->group, PATIENCE_NS), 0);
}

void solo_close(struct solo *solo)
{
    solo_end(solo);
    weir_group_release(solo->group);
    weir_manual_clock_release(solo->clock);
}

void solo_run_one(struct solo *solo)
{
    struct tally tally = {0};

    assert_int_equal(weir_execute(solo->executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 1));
}

bool solo_await_sleep(const struct solo *solo, int64_t deadline_ns)
{
    int64_t end_ns = weir__monotonic_now() + PATIENCE_NS;

    while (atomic_load(&solo->executor->next_wakeup) != deadline_ns) {
        if (weir__monotonic_now() >= end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

bool solo_await_state(const struct solo *solo, enum weir_executor_state state)
{
    int64_t end_ns = weir__monotonic_now() + PATIENCE_NS;

    while (weir_executor_state(solo->executor) != state) {
        if (weir__monotonic_now() >= end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

weir_executor_stats solo_stats(const struct solo *solo)
{
    weir_executor_stats stats;

    weir_executor_read_stats(solo->executor, &stats);
    return stats;
}

void solo_suspend(struct solo *solo)
{
    assert_int_equal(weir_executor_suspend(solo->executor), 0);
    assert_true(solo_await_state(solo, WEIR_EXECUTOR_SUSPENDED));
}
