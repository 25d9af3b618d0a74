/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between the loop of an exchange and other threads: requests to the loop, and callbacks to
 * the thread of the route's handler. Each direction is a set of bits and one task, which is queued
 * by the thread that sets the first bit; so neither needs memory nor fails for lack of it.
 */
#include <assert.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "base/log.h"
#include "protocol/http/exchange.h"
#include "protocol/http/post.h"

/* ---- to the loop ---- */

/* On the loop, or instead of it if it has ended. */
static void on_loop(void *arg, int status)
{
    const uint32_t bits = WEIR__EXCHANGE_SCHEDULED | WEIR__EXCHANGE_READ | WEIR__EXCHANGE_CHECK |
                          WEIR__EXCHANGE_RELEASED;
    weir_http_exchange *exchange = arg;
    uint32_t state = atomic_load_explicit(&exchange->state, memory_order_relaxed);

    (void)status; /* if the loop ends, the exchange is detached */
    /* Becomes a user while it takes the bits. */
    while (!atomic_compare_exchange_weak_explicit(&exchange->state, &state, (state & ~bits) + 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    if (state & WEIR__EXCHANGE_READ)
        weir__http_content_read(exchange);
    if (state & WEIR__EXCHANGE_CHECK)
        weir__http_exchange_check(exchange);
    weir__http_exchange_settle(exchange);
}

static void on_global(void *arg, int status);

static int post_to_global(weir_http_exchange *exchange)
{
    weir_task_init(&exchange->to_loop, on_global, exchange);
    return weir_execute_task(weir_executor_global(), &exchange->to_loop);
}

/* The queue of the loop was full, or the loop has ended: what is left of its channels is done by
 * the global executor as well (executor/mailbox.c), so nothing runs beside it. */
static void on_global(void *arg, int status)
{
    weir_http_exchange *exchange = arg;
    int err;

    weir_task_init(&exchange->to_loop, on_loop, exchange);
    err = weir__http_post(exchange->loop, &exchange->to_loop);
    if (err == WEIR_EFULL && status == 0)
        err = post_to_global(exchange);
    if (err < 0)
        on_loop(exchange, err);
}

void weir__http_exchange_post(weir_http_exchange *exchange)
{
    int err;

    weir_task_init(&exchange->to_loop, on_loop, exchange);
    err = weir__http_post(exchange->loop, &exchange->to_loop);
    if (err < 0)
        err = post_to_global(exchange);
    if (err < 0)
        on_loop(exchange, err);
}

void weir__http_exchange_call_loop(weir_http_exchange *exchange, uint32_t bit)
{
    uint32_t state;

    if (!exchange->is_shared || weir_in_executor(exchange->loop)) {
        if (bit == WEIR__EXCHANGE_READ)
            weir__http_content_read(exchange);
        else
            weir__http_exchange_check(exchange);
        return;
    }
    state = atomic_fetch_or_explicit(&exchange->state, bit | WEIR__EXCHANGE_SCHEDULED,
                                     memory_order_acq_rel);
    if (!(state & WEIR__EXCHANGE_SCHEDULED))
        weir__http_exchange_post(exchange);
}

/* ---- one-shot callbacks ---- */

static void free_callback(struct weir__exchange_callback_slot *slot,
                          struct weir__exchange_callback *callback)
{
    if (callback == &slot->own)
        atomic_store_explicit(&slot->is_own_used, false, memory_order_release);
    else
        weir_memory_free(callback);
}

/* Fails only if there is no memory for a second callback while the first is being replaced. */
static bool set_callback(struct weir__exchange_callback_slot *slot, weir_http_exchange_fn *fn,
                         void *user_data)
{
    struct weir__exchange_callback *callback = NULL;

    if (fn != NULL) {
        /* Acquire: pairs with free_callback, whose caller has read the old contents. */
        if (!atomic_exchange_explicit(&slot->is_own_used, true, memory_order_acquire))
            callback = &slot->own;
        else
            callback = weir_memory_alloc(sizeof(*callback));
        if (callback == NULL)
            return false;
        *callback = (struct weir__exchange_callback){fn, user_data};
    }
    callback = atomic_exchange_explicit(&slot->set, callback, memory_order_acq_rel);
    if (callback != NULL)
        free_callback(slot, callback);
    return true;
}

static void call_callback(weir_http_exchange *exchange, struct weir__exchange_callback_slot *slot)
{
    struct weir__exchange_callback *callback =
        atomic_exchange_explicit(&slot->set, NULL, memory_order_acq_rel);
    struct weir__exchange_callback copy;

    if (callback == NULL)
        return;
    copy = *callback;
    free_callback(slot, callback);
    copy.fn(exchange, copy.user_data);
}

void weir__exchange_callback_slot_deinit(struct weir__exchange_callback_slot *slot)
{
    (void)set_callback(slot, NULL, NULL);
}

static void set_and_check(weir_http_exchange *exchange, struct weir__exchange_callback_slot *slot,
                          weir_http_exchange_fn *fn, void *user_data)
{
    if (!set_callback(slot, fn, user_data)) {
        weir__error_limited("http", exchange->route->given.path,
                            "no memory for a callback: aborting");
        weir_http_exchange_abort(exchange); /* which calls the one that is set */
    }
    if (fn != NULL)
        weir__http_exchange_call_loop(exchange, WEIR__EXCHANGE_CHECK);
}

void weir_http_exchange_on_lost(weir_http_exchange *exchange, weir_http_exchange_fn *fn,
                                void *user_data)
{
    weir__http_exchange_share(exchange); /* the first time on the loop, as retain */
    set_and_check(exchange, &exchange->on_lost, fn, user_data);
}

void weir_http_exchange_on_writable(weir_http_exchange *exchange, weir_http_exchange_fn *fn,
                                    void *user_data)
{
    weir__http_exchange_share(exchange);
    set_and_check(exchange, &exchange->on_writable, fn, user_data);
}

/* ---- to the handler's thread ---- */

/* No callback is called when nobody else has a reference: its data may be gone. */
static bool has_other_users(const weir_http_exchange *exchange)
{
    return (atomic_load_explicit(&exchange->state, memory_order_acquire) & WEIR__EXCHANGE_USERS) >
           1;
}

static void deliver_piece(weir_http_exchange *exchange)
{
    weir_msg *piece = atomic_exchange_explicit(&exchange->piece, NULL, memory_order_acq_rel);

    if (piece != NULL && exchange->content_fn != NULL && has_other_users(exchange))
        exchange->content_fn(exchange, piece, 0, exchange->content_user_data);
    else
        weir_msg_release(piece);
}

static void on_handler(void *arg, int status)
{
    weir_http_exchange *exchange = arg;
    uint32_t events = atomic_exchange_explicit(&exchange->events, 0, memory_order_acq_rel);

    (void)status; /* callbacks are called even if the executor ends: they free what is theirs */
    if (events & WEIR__EXCHANGE_EVENT_RUN)
        weir__http_exchange_run(exchange);
    if (events & WEIR__EXCHANGE_EVENT_PIECE)
        deliver_piece(exchange);
    if ((events & WEIR__EXCHANGE_EVENT_LAST) && exchange->content_fn != NULL &&
        has_other_users(exchange))
        exchange->content_fn(exchange, NULL, exchange->content_err, exchange->content_user_data);
    if ((events & WEIR__EXCHANGE_EVENT_WRITABLE) && has_other_users(exchange))
        call_callback(exchange, &exchange->on_writable);
    if ((events & WEIR__EXCHANGE_EVENT_LOST) && has_other_users(exchange))
        call_callback(exchange, &exchange->on_lost);
    weir_http_exchange_release(exchange);
}

/* Queues `to_handler`, which is a user. The loop may add one to an exchange that has lost its
 * users: only the loop frees it. */
static int post_events(weir_http_exchange *exchange, weir_executor *executor)
{
    int err;

    atomic_fetch_add_explicit(&exchange->state, 1, memory_order_relaxed);
    weir_task_init(&exchange->to_handler, on_handler, exchange);
    err = weir_execute_task(executor, &exchange->to_handler);
    if (err < 0)
        atomic_fetch_sub_explicit(&exchange->state, 1, memory_order_relaxed);
    return err;
}

int weir__http_exchange_dispatch(weir_http_exchange *exchange, weir_executor *executor)
{
    int err;

    weir__http_exchange_share(exchange);
    exchange->executor = executor;
    atomic_store_explicit(&exchange->events,
                          WEIR__EXCHANGE_EVENT_RUN | WEIR__EXCHANGE_EVENT_SCHEDULED,
                          memory_order_relaxed);
    err = post_events(exchange, executor);
    if (err < 0) {
        atomic_store_explicit(&exchange->events, 0, memory_order_relaxed);
        exchange->executor = NULL;
    }
    return err;
}

void weir__http_exchange_signal(weir_http_exchange *exchange, uint32_t events)
{
    weir_executor *executor = exchange->executor != NULL ? exchange->executor : exchange->loop;
    uint32_t before;
    int err;

    if (!exchange->is_shared || exchange->use == WEIR__EXCHANGE_DROPPED)
        return; /* there is no user to be notified */
    before = atomic_fetch_or_explicit(&exchange->events, events | WEIR__EXCHANGE_EVENT_SCHEDULED,
                                      memory_order_acq_rel);
    if (before & WEIR__EXCHANGE_EVENT_SCHEDULED)
        return;
    err = post_events(exchange, executor);
    if (err < 0)
        err = post_events(exchange, weir_executor_global());
    if (err < 0) {
        weir__error_limited("http", exchange->route->given.path, "a callback was not called: %s",
                            weir_error_text(err));
        atomic_store_explicit(&exchange->events, 0, memory_order_relaxed);
    }
}

void weir__http_exchange_check(weir_http_exchange *exchange)
{
    bool is_over = exchange->connection == NULL;
    uint32_t events = 0;

    if ((is_over || exchange->has_ended_response || weir__http_exchange_has_room(exchange)) &&
        atomic_load_explicit(&exchange->on_writable.set, memory_order_relaxed) != NULL)
        events |= WEIR__EXCHANGE_EVENT_WRITABLE;
    if (is_over && !exchange->has_ended_response &&
        atomic_load_explicit(&exchange->on_lost.set, memory_order_relaxed) != NULL)
        events |= WEIR__EXCHANGE_EVENT_LOST;
    if (events != 0)
        weir__http_exchange_signal(exchange, events);
}
