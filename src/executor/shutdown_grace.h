/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long after the deadline of a shutdown a thread is given up. 100 ms; a variable for the tests,
 * where a thread may have to wait longer for a CPU. Any thread may set it.
 */
#ifndef WEIR_EXECUTOR_SHUTDOWN_GRACE_H
#define WEIR_EXECUTOR_SHUTDOWN_GRACE_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic int64_t weir__shutdown_grace_ns;

#endif
