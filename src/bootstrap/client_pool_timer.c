/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of a pool: one for all who wait, and one for all channels that are idle. Each runs for
 * the first of them, since the others are due later, and is then set for the next. So a pool has
 * two at most, however often something is acquired and given back: a timer that is stopped from
 * another thread stays where it is until its executor wakes up, and there would be one for each.
 */
#include <weir/timer.h>

#include "bootstrap/client_pool.h"
#include "executor/executor.h"

int64_t weir__client_pool_now(const weir_client_pool *pool)
{
    const weir_executor *executor = pool->options.executor;

    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN ? weir__executor_now(executor)
                                                                   : 0;
}

int weir__client_pool_start(weir_client_pool *pool, weir_promise **timer, int64_t at_ns,
                            weir_task_fn *fn)
{
    int err;

    if (*timer != NULL)
        return 0;
    weir__refs_retain(&pool->refs);
    err =
        weir_schedule(pool->options.executor, at_ns - weir__client_pool_now(pool), fn, pool, timer);
    if (err < 0)
        (void)weir__refs_release(&pool->refs); /* whoever has the lock has another */
    return err;
}

weir_promise *weir__client_pool_fired(weir_promise **timer)
{
    weir_promise *fired = *timer;

    *timer = NULL;
    return fired;
}

void weir__client_pool_stop(weir_client_pool *pool, weir_promise *timer)
{
    if (timer == NULL)
        return;
    (void)weir_promise_cancel(timer);
    weir__executor_wake(pool->options.executor); /* or it would keep the pool until it is due */
    weir_promise_release(timer);
}
