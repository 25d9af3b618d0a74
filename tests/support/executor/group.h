/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating and ending groups in tests.
 */
#ifndef WEIR_TEST_GROUP_H
#define WEIR_TEST_GROUP_H

#include <weir/group.h>

#include "support/timeout.h"

#define PLAIN .io = WEIR_IO_NONE

weir_group *make_group(const weir_group_options *options);

/* Shuts the group down, waits for its termination, and releases it. */
void end_group(weir_group *group);

#endif
