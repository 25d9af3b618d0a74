/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/demand.h"

#include <errno.h>

#include <weir/handler.h>

#include "channel/border.h"

/* ---- passing on ---- */

/* weir__demand_begin reads `is_answering`, which matters only without auto-read. */
static void pass(weir_ctx *ctx, weir_demand *demand, weir_msg *msg)
{
    bool is_requested = demand->is_requested;

    demand->has_passed = true;
    if (is_requested) {
        demand->is_requested = false;
        demand->is_answering = true;
    }
    weir_fire_read(ctx, msg);
    if (is_requested)
        demand->is_answering = false;
}

void weir__demand_pass(weir_ctx *ctx, weir_msg *msg)
{
    weir_demand *demand = weir__demand_of(ctx);

    if (weir__msg_queue_is_empty(&demand->buffered) &&
        (weir__demand_has_auto_read(ctx) || demand->is_requested)) {
        pass(ctx, demand, msg);
    } else if (!weir__msg_queue_push(&demand->buffered, msg)) {
        weir_msg_release(msg);
        weir_fire_error(ctx, -ENOMEM, "no memory to hold back a message that was not requested");
    }
}

static void pass_buffered(weir_ctx *ctx)
{
    weir_demand *demand = weir__demand_of(ctx);

    while (!weir__msg_queue_is_empty(&demand->buffered) && weir__demand_is_open(ctx) &&
           !weir__ctx_is_removed(ctx))
        pass(ctx, demand, weir__msg_queue_pop(&demand->buffered));
}

static void fire_end(weir_ctx *ctx)
{
    weir_demand *demand = weir__demand_of(ctx);

    if (!demand->has_ended)
        return;
    demand->has_ended = false;
    weir_fire_event(ctx, weir_msg_retain(weir_event_input_closed()));
}

static bool has_work(weir_ctx *ctx, const weir__demand_source *source)
{
    const weir_demand *demand = weir__demand_of(ctx);

    if (weir__ctx_is_removed(ctx))
        return false;
    return demand->needs_complete || (weir__demand_is_open(ctx) && source->has_more(ctx)) ||
           (demand->has_ended && !source->has_more(ctx));
}

/* True if everything has been passed on: the usual case, with auto-read. */
static bool is_done(const weir_ctx *ctx, const weir_demand *demand, bool resumes)
{
    return weir__demand_has_auto_read(ctx) && !demand->needs_complete && !demand->has_ended &&
           !(resumes && demand->has_passed);
}

/* read_complete from below ends a batch: messages after it get another one here. */
static void run(weir_ctx *ctx, weir_demand *demand, const weir__demand_source *source, bool resumes)
{
    do {
        if (!weir__msg_queue_is_empty(&demand->buffered))
            pass_buffered(ctx);
        if (source->produce != NULL && weir__msg_queue_is_empty(&demand->buffered))
            source->produce(ctx);
        if (is_done(ctx, demand, resumes))
            return;
        if (demand->needs_complete || (resumes && demand->has_passed)) {
            demand->needs_complete = false;
            demand->has_passed = false;
            resumes = true;
            weir_fire_read_complete(ctx);
        }
        if (demand->has_ended && !source->has_more(ctx) && !weir__ctx_is_removed(ctx))
            fire_end(ctx);
    } while (has_work(ctx, source));
}

/*
 * A request for which no message was left goes on. A removed handler has answered a single request
 * if it passed a message on, but not that of auto-read.
 */
static bool takes_request(weir_ctx *ctx, const weir__demand_source *source)
{
    weir__demand_of(ctx)->needs_request = false;
    return weir__demand_is_open(ctx) && (weir__ctx_is_removed(ctx) || !source->has_more(ctx));
}

void weir__demand_run(weir_ctx *ctx, const weir__demand_source *source, bool resumes)
{
    weir_demand *demand = weir__demand_of(ctx);

    if (demand->is_running)
        return;
    demand->is_running = true;
    run(ctx, demand, source, resumes);
    demand->is_running = false;
    source->settle(ctx);
    if (demand->needs_request && takes_request(ctx, source))
        weir_request_read(ctx);
}

/* ---- requests and the end of the input ---- */

void weir__demand_request_read(weir_ctx *ctx, const weir__demand_source *source)
{
    weir_demand *demand = weir__demand_of(ctx);

    if (!weir__demand_has_auto_read(ctx))
        demand->is_requested = true;
    demand->needs_request = true;
    weir__demand_run(ctx, source, true);
}

/* Nothing is buffered while auto-read is on, so most calls need no run. */
void weir__demand_read_complete(weir_ctx *ctx, const weir__demand_source *source)
{
    weir_demand *demand = weir__demand_of(ctx);

    if (weir__demand_has_auto_read(ctx) && !demand->is_running) {
        demand->has_passed = false;
        weir_fire_read_complete(ctx);
        return;
    }
    if (demand->is_requested)
        demand->needs_request = true;
    if (demand->is_requested || demand->has_passed || weir__demand_has_auto_read(ctx))
        demand->needs_complete = true;
    weir__demand_run(ctx, source, false);
}

void weir__demand_event(weir_ctx *ctx, weir_msg *event, const weir__demand_source *source)
{
    if (event != weir_event_input_closed()) {
        weir_fire_event(ctx, event);
        return;
    }
    weir_msg_release(event);
    weir__demand_of(ctx)->has_ended = true;
    weir__demand_run(ctx, source, true);
}

/* ---- adding and removing ---- */

/* True if a request is unanswered, or its answer is being passed on. */
static bool has_request(const weir_channel *channel)
{
    return weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ONE) ||
           weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ANSWERED);
}

/*
 * The next handler towards the head that counts requests knows whether one was made from behind it:
 * behind a border there is one. If there is none, the channel knows.
 */
void weir__demand_begin(weir_ctx *ctx)
{
    weir_demand *demand = weir__demand_of(ctx), *other;
    weir_ctx *below = ctx->prev;

    while (below != weir__channel_head_tail(ctx->channel) &&
           (!below->handler->buffers_reads ||
            (weir__ctx_is_removed(below) && !weir__demand_of(below)->is_answering)))
        below = below->prev;
    if (below == weir__channel_head_tail(ctx->channel)) {
        demand->is_requested = has_request(ctx->channel);
        return;
    }
    other = weir__demand_of(below);
    demand->is_requested = other->is_answering || other->is_requested;
}

void weir__demand_clear(weir_ctx *ctx)
{
    weir_demand *demand = weir__demand_of(ctx);

    weir__msg_queue_clear(&demand->buffered);
    demand->has_ended = false;
}

void weir__demand_flush(weir_ctx *ctx, bool (*more)(weir_ctx *ctx))
{
    weir_demand *demand = weir__demand_of(ctx);
    bool has_passed = false;

    while (!weir__msg_queue_is_empty(&demand->buffered)) {
        weir_fire_read(ctx, weir__msg_queue_pop(&demand->buffered));
        has_passed = true;
    }
    if (more != NULL && more(ctx))
        has_passed = true;
    if (has_passed) {
        demand->is_requested = false;
        weir_fire_read_complete(ctx);
    }
    fire_end(ctx);
}

/* ---- handlers that hold back only messages ---- */

static bool has_buffered(weir_ctx *ctx)
{
    return !weir__msg_queue_is_empty(&weir__demand_of(ctx)->buffered);
}

static void settle(weir_ctx *ctx)
{
    if (weir__ctx_is_removed(ctx))
        weir__demand_flush(ctx, NULL);
}

const weir__demand_source weir__demand_buffered = {.has_more = has_buffered, .settle = settle};

/* A request made inside is passed on after the last message. */
void weir__demand_pass_all(weir_ctx *ctx, weir_msg *const *msgs, size_t count)
{
    weir_demand *demand = weir__demand_of(ctx);
    bool is_outermost = !demand->is_running;

    demand->is_running = true;
    for (size_t i = 0; i < count; i++)
        weir__demand_pass(ctx, msgs[i]);
    if (!is_outermost)
        return;
    demand->is_running = false;
    weir__demand_run(ctx, &weir__demand_buffered, false);
}

void weir__demand_inactive(weir_ctx *ctx)
{
    weir__demand_run(ctx, &weir__demand_buffered, true);
    weir__demand_clear(ctx);
    weir_fire_inactive(ctx);
}

void weir__demand_removed(weir_ctx *ctx)
{
    if (!weir__demand_of(ctx)->is_running)
        weir__demand_flush(ctx, NULL);
}
