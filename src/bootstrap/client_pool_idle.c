/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle channels of a pool, the longest idle first. One timer closes the first when it times
 * out; there is none if no channel is idle.
 */
#include "bootstrap/client_pool.h"

#include "executor/executor.h"

static weir__pooled *of_link(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, weir__pooled, link);
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

/* With the lock. Without a timer, the next channel that becomes idle tries again. */
static void start_sweep(weir_client_pool *pool)
{
    int64_t since_ns = of_link(pool->idle.next)->idle_since_ns;

    (void)weir__client_pool_start(
        pool, &pool->sweep, weir__deadline(since_ns, pool->options.idle_timeout_ns), on_sweep);
}

/* A channel that was idle too long; or NULL, with the timer set for the next. */
static weir_channel *sweep_one(weir_client_pool *pool)
{
    int64_t now_ns = weir__client_pool_now(pool);
    weir_channel *channel;

    weir__mutex_lock(&pool->lock);
    channel = weir__client_pool_take_old(pool, now_ns - pool->options.idle_timeout_ns);
    if (channel == NULL && !weir__list_is_empty(&pool->idle) && !pool->is_closed)
        start_sweep(pool);
    weir__mutex_unlock(&pool->lock);
    return channel;
}

static void on_sweep(void *arg, int status)
{
    weir_client_pool *pool = arg;
    weir_promise *self;
    weir_channel *channel;

    weir__mutex_lock(&pool->lock);
    self = weir__client_pool_fired(&pool->sweep);
    weir__mutex_unlock(&pool->lock);
    while (status == 0 && (channel = sweep_one(pool)) != NULL) {
        weir_channel_close(channel, NULL);
        weir_channel_release(channel);
    }
    weir_promise_release(self);
    weir__client_pool_unref(pool);
}

void weir__client_pool_put_idle(weir__pooled *pooled)
{
    weir_client_pool *pool = pooled->pool;

    pooled->state = WEIR__POOLED_IDLE;
    pooled->idle_since_ns = weir__client_pool_now(pool);
    weir__list_append(&pool->idle, &pooled->link);
    pool->idle_count++;
    if (pool->options.idle_timeout_ns > 0)
        start_sweep(pool);
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
        weir__pooled_count_out(pooled); /* its close is about to be reported */
    }
    return NULL;
}
