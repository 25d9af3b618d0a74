/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of plain executors, for tests that know no others: weir_group_create makes every kind, so
 * it stands in a higher layer.
 */
#ifndef WEIR_TEST_PLAIN_GROUP_H
#define WEIR_TEST_PLAIN_GROUP_H

#include <weir/group.h>

/* As weir_group_create, whatever `.io` says. */
int plain_group_create(const weir_group_options *options, weir_group **ret_group);

#endif
