/* SPDX-License-Identifier: Apache-2.0 */
#include "support/transport/loops.h"

#include "support/test.h"

weir_group *make_loops(const weir_group_options *options)
{
    weir_group *group = NULL;

    if (weir_group_create(options, &group) < 0)
        WEIR_TEST_SKIP("there is no such backend here");
    return group;
}
