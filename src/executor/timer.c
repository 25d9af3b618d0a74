/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers in the caller's memory: checks in front of base/timers.c.
 */
#include "executor/executor.h"

#include <errno.h>

#include <weir/error.h>

#define LONG_NS weir_ms(100)

_Static_assert(sizeof(weir_timer) <= 64, "a timer is at most one line of the cache");

static int start_now(weir_executor *executor, weir_timer *timer, int64_t delay_ns)
{
    weir__timers_start(&executor->timers, &timer->node,
                       weir__deadline(weir__executor_now(executor), delay_ns));
    return 0;
}

static int check_not_current(const weir_executor *executor)
{
    if (executor->type->run_inline != NULL)
        return -ENOTSUP;
    return weir__in_executor(executor) ? 0 : WEIR_EWRONGTHREAD;
}

static inline int check_start(const weir_executor *executor, const weir_timer *timer)
{
    int err = executor != weir__current ? check_not_current(executor) : 0;

    if (err < 0)
        return err;
    if (weir_timer_is_running(timer) && timer->executor != executor)
        return -EBUSY;
    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN ? 0 : WEIR_EREJECTED;
}

/*
 * A long timer started by a task counts from the end of the batch of tasks, when the clock is read
 * anyway: reading it costs more than the rest of the start. The executor fires no timer before
 * that, so the timer is late by at most the duration of the batch. Reading a manual clock is cheap,
 * so there the start is exact.
 */
static inline int start(weir_executor *executor, weir_timer *timer, int64_t delay_ns,
                        weir_timer_fn *fn)
{
    int err = check_start(executor, timer);

    if (err < 0)
        return err;
    if (timer->executor != executor) /* with a million timers a start is bound by its stores */
        timer->executor = executor;
    if (timer->fn != fn)
        timer->fn = fn;
    if (delay_ns < LONG_NS || executor != weir__current ||
        executor->options.clock != &weir__monotonic_clock)
        return start_now(executor, timer, delay_ns);
    weir__timers_start_after(&executor->timers, &timer->node, delay_ns);
    return 0;
}

int weir__timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns)
{
    return start(executor, timer, delay_ns, timer->fn);
}

int weir_timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns,
                     weir_timer_fn *fn)
{
    if (executor == NULL || timer == NULL || fn == NULL)
        return -EINVAL;
    if (timer->ctx != NULL)
        return -EBUSY;
    return start(executor, timer, delay_ns, fn);
}

int weir_timer_restart(weir_timer *timer, int64_t delay_ns)
{
    if (timer == NULL || timer->executor == NULL)
        return -EINVAL;
    return start(timer->executor, timer, delay_ns, timer->fn);
}

int64_t weir__timer_left(const weir_timer *timer)
{
    int64_t at_ns = timer->node.at_ns, now_ns;

    if (at_ns < 0)
        return -1 - at_ns; /* of a timer that counts from the end of this batch of tasks */
    now_ns = weir__executor_now(timer->executor);
    return at_ns > now_ns ? at_ns - now_ns : 0;
}

static int stop_not_current(weir_timer *timer)
{
    if (!weir__in_executor(timer->executor))
        return WEIR_EWRONGTHREAD;
    weir__timers_stop(&timer->executor->timers, &timer->node);
    return 0;
}

/*
 * The timer may not be in the cache, nor its pointer to the executor. If that is the current
 * executor, as it nearly always is, the address of the timer store does not depend on the load, and
 * the CPU runs ahead: with a million timers this halves the time.
 */
int weir_timer_stop(weir_timer *timer)
{
    weir_executor *executor = weir__current;

    if (!weir_timer_is_running(timer))
        return 0;
    if (timer->executor != executor)
        return stop_not_current(timer);
    weir__timers_stop(&executor->timers, &timer->node);
    return 0;
}
