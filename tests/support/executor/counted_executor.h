/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of executor that is like the plain one, but tells when the last reference to it has gone.
 *
 *     struct tally *destroyed = doomed_open();
 *     weir__group_create(&doomed_type, NULL, ...);
 *     ...
 *     assert_true(tally_await(destroyed, 3));
 */
#ifndef WEIR_TEST_COUNTED_EXECUTOR_H
#define WEIR_TEST_COUNTED_EXECUTOR_H

#include "executor/executor.h"
#include "support/executor/call_counter.h"

extern weir__executor_type doomed_type;

/* Begins to count anew, and makes the type ready. */
struct tally *doomed_open(void);

#endif
