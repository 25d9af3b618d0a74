/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/visitor.h"

#include <errno.h>
#include <string.h>

#include <weir/executor.h>
#include <weir/memory.h>
#include <weir/pipeline.h>

#define COMMAND_MAX 4096 /* bytes */

static void release_message(weir_ws_message *message)
{
    if (message != NULL)
        weir_msg_release(weir_ws_message_msg(message));
}

static weir_ws_message *retain_message(weir_ws_message *message)
{
    (void)weir_msg_retain(weir_ws_message_msg(message));
    return message;
}

static weir__visitor *retain(weir__visitor *visitor)
{
    weir__refs_retain(&visitor->refs);
    return visitor;
}

void weir__visitor_release(weir__visitor *visitor)
{
    if (!weir__refs_release(&visitor->refs))
        return;
    release_message(visitor->stats);
    for (size_t i = 0; i < visitor->count; i++)
        release_message(visitor->queue[(visitor->first + i) % WEIR__VISITOR_QUEUE_MAX]);
    weir__dashboard_release(visitor->dashboard);
    weir_memory_free(visitor);
}

/* ---- sending, on the loop ---- */

/* What was taken from the queue. */
struct batch {
    weir_ws_message *messages[WEIR__VISITOR_QUEUE_MAX + 1];
    size_t count;
};

static void send_waiting(weir__visitor *visitor, weir_ctx *ctx);

static void take_waiting(weir__visitor *visitor, struct batch *batch)
{
    weir__mutex_lock(&visitor->dashboard->mutex);
    while (visitor->count > 0) {
        batch->messages[batch->count++] = visitor->queue[visitor->first];
        visitor->first = (visitor->first + 1) % WEIR__VISITOR_QUEUE_MAX;
        visitor->count--;
    }
    if (visitor->stats != NULL)
        batch->messages[batch->count++] = visitor->stats;
    visitor->stats = NULL;
    weir__mutex_unlock(&visitor->dashboard->mutex);
}

static void on_sent(weir_promise *promise, void *user_data)
{
    weir__visitor *visitor = user_data;
    weir_ctx *ctx;

    visitor->is_sending = false;
    weir__mutex_lock(&visitor->dashboard->mutex);
    ctx = visitor->is_open ? weir_ctx_retain(visitor->ctx) : NULL;
    weir__mutex_unlock(&visitor->dashboard->mutex);
    if (ctx != NULL && weir_promise_result(promise) == 0)
        send_waiting(visitor, ctx);
    weir_ctx_release(ctx);
    weir__visitor_release(visitor);
}

/* A promise that calls on_sent; NULL without memory. */
static weir_promise *create_promise(weir__visitor *visitor, weir_ctx *ctx)
{
    weir_promise *promise = NULL;

    if (weir_promise_create(weir_ctx_executor(ctx), &promise) < 0)
        return NULL;
    if (weir_promise_add_listener(promise, on_sent, retain(visitor)) == 0)
        return promise;
    weir__visitor_release(visitor);
    (void)weir_promise_cancel(promise);
    weir_promise_release(promise);
    return NULL;
}

static void send_waiting(weir__visitor *visitor, weir_ctx *ctx)
{
    struct batch batch = {.count = 0};
    weir_promise *sent = NULL;

    if (visitor->is_sending || weir_ctx_is_removed(ctx))
        return;
    take_waiting(visitor, &batch);
    if (batch.count == 0)
        return;
    sent = create_promise(visitor, ctx);
    visitor->is_sending = sent != NULL;
    for (size_t i = 0; i < batch.count; i++)
        weir_write(ctx, weir_ws_message_msg(batch.messages[i]), i + 1 == batch.count ? sent : NULL);
    weir_flush(ctx);
    weir_promise_release(sent);
}

static weir_task_fn on_posted;

/* The caller has the mutex. */
static void post(weir__visitor *visitor)
{
    weir_executor *loop = weir_channel_executor(weir_ctx_channel(visitor->ctx));

    if (visitor->is_posted)
        return;
    visitor->is_posted = weir_execute(loop, on_posted, retain(visitor)) == 0;
    if (!visitor->is_posted)
        weir__visitor_release(visitor);
}

static void post_again(weir__visitor *visitor)
{
    weir__mutex_lock(&visitor->dashboard->mutex);
    if (visitor->is_open)
        post(visitor);
    weir__mutex_unlock(&visitor->dashboard->mutex);
}

static void on_posted(void *arg, int status)
{
    weir__visitor *visitor = arg;
    weir_ctx *ctx;

    weir__mutex_lock(&visitor->dashboard->mutex);
    visitor->is_posted = false;
    ctx = visitor->is_open ? weir_ctx_retain(visitor->ctx) : NULL;
    weir__mutex_unlock(&visitor->dashboard->mutex);
    if (ctx != NULL && status == 0 && !weir_ctx_is_removed(ctx)) {
        /* A handler is not moved while messages are on the way: they go after it. */
        if (!visitor->is_sending && weir__visitor_apply_switch(visitor, ctx))
            post_again(visitor);
        else
            send_waiting(visitor, ctx);
    }
    weir_ctx_release(ctx);
    weir__visitor_release(visitor);
}

/* ---- offering, on any thread ---- */

/* The caller has the mutex. Takes the message. */
static void append(weir__visitor *visitor, weir_ws_message *message)
{
    if (!visitor->is_open) {
        release_message(message);
        return;
    }
    if (visitor->count == WEIR__VISITOR_QUEUE_MAX) {
        release_message(visitor->queue[visitor->first]);
        visitor->first = (visitor->first + 1) % WEIR__VISITOR_QUEUE_MAX;
        visitor->count--;
    }
    visitor->queue[(visitor->first + visitor->count++) % WEIR__VISITOR_QUEUE_MAX] = message;
    post(visitor);
}

void weir__visitor_offer(weir__visitor *visitor, weir_ws_message *message)
{
    if (message == NULL)
        return;
    weir__mutex_lock(&visitor->dashboard->mutex);
    append(visitor, message);
    weir__mutex_unlock(&visitor->dashboard->mutex);
}

void weir__visitors_append(weir__dashboard *dashboard, weir_ws_message *message)
{
    weir_list_foreach (link, &dashboard->visitors)
        append(WEIR_CONTAINER_OF(link, weir__visitor, link), retain_message(message));
    release_message(message);
}

void weir__visitors_offer(weir__dashboard *dashboard, weir_ws_message *message)
{
    if (message == NULL)
        return;
    weir__mutex_lock(&dashboard->mutex);
    weir__visitors_append(dashboard, message);
    weir__mutex_unlock(&dashboard->mutex);
}

void weir__visitors_offer_stats(weir__dashboard *dashboard, weir_ws_message *message)
{
    weir_list_foreach (link, &dashboard->visitors) {
        weir__visitor *visitor = WEIR_CONTAINER_OF(link, weir__visitor, link);

        release_message(visitor->stats);
        visitor->stats = retain_message(message);
        post(visitor);
    }
}

/* ---- the handler ---- */

/* The caller has the mutex. */
static void join(weir__visitor *visitor, weir_ctx *ctx)
{
    weir__dashboard *dashboard = visitor->dashboard;
    const char *loop = weir_executor_name(weir_ctx_executor(ctx));
    weir_ws_message *hello;

    visitor->is_open = true;
    visitor->ctx = weir_ctx_retain(ctx);
    visitor->number = ++dashboard->last_visitor;
    hello = weir__dashboard_hello_message(dashboard, visitor->number, loop);
    if (hello != NULL)
        append(visitor, hello);
    if (dashboard->stats != NULL && dashboard->is_sampling)
        visitor->stats = retain_message(dashboard->stats);
    weir__list_append(&dashboard->visitors, &retain(visitor)->link);
    dashboard->visitor_count++;
    weir__dashboard_start_sampler(dashboard);
}

static void open_visitor(weir__visitor *visitor, weir_ctx *ctx)
{
    weir__mutex_lock(&visitor->dashboard->mutex);
    join(visitor, ctx);
    weir__mutex_unlock(&visitor->dashboard->mutex);
}

static void leave(weir__visitor *visitor)
{
    weir__dashboard *dashboard = visitor->dashboard;
    weir_ctx *ctx = NULL;

    weir__mutex_lock(&dashboard->mutex);
    if (visitor->is_open) {
        visitor->is_open = false;
        ctx = visitor->ctx;
        visitor->ctx = NULL;
        weir__list_remove(&visitor->link);
        dashboard->visitor_count--;
    }
    weir__mutex_unlock(&dashboard->mutex);
    if (ctx == NULL)
        return;
    weir_ctx_release(ctx);
    weir__visitor_release(visitor);
}

static weir__visitor *visitor_of(weir_ctx *ctx)
{
    return *(weir__visitor **)weir_ctx_state(ctx);
}

static int init(void *state, const void *options)
{
    weir__visitor *visitor = weir_memory_alloc(sizeof(*visitor));

    if (visitor == NULL)
        return -ENOMEM;
    memset(visitor, 0, sizeof(*visitor));
    weir__refs_init(&visitor->refs);
    weir__list_init(&visitor->link);
    visitor->dashboard = weir__dashboard_retain(*(weir__dashboard *const *)options);
    *(weir__visitor **)state = visitor;
    return 0;
}

static void deinit(void *state)
{
    weir__visitor_release(*(weir__visitor **)state);
}

static void on_removed(weir_ctx *ctx)
{
    leave(visitor_of(ctx));
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (weir_ws_opened_of(event) != NULL)
        open_visitor(visitor_of(ctx), ctx);
    else if (weir_ws_closed_of(event) != NULL)
        leave(visitor_of(ctx));
    weir_fire_event(ctx, event);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_ws_message *message = weir_ws_message_of(msg);

    if (message != NULL && weir_ws_message_type(message) == WEIR_WS_TEXT)
        weir__visitor_command(visitor_of(ctx), ctx, weir_ws_message_bytes(message));
    weir_msg_release(msg);
}

static const weir_handler visitor_handler = {.name = "dashboard",
                                             .state_size = sizeof(weir__visitor *),
                                             .init = init,
                                             .deinit = deinit,
                                             .removed = on_removed,
                                             .read = on_read,
                                             .event = on_event,
                                             .stays_on_loop = true};

static int add_handlers(weir_channel *channel, void *user_data)
{
    weir__dashboard *dashboard = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &visitor_handler, &dashboard);

    if (err == 0 && dashboard->options.can_block) {
        weir__visitor *visitor = visitor_of(weir_pipeline_find_handler(pipeline, &visitor_handler));

        err = weir_pipeline_add_last(pipeline, &weir__dashboard_block_handler, &visitor);
    }
    return err;
}

void weir__dashboard_open_socket(weir_http_exchange *exchange, void *user_data)
{
    weir__dashboard *dashboard = user_data;
    bool is_full;

    if (!weir__dashboard_admit(dashboard, exchange))
        return;
    weir__mutex_lock(&dashboard->mutex);
    is_full = dashboard->visitor_count >= WEIR__DASHBOARD_VISITORS_MAX;
    weir__mutex_unlock(&dashboard->mutex);
    if (is_full)
        (void)weir_http_respond_error(exchange, 503, "too many visitors");
    else
        (void)weir_ws_accept(exchange,
                             WEIR_WS_OPTIONS(.init = add_handlers, .user_data = dashboard,
                                             .max_message = COMMAND_MAX, .deflate = true));
}
