/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle channels of a pool: who has been idle longest stands first, and is closed by a timer
 * when that was too long. There is one timer, for the first of them, and none if none is idle.
 */
#include <weir/schedule.h>

#include "bootstrap/client_pool.h"
#include "executor/executor.h"

static weir__pooled *of_link(weir__list *link)
{
    return container_of(link, weir__pooled, link);
}

weir_channel *weir__client_pool_take_old(weir_client_pool *pool, int64_t since_ns)
{
    weir__pooled *pooled = of_link(pool->idle.next);

    if (weir__list_is_empty(&pool->idle) || pooled->idle_since_ns > since_ns)
        return NULL;
    weir__list_remove(&pooled->link);
    pool->idle_count--;
    weir__pooled_count_out(pooled);
    return weir_channel_retain(pooled->channel);
}

static void on_sweep(void *arg, int status);

/* The timer keeps the pool, and the pool the timer's promise, so that a close can stop it. */
static void start_sweep(weir_client_pool *pool, int64_t delay_ns)
{
    weir_promise *sweep = NULL, *old;
    bool is_closed;

    weir__refs_retain(&pool->refs);
    if (weir_schedule(pool->options.executor, delay_ns, &sweep, on_sweep, pool) < 0)
        weir__client_pool_unref(pool); /* the next that becomes idle tries again */
    weir__mutex_lock(&pool->lock);
    is_closed = pool->is_closed;
    old = is_closed ? sweep : pool->sweep;
    pool->sweep = is_closed ? NULL : sweep;
    pool->sweeps = sweep != NULL;
    weir__mutex_unlock(&pool->lock);
    if (is_closed && sweep != NULL)
        (void)weir_promise_cancel(sweep);
    weir_promise_release(old);
}

/* With the lock: how long until the next has been idle too long; WEIR_NEVER if none is. */
static int64_t next_sweep(weir_client_pool *pool, int64_t now_ns)
{
    if (weir__list_is_empty(&pool->idle))
        return WEIR_NEVER;
    return of_link(pool->idle.next)->idle_since_ns + pool->options.idle_timeout_ns - now_ns;
}

static void on_sweep(void *arg, int status)
{
    weir_client_pool *pool = arg;
    int64_t now_ns = weir__executor_now(pool->options.executor), left_ns = WEIR_NEVER;
    weir_channel *channel = NULL;

    do {
        weir__mutex_lock(&pool->lock);
        if (status == 0)
            channel = weir__client_pool_take_old(pool, now_ns - pool->options.idle_timeout_ns);
        if (channel == NULL && status == 0) {
            left_ns = next_sweep(pool, now_ns);
            pool->sweeps = left_ns != WEIR_NEVER;
        }
        weir__mutex_unlock(&pool->lock);
        if (channel != NULL)
            weir_channel_close(channel, NULL);
        weir_channel_release(channel);
    } while (channel != NULL);
    if (left_ns != WEIR_NEVER)
        start_sweep(pool, left_ns);
    weir__client_pool_unref(pool);
}

bool weir__client_pool_put_idle(weir__pooled *pooled)
{
    weir_client_pool *pool = pooled->pool;
    bool starts = pool->options.idle_timeout_ns > 0 && !pool->sweeps;

    pooled->state = WEIR__POOLED_IDLE;
    pooled->idle_since_ns = weir__executor_now(pool->options.executor);
    weir__list_append(&pool->idle, &pooled->link);
    pool->idle_count++;
    pool->sweeps = pool->sweeps || starts;
    return starts;
}

weir__pooled *weir__client_pool_take_idle(weir_client_pool *pool, enum weir__pooled_state state)
{
    while (!weir__list_is_empty(&pool->idle)) {
        bool fifo = pool->options.order == WEIR_CLIENT_POOL_FIFO;
        weir__pooled *pooled = of_link(fifo ? pool->idle.next : pool->idle.previous);

        weir__list_remove(&pooled->link);
        pool->idle_count--;
        if (weir_channel_is_active(pooled->channel)) {
            pooled->state = state;
            return pooled;
        }
        weir__pooled_count_out(pooled); /* it is about to tell that it is closed */
    }
    return NULL;
}

void weir__client_pool_sweep(weir_client_pool *pool)
{
    start_sweep(pool, pool->options.idle_timeout_ns);
}
