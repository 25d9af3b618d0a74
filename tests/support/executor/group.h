/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that a test makes and ends.
 */
#ifndef WEIR_TEST_GROUP_H
#define WEIR_TEST_GROUP_H

#include <weir/group.h>

#include "support/timeout.h"

#define PLAIN .io = WEIR_IO_NONE

weir_group *make_group(const weir_group_options *options);

/* Shuts it down, waits for its end, and releases it. */
void end_group(weir_group *group);

#endif
