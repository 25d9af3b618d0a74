/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks that run at the end of a turn.
 */
#include "base/turn_hooks.h"

#include "support/test.h"

static int calls;
static bool last_sleeps;
static int64_t last_now_ns;
static int64_t first_wants_ns = WEIR_NEVER;

static int64_t first(bool sleeps, int64_t now_ns)
{
    calls++;
    last_sleeps = sleeps;
    last_now_ns = now_ns;
    return first_wants_ns;
}

static int64_t second(bool sleeps, int64_t now_ns)
{
    (void)sleeps;
    return now_ns + 10;
}

TEST(turn_hooks, run_returns_never_without_hooks)
{
    assert_true(weir__turn_hooks_run(true, 5) == WEIR_NEVER);
}

TEST(turn_hooks, a_hook_added_twice_runs_once)
{
    weir__turn_hook_add(first);
    weir__turn_hook_add(first);
    assert_true(weir__turn_hooks_run(true, 5) == WEIR_NEVER);
    assert_int_equal(calls, 1);
    assert_true(last_sleeps);
    assert_int_equal(last_now_ns, 5);
    (void)weir__turn_hooks_run(false, 6);
    assert_int_equal(calls, 2);
    assert_false(last_sleeps);
}

TEST(turn_hooks, run_returns_the_earliest_time)
{
    weir__turn_hook_add(first);
    weir__turn_hook_add(second);
    assert_int_equal(weir__turn_hooks_run(true, 5), 15);
    first_wants_ns = 14;
    assert_int_equal(weir__turn_hooks_run(true, 5), 14);
    first_wants_ns = WEIR_NEVER;
}
