/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers by absolute deadline, for the executor's own use.
 */
#ifndef WEIR_EXECUTOR_TIMER_H
#define WEIR_EXECUTOR_TIMER_H

#include <weir/timer.h>

/* Starts or restarts a timer; the executor's thread only, before its shutdown. */
void weir__timer_start_at(weir_executor *executor, weir_timer *timer, int64_t at_ns,
                          weir_timer_fn *fn);

#endif
