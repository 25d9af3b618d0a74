/* SPDX-License-Identifier: Apache-2.0 */
#include "support/executor/group.h"

#include "support/executor/plain_group.h"
#include "support/test.h"

weir_group *make_group(const weir_group_options *options)
{
    weir_group *group = NULL;

    assert_int_equal(plain_group_create(options, &group), 0);
    assert_non_null(group);
    return group;
}

void end_group(weir_group *group)
{
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    weir_group_release(group);
}
