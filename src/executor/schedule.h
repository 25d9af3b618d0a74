/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of scheduled tasks, for the executor's turn and its shutdown.
 */
#ifndef WEIR_EXECUTOR_SCHEDULE_H
#define WEIR_EXECUTOR_SCHEDULE_H

#include <weir/timer.h>

/* True if the timer is that of a scheduled task, not one in the user's memory. */
bool weir__schedule_owns(const weir_timer *timer);

/* The executor has removed the timer without running it: cancels the task. */
void weir__schedule_cancelled(weir_timer *timer);

#endif
