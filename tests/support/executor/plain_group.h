/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of plain executors, for the tests of this layer: weir_group_create knows all types and is
 * in a higher layer.
 */
#ifndef WEIR_TEST_PLAIN_GROUP_H
#define WEIR_TEST_PLAIN_GROUP_H

#include <weir/group.h>

/* Like weir_group_create, ignoring `.io`. */
int plain_group_create(const weir_group_options *options, weir_group **ret_group);

#endif
