/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loops of the process that are running: started, and neither suspended nor terminated.
 *
 * Loops of blocking channels are not in the list: blocking them is allowed.
 */
#ifndef WEIR_EXECUTOR_RUNNING_LOOPS_H
#define WEIR_EXECUTOR_RUNNING_LOOPS_H

#include <weir/executor.h>

#include "base/list.h"

/* The part of each executor. Guarded by the lock of the list. */
typedef struct weir__running_loop {
    weir__list link; /* zero: not in the list */
    bool is_mark;    /* the place of an iteration, not a loop */
} weir__running_loop;

/*
 * Adds and removes an executor. No effect if it is no event loop, or is in the list already, or not
 * in it. The list has a weak reference, so the caller needs one of its own.
 */
void weir__running_loops_add(weir_executor *executor);
void weir__running_loops_remove(weir_executor *executor);

/*
 * Calls `fn` for each loop, in the order in which they were started, with a weak reference and
 * without a lock. A loop may suspend itself or terminate meanwhile. Loops started meanwhile may be
 * left out. Any thread.
 */
typedef void weir__running_loop_fn(weir_executor *loop, void *arg);
void weir__running_loops_foreach(weir__running_loop_fn *fn, void *arg);

#endif
