/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <weir/error.h>
#include <weir/group.h>
#include "support/test.h"

static void count(void *arg, int status)
{
    if (status == 0) ++*(int *)arg;
}

TEST(executor, smoke)
{
    weir_group *group;
    int n = 0;
    weir_executor_stats stats;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_group_execute(group, count, &n), 0);
    assert_int_equal(weir_group_shutdown(group, 0, weir_seconds(5)), 0);
    assert_int_equal(weir_group_await_termination(group, weir_seconds(5)), 0);
    weir_executor_read_stats(weir_group_at(group, 0), &stats);
    assert_int_equal(stats.tasks_run, 1000);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(n, 1000);
    weir_group_release(group);
}
