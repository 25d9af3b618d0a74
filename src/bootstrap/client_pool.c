/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of a pool: creation, acquisition, return and close.
 */
#include "bootstrap/client_pool.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/client.h"
#include "bootstrap/transport_for.h"
#include "executor/executor.h"
#include "executor/promise.h"

#define MAX 16
#define UNLIMITED INT32_MAX
#define MAX_WAITING 1024
#define ACQUIRE_TIMEOUT_NS weir_seconds(30)

/* ---- creation ---- */

static int read_options(const weir_client_pool_options *given,
                        weir_client_pool_options *ret_options, weir_client_options *ret_client)
{
    weir_client_pool_options *options = ret_options;
    int err = weir__options_read(options, sizeof(*options), given);
    bool is_name;

    if (err < 0)
        return err;
    if (options->client == NULL)
        return weir__options_reject("client pool", NULL, ".client is required");
    if (options->executor != NULL && options->executor->type->run_inline != NULL)
        return weir__options_reject("client pool", NULL, ".executor has no timers");
    err = weir__options_check("client pool", NULL, WEIR__OPTION_FROM(options, max, WEIR_OFF),
                              WEIR__OPTION_FROM(options, max_idle, 0),
                              WEIR__OPTION_FROM(options, max_waiting, WEIR_OFF),
                              WEIR__OPTION_FROM(options, acquire_timeout_ns, WEIR_OFF),
                              WEIR__OPTION_FROM(options, idle_timeout_ns, WEIR_OFF));
    if (err == 0)
        err = weir__client_options_read(options->client, ret_client);
    return err < 0 ? err : weir__client_check_address(ret_client, &is_name);
}

static void apply(weir_client_pool *pool, const weir_client_pool_options *options)
{
    pool->options = *options;
    pool->options.client = NULL; /* owned by the caller */
    pool->max = options->max > 0 ? (size_t)options->max : MAX;
    if (options->max == WEIR_OFF)
        pool->max = UNLIMITED;
    pool->max_idle = options->max_idle > 0 ? (size_t)options->max_idle : pool->max;
    pool->max_waiting = options->max_waiting > 0 ? (size_t)options->max_waiting : MAX_WAITING;
    if (options->max_waiting == WEIR_OFF)
        pool->max_waiting = 0;
    if (options->acquire_timeout_ns == 0)
        pool->options.acquire_timeout_ns = ACQUIRE_TIMEOUT_NS;
    if (options->executor == NULL)
        pool->options.executor = weir_executor_global();
}

void weir__client_pool_release_client(weir_client_pool *pool)
{
    weir__client_options_release(pool->client);
}

int weir_client_pool_create(const weir_client_pool_options *given, weir_client_pool **ret_pool)
{
    weir_client_pool_options options;
    weir_client_options client;
    weir_client_pool *pool;
    int err = read_options(given, &options, &client);

    if (err < 0)
        return err;
    pool = weir__zalloc(sizeof(*pool));
    if (pool == NULL)
        return -ENOMEM;
    err = weir__client_options_copy(&client, &pool->client);
    if (err == 0)
        err = weir_promise_create(NULL, &pool->closed);
    if (err < 0) {
        weir__free(pool->client);
        weir__free(pool);
        return err;
    }
    apply(pool, &options);
    weir_executor_retain(pool->options.executor);
    weir__client_options_retain(pool->client);
    weir__refs_init(&pool->refs);
    weir__refs_init(&pool->users);
    weir__mutex_init(&pool->lock);
    weir__list_init(&pool->connecting);
    weir__list_init(&pool->idle);
    weir__list_init(&pool->waiting);
    *ret_pool = pool;
    return 0;
}

void weir__client_pool_unref(weir_client_pool *pool)
{
    if (!weir__refs_release(&pool->refs))
        return;
    weir__mutex_deinit(&pool->lock);
    weir_promise_release(pool->closed);
    weir_executor_release(pool->options.executor);
    weir__free(pool->client);
    weir__free(pool);
}

weir_client_pool *weir_client_pool_retain(weir_client_pool *pool)
{
    weir__refs_retain(&pool->users);
    return pool;
}

void weir_client_pool_release(weir_client_pool *pool)
{
    if (pool == NULL || !weir__refs_release(&pool->users))
        return;
    weir_client_pool_close(pool);
    weir__client_pool_unref(pool);
}

/* ---- acquisitions ---- */

static const char *refusal(int err)
{
    return err == WEIR_ECLOSED ? "the pool is closed"
           : err == WEIR_EFULL ? "too many acquisitions are waiting"
           : err == -ETIMEDOUT ? "no channel of the pool became available in time"
                               : NULL;
}

static weir_promise *promise_of(weir__acquisition *acquisition)
{
    return weir__promise_of_extra(acquisition);
}

/* With the lock: removes it from the queue; false if it was not there. */
static bool dequeue(weir_client_pool *pool, weir__acquisition *acquisition)
{
    if (weir__list_is_empty(&acquisition->link))
        return false;
    weir__list_remove(&acquisition->link);
    pool->waiting_count--;
    return true;
}

/* A cancelled promise is complete: releasing it calls no listener, so it may happen under the lock.
 */
weir__acquisition *weir__client_pool_next(weir_client_pool *pool)
{
    while (!weir__list_is_empty(&pool->waiting)) {
        weir__acquisition *acquisition =
            WEIR_CONTAINER_OF(pool->waiting.next, weir__acquisition, link);

        (void)dequeue(pool, acquisition);
        if (weir_promise_set_uncancellable(promise_of(acquisition)))
            return acquisition;
        weir_promise_release(promise_of(acquisition));
    }
    return NULL;
}

/* The promise is complete: removes it from the queue if it was cancelled. */
static void on_acquired(weir_promise *promise, void *arg)
{
    weir__acquisition *acquisition = arg;
    weir_client_pool *pool = acquisition->pool;
    bool waited;

    weir__mutex_lock(&pool->lock);
    waited = dequeue(pool, acquisition);
    weir__mutex_unlock(&pool->lock);
    if (waited)
        weir_promise_release(promise);
    weir__client_pool_unref(pool);
}

static weir__acquisition *first_waiting(weir_client_pool *pool)
{
    return WEIR_CONTAINER_OF(pool->waiting.next, weir__acquisition, link);
}

static void on_alarm(void *arg, int status);

/* With the lock. */
static int set_alarm(weir_client_pool *pool, int64_t at_ns)
{
    return at_ns < WEIR_NEVER ? weir__client_pool_start(pool, &pool->alarm, at_ns, on_alarm) : 0;
}

/*
 * Takes an acquisition that has timed out; or returns NULL and sets the alarm for the next. If the
 * alarm cannot be set, all waiting acquisitions fail with that error.
 */
static weir__acquisition *take_late(weir_client_pool *pool, int *ret_err)
{
    int64_t now_ns = weir__client_pool_now(pool);
    weir__acquisition *late = NULL;

    weir__mutex_lock(&pool->lock);
    if (!weir__list_is_empty(&pool->waiting) && !pool->is_closed) {
        late = first_waiting(pool);
        *ret_err = late->deadline_ns <= now_ns ? -ETIMEDOUT : set_alarm(pool, late->deadline_ns);
        if (*ret_err < 0)
            (void)dequeue(pool, late);
        else
            late = NULL;
    }
    weir__mutex_unlock(&pool->lock);
    return late;
}

/* A cancelled alarm is not set again: its executor ends, or the pool is closed. */
static void on_alarm(void *arg, int status)
{
    weir_client_pool *pool = arg;
    weir__acquisition *late;
    weir_promise *self;
    int err;

    weir__mutex_lock(&pool->lock);
    self = weir__client_pool_fired(&pool->alarm);
    weir__mutex_unlock(&pool->lock);
    while (status == 0 && (late = take_late(pool, &err)) != NULL) {
        (void)weir_promise_fail(promise_of(late), err, refusal(err));
        weir_promise_release(promise_of(late));
    }
    weir_promise_release(self);
    weir__client_pool_unref(pool);
}

/* With the lock: acquisitions for which a channel is coming, or can be connected, do not count. */
static bool is_full(const weir_client_pool *pool)
{
    size_t free_count = pool->max > pool->channels ? pool->max - pool->channels : 0;

    return pool->waiting_count >= pool->coming + pool->idle_count + free_count + pool->max_waiting;
}

static int64_t deadline_of(const weir_client_pool *pool)
{
    if (pool->options.acquire_timeout_ns == WEIR_OFF)
        return WEIR_NEVER;
    return weir__deadline(weir__client_pool_now(pool), pool->options.acquire_timeout_ns);
}

static int enqueue(weir_client_pool *pool, weir__acquisition *acquisition)
{
    int err;

    weir__mutex_lock(&pool->lock);
    acquisition->deadline_ns = deadline_of(pool);
    if (pool->is_closed)
        err = WEIR_ECLOSED;
    else if (is_full(pool))
        err = WEIR_EFULL;
    else
        err = set_alarm(pool, acquisition->deadline_ns);
    if (err == 0) {
        weir_promise_retain(promise_of(acquisition));
        weir__list_append(&pool->waiting, &acquisition->link);
        pool->waiting_count++;
    }
    weir__mutex_unlock(&pool->lock);
    return err;
}

static void wait_for_one(weir_client_pool *pool, weir_promise *promise)
{
    weir__acquisition *acquisition = weir__promise_extra(promise);
    int err;

    weir__refs_retain(&pool->refs);
    acquisition->pool = pool;
    weir__list_init(&acquisition->link);
    acquisition->listener = (weir_listener){.fn = on_acquired, .user_data = acquisition};
    weir_promise_listen(promise, &acquisition->listener);
    err = enqueue(pool, acquisition);
    if (err < 0)
        (void)weir_promise_fail(promise, err, refusal(err));
    else
        weir__client_pool_serve(pool);
}

/* An idle channel is acquired at once if there are no functions to call on its loop. */
static weir__pooled *take_at_once(weir_client_pool *pool)
{
    weir__pooled *pooled = NULL;

    if (pool->options.healthy != NULL || pool->options.acquired != NULL)
        return NULL;
    weir__mutex_lock(&pool->lock);
    if (pool->waiting_count == 0)
        pooled = weir__client_pool_take_idle(pool, WEIR__POOLED_OUT);
    if (pooled != NULL) {
        pool->stats.acquired++;
        weir_channel_retain(pooled->channel);
    }
    weir__mutex_unlock(&pool->lock);
    return pooled;
}

int weir_client_pool_acquire(weir_client_pool *pool, weir_executor *executor,
                             weir_promise **ret_acquiring)
{
    weir_promise *promise = weir__promise_create_with(executor, sizeof(weir__acquisition));
    weir__pooled *pooled;

    if (promise == NULL)
        return -ENOMEM;
    pooled = take_at_once(pool);
    if (pooled != NULL) {
        weir_channel *channel = pooled->channel;

        weir__pooled_deliver(pooled, promise);
        weir_channel_release(channel);
    } else {
        wait_for_one(pool, promise);
    }
    *ret_acquiring = promise;
    return 0;
}

/* ---- returning ---- */

/* 0 if the channel returns to the pool; WEIR_ECLOSED if it is closed. */
static int claim_back(weir_client_pool *pool, weir__pooled *pooled)
{
    int err = 0;

    weir__mutex_lock(&pool->lock);
    if (pooled->state == WEIR__POOLED_OUT)
        pooled->state = WEIR__POOLED_RETURNING;
    else
        err = pooled->state < WEIR__POOLED_LEAVING ? -EALREADY : WEIR_ECLOSED;
    weir__mutex_unlock(&pool->lock);
    return err;
}

static void return_channel(weir_client_pool *pool, weir__pooled *pooled, weir_promise *done)
{
    int err = claim_back(pool, pooled);

    if (err == 0)
        weir__pooled_return(pooled, done);
    else if (done != NULL && err == WEIR_ECLOSED)
        (void)weir_promise_succeed(done, NULL);
    else if (done != NULL)
        (void)weir_promise_fail(done, err, "the channel was already returned");
}

void weir_client_pool_return(weir_client_pool *pool, weir_channel *channel, weir_promise *done)
{
    weir__pooled *pooled = weir__pooled_of(channel);

    if (pooled != NULL && pooled->pool == pool) {
        return_channel(pool, pooled, done);
        return;
    }
    weir_channel_close(channel, NULL);
    if (done != NULL)
        (void)weir_promise_fail(done, -EINVAL, "the channel is not from this pool");
}

/* ---- closing ---- */

static void fail_waiting(weir_client_pool *pool)
{
    weir__acquisition *acquisition;

    do {
        weir__mutex_lock(&pool->lock);
        acquisition = weir__client_pool_next(pool);
        weir__mutex_unlock(&pool->lock);
        if (acquisition != NULL) {
            (void)weir_promise_fail(promise_of(acquisition), WEIR_ECLOSED, refusal(WEIR_ECLOSED));
            weir_promise_release(promise_of(acquisition));
        }
    } while (acquisition != NULL);
}

static void close_idle(weir_client_pool *pool)
{
    weir_channel *channel;

    do {
        weir__mutex_lock(&pool->lock);
        channel = weir__client_pool_take_old(pool, INT64_MAX);
        weir__mutex_unlock(&pool->lock);
        if (channel != NULL)
            weir_channel_close(channel, NULL);
        weir_channel_release(channel);
    } while (channel != NULL);
}

static void cancel_connecting(weir_client_pool *pool)
{
    weir_promise *connecting;

    do {
        weir__list *link;

        weir__mutex_lock(&pool->lock);
        link = weir__list_pop(&pool->connecting);
        connecting =
            link != NULL
                ? weir_promise_retain(WEIR_CONTAINER_OF(link, weir__pooled, link)->connecting)
                : NULL;
        weir__mutex_unlock(&pool->lock);
        if (connecting != NULL)
            (void)weir_promise_cancel(connecting);
        weir_promise_release(connecting);
    } while (connecting != NULL);
}

void weir_client_pool_close(weir_client_pool *pool)
{
    bool was_closed, is_empty, lets_go;
    weir_promise *alarm, *sweep;

    weir__mutex_lock(&pool->lock);
    was_closed = pool->is_closed;
    pool->is_closed = true;
    is_empty = pool->alive == 0;
    lets_go = pool->starting == 0;
    alarm = weir__client_pool_fired(&pool->alarm);
    sweep = weir__client_pool_fired(&pool->sweep);
    weir__mutex_unlock(&pool->lock);
    if (was_closed)
        return;
    weir__refs_retain(&pool->refs); /* a listener may release the pool */
    weir__client_pool_stop(pool, alarm);
    weir__client_pool_stop(pool, sweep);
    fail_waiting(pool);
    cancel_connecting(pool);
    close_idle(pool);
    if (is_empty)
        (void)weir_promise_succeed(pool->closed, NULL);
    if (lets_go)
        weir__client_pool_release_client(pool);
    weir__client_pool_unref(pool);
}

bool weir__client_pool_is_closed(weir_client_pool *pool)
{
    bool is_closed;

    weir__mutex_lock(&pool->lock);
    is_closed = pool->is_closed;
    weir__mutex_unlock(&pool->lock);
    return is_closed;
}

weir_promise *weir_client_pool_closed(weir_client_pool *pool)
{
    return pool->closed;
}

void weir_client_pool_read_stats(weir_client_pool *pool, weir_client_pool_stats *ret_stats)
{
    weir__mutex_lock(&pool->lock);
    *ret_stats = pool->stats;
    ret_stats->channels = pool->channels;
    ret_stats->idle = pool->idle_count;
    ret_stats->waiting = pool->waiting_count;
    weir__mutex_unlock(&pool->lock);
}
