/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End hooks run once, when a group has ended, before its termination completes.
 */
#include "base/end_hooks.h"

#include <stdatomic.h>

#include <weir/group.h>

#include "support/executor/plain_group.h"
#include "support/test.h"

static _Atomic int calls;
static weir_group *group;
static _Atomic bool heard_before;

static void on_ending(void)
{
    heard_before = weir_promise_is_done(weir_group_termination(group));
    calls++;
}

static void ignore(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void end_group(void)
{
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, WEIR_NEVER), 0);
}

TEST(end_hooks, hooks_run_when_the_last_member_of_a_group_has_ended)
{
    weir__end_hook_add(on_ending);
    calls = 0;
    assert_int_equal(
        plain_group_create(WEIR_GROUP_OPTIONS(.threads = 3, .io = WEIR_IO_NONE), &group), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_execute(weir_group_at(group, (size_t)i), ignore, NULL), 0);
    assert_int_equal(calls, 0);
    end_group();
    assert_int_equal(calls, 1);
    assert_false(heard_before);
    weir_group_release(group);
    assert_int_equal(calls, 1);
}

TEST(end_hooks, hooks_run_for_a_group_that_never_had_a_thread)
{
    weir__end_hook_add(on_ending);
    calls = 0;
    assert_int_equal(
        plain_group_create(WEIR_GROUP_OPTIONS(.threads = 2, .io = WEIR_IO_NONE), &group), 0);
    end_group();
    assert_int_equal(calls, 1);
    weir_group_release(group);
}
