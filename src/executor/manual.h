/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executors that their owner drives: what weir_manual_* and the manual event loops have in common.
 * The kinds have no thread, and keep a weir__manual beside their executor.
 */
#ifndef WEIR_EXECUTOR_MANUAL_H
#define WEIR_EXECUTOR_MANUAL_H

#include "executor/executor.h"

/* The owner's. */
typedef struct weir__manual {
    bool running;
    bool end_was_told;     /* by weir__manual_run_once */
    int64_t rest_until_ns; /* the hooks of base/turn_hooks.h want to be called then */
} weir__manual;

/* A new executor takes tasks from now on; the calling thread owns it, or nobody does yet. */
void weir__manual_open(weir_executor *executor, weir__manual *manual, bool owned);

/* Makes the calling thread the owner. Fails with -EALREADY. */
int weir__manual_claim(weir_executor *executor);

/* As weir_manual_run_once, but `budget_ns` is that of weir__executor_turn. I/O events count, too.
 */
int weir__manual_run_once(weir_executor *executor, weir__manual *manual, int64_t max_wait_ns,
                          int64_t budget_ns);

/* As weir_manual_timeout. */
int64_t weir__manual_timeout(weir_executor *executor, weir__manual *manual);

#endif
