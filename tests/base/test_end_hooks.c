/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks that run when a group has ended.
 */
#include "base/end_hooks.h"

#include "support/test.h"

static int first_calls, second_calls;

static void first(void)
{
    first_calls++;
    assert_int_equal(second_calls, first_calls - 1);
}

static void second(void)
{
    second_calls++;
}

TEST(end_hooks, run_does_nothing_without_hooks)
{
    weir__end_hooks_run();
    assert_int_equal(first_calls, 0);
}

TEST(end_hooks, calls_each_hook_once_in_the_order_added)
{
    weir__end_hook_add(first);
    weir__end_hook_add(second);
    weir__end_hook_add(first);
    weir__end_hooks_run();
    assert_int_equal(first_calls, 1);
    assert_int_equal(second_calls, 1);
    weir__end_hooks_run();
    assert_int_equal(first_calls, 2);
    assert_int_equal(second_calls, 2);
}
