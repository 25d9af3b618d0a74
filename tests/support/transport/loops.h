/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of event loops, and of every other kind, for tests that may know them all. end_group
 * (support/executor/group.h) ends them.
 */
#ifndef WEIR_TEST_LOOPS_H
#define WEIR_TEST_LOOPS_H

#include <weir/group.h>

#include "support/executor/group.h"

/* As weir_group_create; skips the test if such a group cannot be had here. */
weir_group *make_loops(const weir_group_options *options);

#endif
