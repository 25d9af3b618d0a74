/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of executor that is like the plain one, but tells when the last reference to it has gone.
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

/* Begins to count anew, and makes the type ready. */
struct call_counter *counted_executor_open(void);

#endif
