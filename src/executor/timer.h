/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What timers are made of: for the executor itself, and for those whose timers are a handler's.
 */
#ifndef WEIR_EXECUTOR_TIMER_H
#define WEIR_EXECUTOR_TIMER_H

#include <weir/timer.h>

/* Starts or restarts a timer; the executor's thread only, before its shutdown. */
void weir__timer_start_at(weir_executor *executor, weir_timer *timer, int64_t at_ns,
                          weir_timer_fn *fn);

/* As weir_timer_start, with the function that the timer has: also of one that is a handler's. */
int weir__timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns);

/* It is due. */
static inline void weir__timer_fire(weir_timer *timer)
{
    if (timer->ctx == NULL)
        timer->fn(timer);
    else
        timer->ctx_fn(timer->ctx, timer);
}

#endif
