/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timers of a pool: one for all waiting acquisitions, and one for all idle channels. Each is
 * set for the first one, then for the next. So a pool has at most two, however often channels are
 * acquired and returned: a timer stopped from another thread stays in its executor until that wakes
 * up, so one per acquisition would accumulate.
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
        (void)weir__refs_release(
            &pool->refs); /* not the last: the holder of the lock has another */
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
    weir__executor_wake(pool->options.executor); /* or it would hold the pool until it fires */
    weir_promise_release(timer);
}
