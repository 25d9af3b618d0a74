/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels of a pool, from the connection to the end.
 *
 *      connect -> on_connected -> deliver -> weir__pooled_deliver
 *      check -> (on its loop) on_check -> deliver, or reject
 *      return -> (on its loop) on_return -> finish_return
 *      on_closed, at any time
 *
 * A task on a channel's loop holds a reference to the channel; the pool holds one until it is
 * closed; and the channel owns its weir__pooled, which keeps the pool's memory.
 */
#include <errno.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "base/memory.h"
#include "bootstrap/client_pool.h"
#include "channel/channel.h"
#include "executor/executor.h"
#include "executor/promise.h"

static void free_pooled(void *value)
{
    weir__pooled *pooled = value;

    weir__client_pool_unref(pooled->pool);
    weir__free(pooled);
}

static const weir_attribute key = {.name = "weir.client_pool", .free = free_pooled};

weir__pooled *weir__pooled_of(weir_channel *channel)
{
    return weir_attribute_get(channel, &key);
}

/* ---- delivery ---- */

static void finish_return(weir__pooled *pooled, weir_promise *done);

static void release_channel(void *channel)
{
    weir_channel_release(channel);
}

/* If the promise was cancelled, the channel returns to the pool. */
void weir__pooled_deliver(weir__pooled *pooled, weir_promise *promise)
{
    weir_client_pool *pool = pooled->pool;
    weir_channel *channel = weir_channel_retain(pooled->channel);

    if (weir_promise_succeed_with(promise, weir_channel_retain(channel), release_channel) < 0) {
        weir__mutex_lock(&pool->lock);
        if (pooled->state == WEIR__POOLED_OUT)
            pooled->state = WEIR__POOLED_RETURNING;
        weir__mutex_unlock(&pool->lock);
        finish_return(pooled, NULL);
    }
    weir_channel_release(channel);
}

/* With the lock: the state was CHECKING. */
static void stop_checking(weir_client_pool *pool)
{
    pool->coming--;
    pool->checking--;
}

/* With the lock: the acquisition that gets the channel; NULL if it becomes idle, or has to be
 * closed. */
static weir__acquisition *choose(weir__pooled *pooled, bool *ret_closes)
{
    weir_client_pool *pool = pooled->pool;
    weir__acquisition *acquisition = NULL;

    *ret_closes = pooled->state != WEIR__POOLED_CHECKING; /* already closed */
    if (*ret_closes)
        return NULL;
    stop_checking(pool);
    acquisition = weir__client_pool_next(pool);
    *ret_closes = acquisition == NULL && pool->is_closed;
    if (acquisition != NULL)
        pooled->state = WEIR__POOLED_OUT;
    else if (pool->is_closed)
        weir__pooled_count_out(pooled);
    else
        weir__client_pool_put_idle(pooled);
    pool->stats.acquired += acquisition != NULL;
    return acquisition;
}

/* A healthy channel in CHECKING goes to the first waiting acquisition. The caller holds a
 * reference. */
static void deliver(weir__pooled *pooled)
{
    weir_client_pool *pool = pooled->pool;
    weir__acquisition *acquisition;
    weir_promise *promise;
    bool closes;

    weir__mutex_lock(&pool->lock);
    acquisition = choose(pooled, &closes);
    weir__mutex_unlock(&pool->lock);
    if (closes)
        weir_channel_close(pooled->channel, NULL);
    if (acquisition == NULL)
        return;
    promise = weir__promise_of_extra(acquisition);
    if (pool->options.acquired != NULL)
        pool->options.acquired(pooled->channel, pool->options.user_data);
    weir__pooled_deliver(pooled, promise);
    weir_promise_release(promise);
}

/* ---- on the channel's loop ---- */

/* Calls a function on the channel's loop, or, if that has ended, with an error. */
static void post_to_loop(weir__pooled *pooled, weir__mail_fn *fn)
{
    pooled->mail.fn = fn;
    weir__mailbox_post(&pooled->channel->mailbox, &pooled->mail);
}

/* The channel is not healthy. */
static void reject(weir__pooled *pooled)
{
    weir_client_pool *pool = pooled->pool;

    weir__mutex_lock(&pool->lock);
    pool->stats.unhealthy++;
    if (pooled->state == WEIR__POOLED_CHECKING) {
        stop_checking(pool);
        weir__pooled_count_out(pooled);
    }
    weir__mutex_unlock(&pool->lock);
    weir_channel_close(pooled->channel, NULL);
}

static bool is_healthy(weir__pooled *pooled)
{
    const weir_client_pool_options *options = &pooled->pool->options;

    return weir_channel_is_active(pooled->channel) &&
           (options->healthy == NULL || options->healthy(pooled->channel, options->user_data));
}

static void on_check(weir__mailbox *box, weir__mail *mail, int status)
{
    weir__pooled *pooled = WEIR_CONTAINER_OF(mail, weir__pooled, mail);

    (void)box;
    if (status == 0 && is_healthy(pooled)) {
        deliver(pooled);
    } else {
        reject(pooled);
        weir__client_pool_serve(pooled->pool);
    }
}

/* Goes to the loop only if there are functions to call. */
static void check(weir__pooled *pooled)
{
    const weir_client_pool_options *options = &pooled->pool->options;

    if (options->healthy == NULL && options->acquired == NULL)
        deliver(pooled);
    else
        post_to_loop(pooled, on_check);
}

/* ---- connecting ---- */

/* A channel counted as coming has failed: fails the acquisition that has waited longest. */
static void fail_first(weir_client_pool *pool, int err, const char *detail)
{
    weir__acquisition *acquisition;
    weir_promise *promise;
    bool is_last;

    weir__mutex_lock(&pool->lock);
    pool->channels--;
    pool->alive--;
    pool->coming--;
    pool->stats.failed++;
    is_last = pool->is_closed && pool->alive == 0;
    acquisition = weir__client_pool_next(pool);
    weir__mutex_unlock(&pool->lock);
    if (acquisition != NULL) {
        promise = weir__promise_of_extra(acquisition);
        (void)weir_promise_fail(promise, err, detail);
        weir_promise_release(promise);
    }
    if (is_last)
        (void)weir_promise_succeed(pool->closed, NULL);
}

/* With the lock: removes the channel, in any state. True if the pool is empty now. */
static bool leave(weir__pooled *pooled)
{
    weir_client_pool *pool = pooled->pool;

    if (pooled->state == WEIR__POOLED_IDLE) {
        weir__list_remove(&pooled->link);
        pool->idle_count--;
    }
    if (pooled->state == WEIR__POOLED_CHECKING)
        stop_checking(pool);
    if (pooled->state != WEIR__POOLED_LEAVING)
        pool->channels--;
    pooled->state = WEIR__POOLED_GONE;
    return --pool->alive == 0 && pool->is_closed;
}

static void on_closed(weir_promise *promise, void *arg)
{
    weir__pooled *pooled = arg;
    weir_client_pool *pool = pooled->pool;
    bool is_last;

    (void)promise;
    weir__refs_retain(&pool->refs);
    weir__mutex_lock(&pool->lock);
    is_last = leave(pooled);
    weir__mutex_unlock(&pool->lock);
    weir_channel_release(pooled->channel); /* possibly the last reference */
    if (is_last)
        (void)weir_promise_succeed(pool->closed, NULL);
    weir__client_pool_serve(pool);
    weir__client_pool_unref(pool);
}

/* From here on the channel owns its weir__pooled. */
static int take_in(weir__pooled *pooled, weir_channel *channel)
{
    weir_promise *closed = weir_channel_closed(channel);
    int err = closed != NULL ? weir_attribute_set(channel, &key, pooled) : -ENOMEM;

    if (err < 0)
        return err;
    pooled->channel = weir_channel_retain(channel);
    weir__mutex_lock(&pooled->pool->lock);
    pooled->state = WEIR__POOLED_CHECKING;
    pooled->pool->checking++;
    pooled->pool->stats.created++;
    weir__mutex_unlock(&pooled->pool->lock);
    pooled->listener = (weir_listener){.fn = on_closed, .user_data = pooled};
    weir_promise_listen(closed, &pooled->listener);
    return 0;
}

/* A new channel needs no check. */
static void deliver_new(weir__pooled *pooled)
{
    weir_channel *channel = weir_channel_retain(pooled->channel);
    const weir_client_pool_options *options = &pooled->pool->options;

    if (options->created != NULL)
        options->created(channel, options->user_data);
    deliver(pooled);
    weir_channel_release(channel);
}

static void on_connected(weir_promise *connecting, void *arg)
{
    weir__pooled *pooled = arg;
    weir_client_pool *pool = pooled->pool;
    weir_channel *channel = weir_promise_value(connecting);
    int err = weir_promise_result(connecting);

    weir__refs_retain(&pool->refs);
    weir__mutex_lock(&pool->lock);
    weir__list_remove(&pooled->link);
    weir__mutex_unlock(&pool->lock);
    weir_promise_release(pooled->connecting);
    if (err == 0) {
        err = take_in(pooled, channel);
        if (err < 0)
            weir_channel_abort(channel, NULL);
    }
    if (err < 0) {
        free_pooled(pooled);
        fail_first(pool, err, channel == NULL ? weir_promise_detail(connecting) : NULL);
        weir__client_pool_serve(pool);
    } else {
        deliver_new(pooled);
    }
    weir__client_pool_unref(pool);
}

/* A close cancels the connections in the list; one that is not in it yet is cancelled here. */
static void begin(weir__pooled *pooled, weir_promise *connecting)
{
    weir_client_pool *pool = pooled->pool;
    bool is_closed;

    pooled->connecting = connecting;
    weir__mutex_lock(&pool->lock);
    is_closed = pool->is_closed;
    if (!is_closed)
        weir__list_append(&pool->connecting, &pooled->link);
    weir__mutex_unlock(&pool->lock);
    if (is_closed)
        (void)weir_promise_cancel(connecting);
    pooled->listener = (weir_listener){.fn = on_connected, .user_data = pooled};
    weir_promise_listen(connecting, &pooled->listener);
}

static int connect_one(weir_client_pool *pool)
{
    weir__pooled *pooled = weir__zalloc(sizeof(*pooled));
    weir_promise *connecting;
    int err;

    if (pooled == NULL)
        return -ENOMEM;
    err = weir_client_connect(pool->client, &connecting);
    if (err < 0) {
        weir__free(pooled);
        return err;
    }
    weir__refs_retain(&pool->refs);
    pooled->pool = pool;
    weir__list_init(&pooled->link);
    begin(pooled, connecting);
    return 0;
}

/* A pool that is closed meanwhile releases the client's group only after this. */
static void connect_another(weir_client_pool *pool)
{
    int err = connect_one(pool);
    bool lets_go;

    weir__mutex_lock(&pool->lock);
    pool->starting--;
    lets_go = pool->is_closed && pool->starting == 0;
    weir__mutex_unlock(&pool->lock);
    if (err < 0)
        fail_first(pool, err, NULL);
    if (lets_go)
        weir__client_pool_release_client(pool);
}

/* ---- serving ---- */

/* With the lock: an idle channel for an acquisition without one, retained; or NULL. */
static weir__pooled *call_idle(weir_client_pool *pool)
{
    weir__pooled *idle = NULL;

    if (pool->waiting_count > pool->checking)
        idle = weir__client_pool_take_idle(pool, WEIR__POOLED_CHECKING);
    if (idle != NULL) {
        weir_channel_retain(idle->channel);
        pool->checking++;
        pool->coming++;
    }
    return idle;
}

/* With the lock: true if a channel has to be connected for an acquisition without one. */
static bool call_new(weir_client_pool *pool)
{
    if (pool->waiting_count <= pool->coming || pool->channels >= pool->max || pool->is_closed)
        return false;
    pool->channels++;
    pool->alive++;
    pool->starting++;
    pool->coming++;
    return true;
}

/* One step. False if there was nothing to do. */
static bool serve_one(weir_client_pool *pool)
{
    weir__pooled *idle;
    bool connects;

    weir__mutex_lock(&pool->lock);
    idle = call_idle(pool);
    connects = idle == NULL && call_new(pool);
    weir__mutex_unlock(&pool->lock);
    if (idle != NULL) {
        weir_channel *channel = idle->channel;

        check(idle);
        weir_channel_release(channel);
    }
    if (connects)
        connect_another(pool);
    return idle != NULL || connects;
}

void weir__client_pool_serve(weir_client_pool *pool)
{
    while (serve_one(pool))
        ;
}

/* ---- returning ---- */

/* The caller holds a reference to the channel. */
static void finish_return(weir__pooled *pooled, weir_promise *done)
{
    weir_client_pool *pool = pooled->pool;
    bool stays = weir_channel_is_active(pooled->channel);

    weir__mutex_lock(&pool->lock);
    stays = stays && !pool->is_closed && pooled->state == WEIR__POOLED_RETURNING &&
            (pool->idle_count < pool->max_idle || pool->waiting_count > pool->checking);
    if (stays)
        weir__client_pool_put_idle(pooled);
    else if (pooled->state == WEIR__POOLED_RETURNING)
        weir__pooled_count_out(pooled);
    weir__mutex_unlock(&pool->lock);
    if (!stays)
        weir_channel_close(pooled->channel, NULL);
    if (done != NULL)
        (void)weir_promise_succeed(done, NULL);
    weir__client_pool_serve(pool);
}

static void on_return(weir__mailbox *box, weir__mail *mail, int status)
{
    weir__pooled *pooled = WEIR_CONTAINER_OF(mail, weir__pooled, mail);
    const weir_client_pool_options *options = &pooled->pool->options;
    weir_promise *done = pooled->done;

    (void)box;
    if (status == 0)
        options->released(pooled->channel, options->user_data);
    finish_return(pooled, done);
    weir_promise_release(done);
}

void weir__pooled_return(weir__pooled *pooled, weir_promise *done)
{
    if (pooled->pool->options.released == NULL) {
        finish_return(pooled, done);
        return;
    }
    pooled->done = done != NULL ? weir_promise_retain(done) : NULL;
    post_to_loop(pooled, on_return);
}
