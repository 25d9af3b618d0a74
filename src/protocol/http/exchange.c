/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifecycle and accessors of exchanges.
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
    weir__http_clear(exchange, offsetof(weir_http_exchange, events));
    atomic_init(&exchange->state, 1);
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
    size_t begin = offsetof(weir_http_exchange, events);

    if (exchange->is_shared)
        return;
    assert(weir_in_executor(exchange->loop));
    memset((char *)exchange + begin, 0, offsetof(weir_http_exchange, values) - begin);
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
    atomic_store_explicit(&exchange->state, 0, memory_order_relaxed); /* for assert_is_held */
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
        weir__exchange_callback_slot_deinit(&exchange->on_lost);
        weir__exchange_callback_slot_deinit(&exchange->on_writable);
        weir_http_router_release(exchange->router);
        weir_ctx_release(exchange->ctx);
    }
    weir_buf_release(exchange->block);
    weir_msg_release(weir_http_request_msg(request));
}

/* True if only the loop knows the exchange. Relaxed: its last user's release was acquired by the
 * task that it scheduled, or by `settle`. */
static bool is_unused(const weir_http_exchange *exchange)
{
    return (atomic_load_explicit(&exchange->state, memory_order_relaxed) &
            (WEIR__EXCHANGE_USERS | WEIR__EXCHANGE_SCHEDULED)) == 0;
}

void weir__http_exchange_detach(weir_http_exchange *exchange)
{
    exchange->connection->exchange = NULL;
    exchange->connection = NULL;
    if (is_unused(exchange))
        free_exchange(exchange);
}

WEIR__NO_STACK_PROTECTOR
void weir__http_exchange_settle(weir_http_exchange *exchange)
{
    uint32_t state = atomic_load_explicit(&exchange->state, memory_order_acquire);

    for (;;) {
        if ((state & WEIR__EXCHANGE_USERS) == 1 && exchange->use != WEIR__EXCHANGE_DROPPED) {
            exchange->use = WEIR__EXCHANGE_DROPPED;
            weir__http_exchange_give_up(exchange);
            state = atomic_load_explicit(&exchange->state, memory_order_acquire);
        } else if (!exchange->is_shared) { /* "exchange" in src/base/refcount.h */
            atomic_store_explicit(&exchange->state, state - 1, memory_order_relaxed);
            break;
        } else if (atomic_compare_exchange_weak_explicit(&exchange->state, &state, state - 1,
                                                         memory_order_acq_rel,
                                                         memory_order_acquire)) {
            break;
        }
    }
    if (exchange->connection == NULL && is_unused(exchange))
        free_exchange(exchange);
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
    uint32_t users =
        atomic_load_explicit(&exchange->state, memory_order_relaxed) & WEIR__EXCHANGE_USERS;

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
    before = atomic_fetch_add_explicit(&exchange->state, 1, memory_order_relaxed);
    assert((before & WEIR__EXCHANGE_USERS) > 0);
    (void)before;
    return exchange;
}

void weir_http_exchange_release(weir_http_exchange *exchange)
{
    uint32_t state, next;

    if (exchange == NULL)
        return;
    assert_is_held(exchange);
    if (!exchange->is_shared || weir_in_executor(exchange->loop)) {
        if (exchange->is_shared || exchange->connection != NULL ||
            atomic_load_explicit(&exchange->state, memory_order_relaxed) != 1)
            weir__http_exchange_settle(exchange);
        else
            free_exchange(exchange); /* it was answered, and nobody else knows it */
        return;
    }
    state = atomic_load_explicit(&exchange->state, memory_order_relaxed);
    do {
        assert((state & WEIR__EXCHANGE_USERS) > 0);
        next = state - 1;
        if ((next & WEIR__EXCHANGE_USERS) == 0)
            next |= WEIR__EXCHANGE_RELEASED | WEIR__EXCHANGE_SCHEDULED;
    } while (!atomic_compare_exchange_weak_explicit(&exchange->state, &state, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if ((next & WEIR__EXCHANGE_SCHEDULED) && !(state & WEIR__EXCHANGE_SCHEDULED))
        weir__http_exchange_post(exchange);
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
    weir__http_exchange_call_loop(exchange, WEIR__EXCHANGE_READ);
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
