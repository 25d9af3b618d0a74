/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weir_manual_* and the manual event loops share. Their types have no thread, and store a
 * weir__manual next to their executor.
 */
#ifndef WEIR_EXECUTOR_MANUAL_H
#define WEIR_EXECUTOR_MANUAL_H

#include "executor/executor.h"

/* Accessed by the owner's thread only. */
typedef struct weir__manual {
    bool running;
    bool end_reported;   /* weir__manual_run_once has returned WEIR_ETERMINATED */
    int64_t hooks_at_ns; /* next call of the hooks of base/turn_hooks.h */
} weir__manual;

/* Opens a new executor for tasks; the calling thread is its owner if `owned`. */
void weir__manual_open(weir_executor *executor, weir__manual *manual, bool owned);

/* Makes the calling thread the owner. Fails with -EALREADY. */
int weir__manual_claim(weir_executor *executor);

/* Like weir_manual_run_once, but `budget_ns` is that of weir__executor_turn. Counts I/O events,
 * too.
 */
int weir__manual_run_once(weir_executor *executor, weir__manual *manual, int64_t max_wait_ns,
                          int64_t budget_ns);

/* As weir_manual_timeout. */
int64_t weir__manual_timeout(weir_executor *executor, weir__manual *manual);

#endif
