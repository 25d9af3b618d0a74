/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges: their lifecycle, calls between the loop and other threads, accessors.
 */
#include "protocol/http/exchange.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <weir/http_uri.h>
#include <weir/memory.h>

#include "base/no_stack_protector.h"
#include "base/refcount.h"
#include "protocol/http/blocking_routes.h"
#include "protocol/http/client_address.h"

static const weir__mailbox_type loop_calls, handler_events;

static void call_loop(weir_http_exchange *exchange, uint32_t call);

/* ---- lifecycle ---- */

WEIR__NO_STACK_PROTECTOR
int weir__http_exchange_create(struct weir__exchange_connection *connection,
                               weir_http_request *request, size_t extra,
                               weir_http_exchange **ret_exchange)
{
    const weir__http_route_tree *tree = weir__http_router_tree(connection->router);
    size_t values = weir__http_route_tree_max_parameters(tree) * sizeof(weir_span);
    size_t size = sizeof(weir_http_exchange) + values + extra;
    weir_http_exchange *exchange = (weir_http_exchange *)(void *)(request + 1);
    weir_buf *block = NULL;

    if (size > request->room) {
        int err = weir_buf_create(size, 0, &block);

        if (err < 0) {
            weir_msg_release(weir_http_request_msg(request));
            return err;
        }
        exchange = (weir_http_exchange *)(void *)weir_buf_space(block);
    }
    weir__http_clear(exchange, offsetof(weir_http_exchange, to_loop));
    atomic_init(&exchange->users, 1);
    atomic_init(&exchange->refs.count, 2); /* the users, the connection */
    exchange->connection = connection;
    exchange->ctx = connection->ctx;
    exchange->loop = weir_ctx_executor(connection->ctx);
    exchange->router = connection->router;
    exchange->request = request;
    weir__http_headers_init(&exchange->headers, exchange->values, (uint8_t *)exchange->values);
    exchange->block = block;
    connection->exchange = exchange;
    *ret_exchange = exchange;
    return 0;
}

uint8_t *weir__http_exchange_extra(weir_http_exchange *exchange)
{
    const weir__http_route_tree *tree = weir__http_router_tree(exchange->router);

    return (uint8_t *)(exchange->values + weir__http_route_tree_max_parameters(tree));
}

void weir__http_exchange_share(weir_http_exchange *exchange)
{
    if (exchange->is_shared)
        return;
    assert(weir_in_executor(exchange->loop));
    weir__mailbox_init(&exchange->to_loop, &loop_calls);
    weir__mailbox_init(&exchange->to_handler, &handler_events);
    weir__mutex_init(&exchange->mutex);
    atomic_init(&exchange->piece, NULL);
    exchange->on_lost = exchange->on_writable = (struct weir__exchange_callback){NULL, NULL};
    (void)weir_ctx_retain(exchange->ctx);
    (void)weir_http_router_retain(exchange->router);
    exchange->is_shared = true;
}

/* The request comes last: the exchange may be in its memory. */
static void free_exchange(weir_http_exchange *exchange)
{
    weir_http_request *request = exchange->request;
    struct weir__exchange_text *text;

    assert(exchange->connection == NULL);
#ifndef NDEBUG
    atomic_store_explicit(&exchange->users, 0, memory_order_relaxed); /* for assert_is_held */
#endif
    while ((text = exchange->decoded) != NULL) {
        exchange->decoded = text->next;
        weir_memory_free(text);
    }
    weir__http_headers_deinit(&exchange->headers);
    weir_buf_release(exchange->content);
    if (exchange->end != NULL)
        weir_msg_release(weir_http_end_msg(exchange->end));
    if (exchange->is_shared) {
        weir_msg_release(atomic_load_explicit(&exchange->piece, memory_order_relaxed));
        weir__mutex_deinit(&exchange->mutex);
        weir_executor_release(exchange->executor);
        weir_http_router_release(exchange->router);
        weir_ctx_release(exchange->ctx);
    }
    weir_buf_release(exchange->block);
    weir_msg_release(weir_http_request_msg(request));
}

/* "exchange" in src/base/refcount.h */
WEIR__NO_STACK_PROTECTOR
void weir__http_exchange_release_memory(weir_http_exchange *exchange)
{
    uint32_t count;

    if (exchange->is_shared) {
        if (weir__refs_release(&exchange->refs))
            free_exchange(exchange);
        return;
    }
    count = atomic_load_explicit(&exchange->refs.count, memory_order_relaxed);
    atomic_store_explicit(&exchange->refs.count, count - 1, memory_order_relaxed);
    if (count == 1)
        free_exchange(exchange);
}

void weir__http_exchange_detach(weir_http_exchange *exchange)
{
    exchange->connection->exchange = NULL;
    exchange->connection = NULL;
    weir__http_exchange_release_memory(exchange);
}

/* In Debug builds: the exchange whose handler runs on this thread. */
#ifndef NDEBUG
static _Thread_local const weir_http_exchange *running;
#endif

void weir__http_exchange_run(weir_http_exchange *exchange)
{
    const weir_http_route *route = &exchange->route->given;
#ifndef NDEBUG
    const weir_http_exchange *outer = running;

    running = exchange;
#endif

    route->handler(exchange, route->user_data);
#ifndef NDEBUG
    running = outer;
#endif
    weir_http_exchange_release(exchange);
}

/* While its handler runs, one user is the call: what is released must be another one. */
static void assert_is_held(const weir_http_exchange *exchange)
{
#ifndef NDEBUG
    uint32_t users = atomic_load_explicit(&exchange->users, memory_order_relaxed);

    WEIR__ASSERT_HELD(users > 0, "weir_http_exchange_release: released more often than retained");
    WEIR__ASSERT_HELD(users > 1 || exchange != running,
                      "weir_http_exchange_release: a handler borrows its exchange");
#else
    (void)exchange;
#endif
}

weir_http_exchange *weir_http_exchange_retain(weir_http_exchange *exchange)
{
    uint32_t before;

    weir__http_exchange_share(exchange); /* the first time: on the loop, in the handler */
    /* Relaxed: passing the pointer to the new holder orders the rest. */
    before = atomic_fetch_add_explicit(&exchange->users, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return exchange;
}

/* On the loop: no users are left. */
static void drop(weir_http_exchange *exchange)
{
    exchange->use = WEIR__EXCHANGE_DROPPED;
    if (exchange->connection != NULL)
        weir__http_exchange_give_up(exchange);
    weir__http_exchange_release_memory(exchange);
}

WEIR__NO_STACK_PROTECTOR
void weir_http_exchange_release(weir_http_exchange *exchange)
{
    if (exchange == NULL)
        return;
    assert_is_held(exchange);
    if (!exchange->is_shared && /* "exchange" in src/base/refcount.h */
        atomic_load_explicit(&exchange->refs.count, memory_order_relaxed) == 1) {
        free_exchange(exchange); /* the usual case: it was answered */
    } else if (!exchange->is_shared) {
        atomic_store_explicit(&exchange->users, 0, memory_order_relaxed);
        drop(exchange);
    } else if (atomic_fetch_sub_explicit(&exchange->users, 1, memory_order_acq_rel) == 1) {
        weir__refs_retain(&exchange->refs); /* the loop may drop it before the call returns */
        call_loop(exchange, WEIR__EXCHANGE_RELEASED);
        weir__http_exchange_release_memory(exchange);
    }
}

/* ---- calls from any thread to the loop ---- */

/* If the loop has ended, the exchange is detached. */
static void run_on_loop(weir_http_exchange *exchange, uint32_t calls, int status)
{
    (void)status;
    if (calls & WEIR__EXCHANGE_READ)
        weir__http_content_read(exchange);
    if (calls & WEIR__EXCHANGE_CHECK)
        weir__http_exchange_check(exchange);
    if (calls & WEIR__EXCHANGE_RELEASED)
        drop(exchange);
}

WEIR__MAILBOX_TYPE(loop_calls, "http", weir_http_exchange, to_loop, owner->loop,
                   weir__refs_retain(&owner->refs), weir__http_exchange_release_memory(owner),
                   run_on_loop);

static void call_loop(weir_http_exchange *exchange, uint32_t call)
{
    if (weir__http_exchange_is_direct(exchange))
        run_on_loop(exchange, call, 0);
    else
        weir__mailbox_set(&exchange->to_loop, call);
}

/* ---- one-shot callbacks ---- */

static void set_callback(weir_http_exchange *exchange, struct weir__exchange_callback *callback,
                         weir_http_exchange_fn *fn, void *user_data)
{
    weir__mutex_lock(&exchange->mutex);
    *callback = (struct weir__exchange_callback){fn, user_data};
    weir__mutex_unlock(&exchange->mutex);
    if (fn != NULL)
        call_loop(exchange, WEIR__EXCHANGE_CHECK);
}

static void call_callback(weir_http_exchange *exchange, struct weir__exchange_callback *callback)
{
    struct weir__exchange_callback taken;

    weir__mutex_lock(&exchange->mutex);
    taken = *callback;
    callback->fn = NULL;
    weir__mutex_unlock(&exchange->mutex);
    if (taken.fn != NULL)
        taken.fn(exchange, taken.user_data);
}

void weir_http_exchange_on_lost(weir_http_exchange *exchange, weir_http_exchange_fn *fn,
                                void *user_data)
{
    weir__http_exchange_share(exchange); /* the first time on the loop, as retain */
    set_callback(exchange, &exchange->on_lost, fn, user_data);
}

void weir_http_exchange_on_writable(weir_http_exchange *exchange, weir_http_exchange_fn *fn,
                                    void *user_data)
{
    weir__http_exchange_share(exchange);
    set_callback(exchange, &exchange->on_writable, fn, user_data);
}

void weir__http_exchange_check(weir_http_exchange *exchange)
{
    bool is_over = exchange->connection == NULL;
    uint32_t events = 0;

    weir__mutex_lock(&exchange->mutex);
    if (exchange->on_writable.fn != NULL &&
        (is_over || exchange->has_ended_response || weir__http_exchange_has_room(exchange)))
        events |= WEIR__EXCHANGE_EVENT_WRITABLE;
    if (exchange->on_lost.fn != NULL && is_over && !exchange->has_ended_response)
        events |= WEIR__EXCHANGE_EVENT_LOST;
    weir__mutex_unlock(&exchange->mutex);
    if (events != 0)
        weir__http_exchange_signal(exchange, events);
}

/* ---- events to the handler's thread ---- */

/* Becomes a user while callbacks run, if there is one: otherwise their data may be gone. */
static bool become_user(weir_http_exchange *exchange)
{
    uint32_t users = atomic_load_explicit(&exchange->users, memory_order_relaxed);

    while (users > 0 &&
           !atomic_compare_exchange_weak_explicit(&exchange->users, &users, users + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return users > 0;
}

static void deliver(weir_http_exchange *exchange, enum weir__exchange_event event)
{
    weir_msg *piece;

    switch (event) {
    case WEIR__EXCHANGE_EVENT_PIECE:
        piece = atomic_exchange_explicit(&exchange->piece, NULL, memory_order_acq_rel);
        if (exchange->content_fn != NULL)
            exchange->content_fn(exchange, piece, 0, exchange->content_user_data);
        else
            weir_msg_release(piece);
        break;
    case WEIR__EXCHANGE_EVENT_LAST:
        if (exchange->content_fn != NULL)
            exchange->content_fn(exchange, NULL, exchange->content_err,
                                 exchange->content_user_data);
        break;
    case WEIR__EXCHANGE_EVENT_WRITABLE:
        call_callback(exchange, &exchange->on_writable);
        break;
    case WEIR__EXCHANGE_EVENT_LOST:
        call_callback(exchange, &exchange->on_lost);
        break;
    }
}

/* Callbacks are called even if the executor has ended: they free what is theirs. */
static void on_events(weir_http_exchange *exchange, uint32_t events, int status)
{
    (void)status;
    for (uint32_t event = 1; event <= events; event <<= 1) {
        if (!(events & event) || !become_user(exchange))
            continue;
        deliver(exchange, event);
        weir_http_exchange_release(exchange);
    }
}

WEIR__MAILBOX_TYPE(handler_events, "http", weir_http_exchange, to_handler,
                   owner->executor != NULL ? owner->executor : owner->loop,
                   weir__refs_retain(&owner->refs), weir__http_exchange_release_memory(owner),
                   on_events);

void weir__http_exchange_signal(weir_http_exchange *exchange, uint32_t events)
{
    if (exchange->is_shared && exchange->use != WEIR__EXCHANGE_DROPPED)
        weir__mailbox_set(&exchange->to_handler, events);
}

/* Even if the executor has ended: the handler answers. */
static void on_run(void *arg, int status)
{
    weir_http_exchange *exchange = arg;

    (void)status;
    weir__http_exchange_run(exchange);
    weir__mailbox_resume(&exchange->to_handler);
}

/* A task of the group, whose bound limits how many handlers wait. Events come after it. */
int weir__http_exchange_dispatch(weir_http_exchange *exchange, weir_executor *executor)
{
    int err;

    weir__http_exchange_share(exchange);
    exchange->executor = weir_executor_retain(executor);
    (void)weir__mailbox_hold(&exchange->to_handler);
    weir_task_init(&exchange->run, on_run, exchange);
    err = weir_execute_task(executor, &exchange->run);
    if (err < 0) {
        weir__mailbox_resume(&exchange->to_handler);
        exchange->executor = NULL;
        weir_executor_release(executor);
    }
    return err;
}

/* ---- the request ---- */

const weir_http_request *weir_http_exchange_request(const weir_http_exchange *exchange)
{
    return exchange->request;
}

weir_span weir_http_exchange_parameter(const weir_http_exchange *exchange, const char *name)
{
    weir_span text = weir_span_of_text(name);

    for (size_t i = 0; i < exchange->route->parameter_count; i++)
        if (weir_span_equal(exchange->route->names[i], text))
            return exchange->values[i];
    return weir_span_of(NULL, 0);
}

/* Decodes a value into memory that lives as long as the exchange. */
static weir_span decode_value(weir_http_exchange *exchange, weir_span value)
{
    struct weir__exchange_text *text = weir_memory_alloc(sizeof(*text) + value.length);
    ssize_t length;

    if (text == NULL)
        return weir_span_of(NULL, 0);
    length = weir_http_query_decode(value, text->bytes);
    if (length < 0) {
        weir_memory_free(text);
        return weir_span_of(NULL, 0);
    }
    text->next = exchange->decoded;
    exchange->decoded = text;
    return weir_span_of(text->bytes, (size_t)length);
}

weir_span weir_http_exchange_query(weir_http_exchange *exchange, const char *name)
{
    weir_span query = weir_http_request_query(exchange->request), value;

    if (!weir_http_query_find(query, weir_span_of_text(name), &value))
        return weir_span_of(NULL, 0);
    for (size_t i = 0; i < value.length; i++)
        if (value.data[i] == '%' || value.data[i] == '+')
            return decode_value(exchange, value);
    return value;
}

weir_channel *weir_http_exchange_channel(const weir_http_exchange *exchange)
{
    return weir_ctx_channel(exchange->ctx);
}

const char *weir_http_exchange_route(const weir_http_exchange *exchange)
{
    return exchange->route->given.path;
}

int weir_http_exchange_client(const weir_http_exchange *exchange, weir_address *ret_address)
{
    return weir__http_client_address(weir_ctx_channel(exchange->ctx), exchange->request,
                                     ret_address);
}

void weir_http_exchange_on_content(weir_http_exchange *exchange, weir_http_content_fn *fn,
                                   void *user_data)
{
    exchange->content_user_data = user_data;
    exchange->content_fn = fn;
    if (exchange->executor == NULL)
        weir__http_route_set_content_fn(exchange->route, fn);
}

void weir_http_exchange_read(weir_http_exchange *exchange)
{
    call_loop(exchange, WEIR__EXCHANGE_READ);
}

/* ---- the response ---- */

weir_http_headers *weir_http_exchange_headers(weir_http_exchange *exchange)
{
    uint8_t phase = atomic_load_explicit(&exchange->phase, memory_order_relaxed);

    return phase == WEIR__EXCHANGE_OPEN ? &exchange->headers : NULL;
}

/* A writer that waits whenever this is false must notice that the connection is lost: by a write.
 */
bool weir_http_exchange_is_writable(const weir_http_exchange *exchange)
{
    return atomic_load_explicit(&exchange->is_lost, memory_order_relaxed) ||
           weir__http_exchange_has_room(exchange);
}
