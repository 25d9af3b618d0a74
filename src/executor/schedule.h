/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the executor's shutdown has to know of scheduled tasks.
 */
#ifndef WEIR_EXECUTOR_SCHEDULE_H
#define WEIR_EXECUTOR_SCHEDULE_H

#include <weir/timer.h>

/* Whether the timer is a scheduled task's, not one in the user's memory. */
bool weir__schedule_owns(const weir_timer *timer);

/* The executor has taken the timer out, and will not run it. */
void weir__schedule_cancelled(weir_timer *timer);

#endif
