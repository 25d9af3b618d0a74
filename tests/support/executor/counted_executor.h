/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain executor type that counts its destroyed executors.
 *
 *     struct call_counter *destroyed = counted_executor_open();
 *     weir__group_create(&counted_executor_type, NULL, ...);
 *     ...
 *     assert_true(call_counter_await(destroyed, 3));
 */
#ifndef WEIR_TEST_COUNTED_EXECUTOR_H
#define WEIR_TEST_COUNTED_EXECUTOR_H

#include "executor/executor.h"
#include "support/executor/call_counter.h"

extern weir__executor_type counted_executor_type;

/* Initializes the type and resets the counter. */
struct call_counter *counted_executor_open(void);

#endif
