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

/*
 * With the lock, so that the timer does not fire before its promise is where a close looks for it.
 * The timer keeps the pool. Without one, the next channel that becomes idle tries again.
 */
static void start_sweep(weir_client_pool *pool, int64_t delay_ns)
{
    weir__refs_retain(&pool->refs);
    if (weir_schedule(pool->options.executor, delay_ns, &pool->sweep, on_sweep, pool) < 0)
        (void)weir__refs_release(&pool->refs); /* whoever has the lock has another */
}

/* With the lock: one that was idle too long; or NULL, and then the timer runs for the next. */
static weir_channel *sweep_one(weir_client_pool *pool, int64_t now_ns)
{
    int64_t timeout_ns = pool->options.idle_timeout_ns;
    weir_channel *channel = weir__client_pool_take_old(pool, now_ns - timeout_ns);

    if (channel == NULL && !weir__list_is_empty(&pool->idle))
        start_sweep(pool, of_link(pool->idle.next)->idle_since_ns + timeout_ns - now_ns);
    return channel;
}

static void on_sweep(void *arg, int status)
{
    weir_client_pool *pool = arg;
    int64_t now_ns = weir__executor_now(pool->options.executor);
    weir_promise *self;
    weir_channel *channel;

    weir__mutex_lock(&pool->lock);
    self = status == 0 ? pool->sweep : NULL;
    if (status == 0)
        pool->sweep = NULL;
    channel = status == 0 ? sweep_one(pool, now_ns) : NULL;
    weir__mutex_unlock(&pool->lock);
    while (channel != NULL) {
        weir_channel_close(channel, NULL);
        weir_channel_release(channel);
        weir__mutex_lock(&pool->lock);
        channel = sweep_one(pool, now_ns);
        weir__mutex_unlock(&pool->lock);
    }
    weir_promise_release(self);
    weir__client_pool_unref(pool);
}

void weir__client_pool_put_idle(weir__pooled *pooled)
{
    weir_client_pool *pool = pooled->pool;

    pooled->state = WEIR__POOLED_IDLE;
    pooled->idle_since_ns = weir__executor_now(pool->options.executor);
    weir__list_append(&pool->idle, &pooled->link);
    pool->idle_count++;
    if (pool->options.idle_timeout_ns > 0 && pool->sweep == NULL)
        start_sweep(pool, pool->options.idle_timeout_ns);
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
