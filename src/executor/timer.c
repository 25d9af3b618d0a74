/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers in the caller's memory: the checks, in front of base/timers.c.
 */
#include "executor/timer.h"

#include <errno.h>

#include <weir/error.h>

#include "executor/executor.h"

void weir__timer_start_at(weir_executor *executor, weir_timer *timer, int64_t at_ns,
                          weir_timer_fn *fn)
{
    timer->fn = fn;
    timer->executor = executor;
    weir__timers_start(&executor->timers, &timer->node, at_ns);
}

int weir_timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns,
                     weir_timer_fn *fn)
{
    if (executor == NULL || timer == NULL || fn == NULL)
        return -EINVAL;
    if (executor->type->run_here != NULL)
        return -ENOTSUP;
    if (!weir_in_executor(executor))
        return WEIR_EWRONGTHREAD;
    if (weir_timer_is_running(timer) && timer->executor != executor)
        return -EBUSY;
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    weir__timer_start_at(executor, timer, weir__deadline(weir__executor_now(executor), delay_ns),
                         fn);
    return 0;
}

int weir_timer_restart(weir_timer *timer, int64_t delay_ns)
{
    if (timer == NULL)
        return -EINVAL;
    return weir_timer_start(timer->executor, timer, delay_ns, timer->fn);
}

int weir_timer_stop(weir_timer *timer)
{
    if (!weir_timer_is_running(timer))
        return 0;
    if (!weir_in_executor(timer->executor))
        return WEIR_EWRONGTHREAD;
    weir__timers_stop(&timer->executor->timers, &timer->node);
    return 0;
}
