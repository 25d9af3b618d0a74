/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of timers, for the executor and for the timers of handlers.
 */
#ifndef WEIR_EXECUTOR_TIMER_H
#define WEIR_EXECUTOR_TIMER_H

#include <weir/timer.h>

/* Like weir_timer_start, with the timer's own function; also for the timers of handlers. */
int weir__timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns);

/* The executor's thread: the time that a running timer has left, by the executor's clock. */
int64_t weir__timer_left(const weir_timer *timer);

#endif
