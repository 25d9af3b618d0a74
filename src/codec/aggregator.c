/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of aggregators. Parts that arrive while no message is being aggregated are released, so
 * skipping a message needs no state.
 */
#include <weir/aggregator.h>

#include <stdio.h>

#include <weir/error.h>

#include "channel/demand.h"

static const weir_aggregator *aggregator_of(const weir_ctx *ctx)
{
    return (const weir_aggregator *)(const void *)weir_ctx_handler(ctx); /* its first member */
}

static weir_aggregator_state *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

void weir_aggregator_set_max_length(weir_aggregator_state *state, int64_t max_length)
{
    state->max_length = max_length > 0 ? max_length : 0;
}

static bool is_over_limit(const weir_aggregator_state *state, int64_t bytes)
{
    return state->max_length > 0 && bytes > state->max_length - state->length;
}

static weir_msg *take_whole(weir_aggregator_state *state)
{
    weir_msg *whole = state->whole;

    state->whole = NULL;
    state->length = 0;
    return whole;
}

static void release_whole(weir_ctx *ctx)
{
    weir_msg_release(take_whole(state_of(ctx)));
}

/* ---- errors ---- */

static void fail(weir_ctx *ctx, int err)
{
    release_whole(ctx);
    weir_fire_error(ctx, err, "aggregation failed");
}

static void report_too_long(weir_ctx *ctx, weir_msg *msg)
{
    char detail[80];

    if (aggregator_of(ctx)->too_long != NULL) {
        aggregator_of(ctx)->too_long(ctx, msg);
        return;
    }
    (void)snprintf(detail, sizeof(detail), "message over the limit of %lld bytes",
                   (long long)state_of(ctx)->max_length);
    weir_fire_error(ctx, WEIR_ETOOLONG, detail);
}

/* ---- aggregation ---- */

static int64_t size_of(const weir_ctx *ctx, const weir_msg *part)
{
    const weir_aggregator *aggregator = aggregator_of(ctx);

    return aggregator->size != NULL ? aggregator->size(part) : (int64_t)weir_msg_size(part);
}

/* `end` may remove the aggregator; the finished message is passed on all the same. */
static void finish(weir_ctx *ctx)
{
    weir_msg *whole = take_whole(state_of(ctx));
    int err = aggregator_of(ctx)->end != NULL ? aggregator_of(ctx)->end(ctx, whole) : 0;

    if (err < 0) {
        weir_msg_release(whole);
        fail(ctx, err);
        return;
    }
    weir__demand_pass(ctx, whole);
}

/* Replies to the start, if required. True if the message is to be aggregated. */
static bool action(weir_ctx *ctx, weir_msg *start)
{
    const weir_aggregator *aggregator = aggregator_of(ctx);
    enum weir_aggregator_action action;
    weir_msg *reply = NULL;

    if (aggregator->reply != NULL) {
        action = aggregator->reply(ctx, start, state_of(ctx)->max_length, &reply);
        if (reply != NULL) {
            weir_write_and_flush(ctx, reply, NULL);
            if (action == WEIR_AGGREGATOR_CLOSE && !weir_ctx_is_removed(ctx))
                weir_close(ctx, NULL);
            return action == WEIR_AGGREGATOR_CONTINUE && !weir_ctx_is_removed(ctx);
        }
    }
    if (aggregator->announced_length == NULL ||
        !is_over_limit(state_of(ctx), aggregator->announced_length(start)))
        return true;
    report_too_long(ctx, start);
    return false;
}

static void begin(weir_ctx *ctx, weir_msg *start, unsigned kind)
{
    weir_aggregator_state *state = state_of(ctx);
    int64_t size = (kind & WEIR_AGGREGATOR_CONTENT) != 0 ? size_of(ctx, start) : 0;
    int err;

    if (!action(ctx, start))
        return;
    if (is_over_limit(state, size)) {
        report_too_long(ctx, start);
        return;
    }
    err = aggregator_of(ctx)->begin(ctx, start, &state->whole);
    state->length = size;
    if (err < 0)
        fail(ctx, err);
    else if ((kind & WEIR_AGGREGATOR_LAST) != 0)
        finish(ctx);
}

static void add(weir_ctx *ctx, weir_msg *part, unsigned kind)
{
    weir_aggregator_state *state = state_of(ctx);
    int64_t size = (kind & WEIR_AGGREGATOR_CONTENT) != 0 ? size_of(ctx, part) : 0;
    weir_msg *whole;
    int err;

    if (is_over_limit(state, size)) {
        whole = take_whole(state);
        report_too_long(ctx, whole);
        weir_msg_release(whole);
        return;
    }
    state->length += size;
    err = aggregator_of(ctx)->append(ctx, state->whole, part);
    if (err < 0)
        fail(ctx, err);
    else if ((kind & WEIR_AGGREGATOR_LAST) != 0)
        finish(ctx);
}

/* ---- slots ---- */

void weir_aggregator_removed(weir_ctx *ctx)
{
    release_whole(ctx);
    weir__demand_removed(ctx);
    if (aggregator_of(ctx)->removed != NULL)
        aggregator_of(ctx)->removed(ctx);
}

void weir_aggregator_inactive(weir_ctx *ctx)
{
    release_whole(ctx);
    weir__demand_inactive(ctx);
}

void weir_aggregator_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_aggregator_state *state = state_of(ctx);
    unsigned kind = aggregator_of(ctx)->classify(msg);

    if (kind == 0) {
        weir__demand_pass(ctx, msg);
        return;
    }
    if ((kind & WEIR_AGGREGATOR_START) != 0 && state->whole != NULL) {
        fail(ctx, WEIR_EMALFORMED); /* the previous message is incomplete */
        if (weir_ctx_is_removed(ctx)) {
            weir__demand_pass(ctx, msg); /* there is no aggregator any more */
            return;
        }
    }
    if ((kind & WEIR_AGGREGATOR_START) != 0) {
        begin(ctx, msg, kind);
    } else if (state->whole != NULL) {
        add(ctx, msg, kind);
    }
    weir_msg_release(msg);
}

void weir_aggregator_read_complete(weir_ctx *ctx)
{
    weir__demand_read_complete(ctx, &weir__demand_buffered);
}

void weir_aggregator_event(weir_ctx *ctx, weir_msg *event)
{
    weir__demand_event(ctx, event, &weir__demand_buffered);
}

void weir_aggregator_request_read(weir_ctx *ctx)
{
    weir__demand_request_read(ctx, &weir__demand_buffered);
}
