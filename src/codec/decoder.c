/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of decoders. `decode` is called while it makes progress and messages are requested
 * (channel/demand.h); other bytes are kept undecoded.
 *
 * A message is passed on after `decode` has returned, one at a time. The next handlers may then do
 * anything: feed the decoder more bytes, which are queued until the current run is over; remove it;
 * close the input.
 */
#include <weir/codec.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/no_stack_protector.h"
#include "channel/demand.h"
#include "codec/contiguous.h"
#include "codec/cumulation.h"

enum {
    BROKEN = 1 << 0,    /* decoding failed */
    ENDING = 1 << 1,    /* end of input: decode_last follows when the rest is decoded */
    ENDED = 1 << 2,     /* decode_last was called */
    AHEAD = 1 << 3,     /* decode everything, requested or not */
    FINISHING = 1 << 4, /* weir_decoder_finish was called */
    REMOVING = 1 << 5,  /* the removal was requested */
};

static const weir_decoder *decoder_of(const weir_ctx *ctx)
{
    return (const weir_decoder *)(const void *)ctx->handler; /* its first member */
}

static weir_decoder_state *state_of(weir_ctx *ctx)
{
    return weir__ctx_state(ctx);
}

int weir_decoder_need(weir_ctx *ctx, size_t bytes)
{
    state_of(ctx)->cumulation.need = bytes;
    return 0;
}

int weir_decoder_fail(weir_ctx *ctx, int err, const char *detail)
{
    state_of(ctx)->detail = detail;
    return err;
}

bool weir_decoder_has_demand(weir_ctx *ctx)
{
    return weir__demand_is_open(ctx);
}

void weir_decoder_pass(weir_ctx *ctx, weir_msg *msg)
{
    weir__demand_pass(ctx, msg);
}

int weir_decoder_finish(weir_ctx *ctx)
{
    state_of(ctx)->flags |= FINISHING;
    return 0;
}

/* ---- decoding ---- */

static void fail_decoding(weir_ctx *ctx, int err)
{
    weir_decoder_state *state = state_of(ctx);
    const char *detail = state->detail;

    state->flags |= BROKEN;
    state->detail = NULL;
    if (!state->demand.is_running) /* otherwise `decode` may be using it, and `settle` clears it */
        weir__cumulation_clear(&state->cumulation);
    weir_fire_error(ctx, err, detail);
}

/* Calls `decode` once. Returns 1 if it may be called again, 0 if not, or an error. */
WEIR__NO_STACK_PROTECTOR static inline int call(weir_ctx *ctx, weir_decoder_state *state,
                                                weir_decode_fn *decode, weir_buf *in,
                                                bool may_be_empty)
{
    size_t before = weir_buf_readable(in);
    weir_msg *msg = NULL;
    bool has_taken;
    int result;

    state->cumulation.need = 0;
    result = decode(ctx, in, &msg);
    has_taken = weir_buf_readable(in) != before;
    if (result > 0 && !has_taken && !(may_be_empty && msg != NULL)) {
        weir_msg_release(msg);
        return weir_decoder_fail(ctx, WEIR_ENOPROGRESS, "decode consumed no bytes");
    }
    if (result == 0)
        weir__cumulation_wait(&state->cumulation, state->cumulation.need);
    if (result > 0)
        weir__cumulation_advance(&state->cumulation);
    if (msg != NULL)
        weir__demand_pass(ctx, msg);
    return result > 0 ? has_taken : result;
}

static inline bool can_decode(const weir_ctx *ctx, const weir_decoder_state *state)
{
    return (state->flags & (BROKEN | FINISHING)) == 0 && !weir__ctx_is_removed(ctx);
}

static bool is_urgent(weir_ctx *ctx)
{
    const weir_decoder_state *state = state_of(ctx);
    const weir_decoder *decoder = decoder_of(ctx);

    if ((state->flags & AHEAD) != 0)
        return true;
    return decoder->is_urgent != NULL && weir__msg_queue_is_empty(&state->demand.buffered) &&
           decoder->is_urgent(ctx);
}

WEIR__NO_STACK_PROTECTOR static inline void decode_all(weir_ctx *ctx, weir_decoder_state *state)
{
    weir_buf *in;
    int result = 1;

    while (result >= 0 && can_decode(ctx, state) && (weir__demand_is_open(ctx) || is_urgent(ctx))) {
        result = weir__cumulation_next(&state->cumulation, &in);
        if (result == 0)
            return;
        if (result > 0)
            result = call(ctx, state, decoder_of(ctx)->decode, in, false);
        if (result > 0 && weir__cumulation_release_used(&state->cumulation))
            return;
    }
    if (result < 0)
        fail_decoding(ctx, result);
}

static void decode_rest(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);
    weir_decode_fn *decode_last = decoder_of(ctx)->decode_last;
    weir_buf *in = NULL;
    int result = 0;

    if (decode_last != NULL && can_decode(ctx, state)) {
        result = weir__cumulation_join(&state->cumulation, &in);
        if (result == 0)
            do
                result = call(ctx, state, decode_last, in, true);
            while (result > 0 && weir_buf_readable(in) > 0 && can_decode(ctx, state));
        if (result < 0)
            fail_decoding(ctx, result);
    }
    state->flags |= ENDED;
    if (!weir__ctx_is_removed(ctx))
        weir__cumulation_clear(&state->cumulation);
}

/* The remaining bytes answer a pending request; without any, the request is passed on. */
static void remove_if_allowed(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);
    bool is_empty = weir__cumulation_is_empty(&state->cumulation);

    if (weir__ctx_is_removed(ctx) || !(is_empty || weir__demand_is_open(ctx)))
        return;
    state->flags |= REMOVING;
    if (is_empty && state->demand.is_requested)
        weir_request_read(ctx);
    if (!weir__ctx_is_removed(ctx))
        weir_ctx_remove(ctx);
}

WEIR__NO_STACK_PROTECTOR static void produce(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);

    decode_all(ctx, state);
    if ((state->flags & (FINISHING | REMOVING)) == FINISHING)
        remove_if_allowed(ctx);
    else if ((state->flags & (FINISHING | ENDING | ENDED)) == ENDING &&
             !weir__cumulation_has_next(&state->cumulation))
        decode_rest(ctx);
}

static bool has_more(weir_ctx *ctx)
{
    const weir_decoder_state *state = state_of(ctx);

    if (!weir__msg_queue_is_empty(&state->demand.buffered))
        return true;
    if ((state->flags & (BROKEN | REMOVING)) != 0)
        return false;
    return (state->flags & FINISHING) != 0 ? !weir__cumulation_is_empty(&state->cumulation)
                                           : weir__cumulation_has_next(&state->cumulation);
}

static bool forward_bytes(weir_ctx *ctx)
{
    weir_cumulation *cumulation = &state_of(ctx)->cumulation;
    weir_msg *left = weir__cumulation_take(cumulation);
    bool has_some = left != NULL;

    for (; left != NULL; left = weir__cumulation_take(cumulation))
        weir_fire_read(ctx, left);
    return has_some;
}

/* After the removal: passes the remaining bytes to the next handler. */
static void finish_removal(weir_ctx *ctx)
{
    weir__demand_flush(ctx, forward_bytes);
    if (decoder_of(ctx)->removed != NULL)
        decoder_of(ctx)->removed(ctx);
}

static inline void settle(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);

    if ((state->flags & BROKEN) != 0)
        weir__cumulation_clear(&state->cumulation);
    if (weir__ctx_is_removed(ctx))
        finish_removal(ctx);
}

static const weir__demand_source source = {
    .produce = produce, .has_more = has_more, .settle = settle};

void weir_decoder_resume(weir_ctx *ctx)
{
    weir__cumulation_retry(&state_of(ctx)->cumulation);
    weir__demand_run(ctx, &source, true);
}

/* ---- slots ---- */

void weir_decoder_removed(weir_ctx *ctx)
{
    if (!state_of(ctx)->demand.is_running) /* otherwise `settle` does it */
        finish_removal(ctx);
}

/* The channel is closed: releases what was not requested. */
static void release_unrequested(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);

    if (weir__demand_is_open(ctx) && state->demand.is_running)
        return;
    weir__demand_clear(ctx);
    if (state->demand.is_running)
        state->flags |= BROKEN;
    else
        weir__cumulation_clear(&state->cumulation);
}

void weir_decoder_inactive(weir_ctx *ctx)
{
    state_of(ctx)->flags |= ENDING;
    weir__demand_run(ctx, &source, true);
    release_unrequested(ctx);
    weir_fire_inactive(ctx);
}

/* Decodes all earlier bytes first, so that the message stays behind their messages. */
static void pass_other(weir_ctx *ctx, weir_msg *msg)
{
    weir_decoder_state *state = state_of(ctx);

    if (has_more(ctx)) {
        state->flags |= AHEAD;
        weir__demand_run(ctx, &source, false);
        state->flags &= ~(uint32_t)AHEAD;
    }
    weir__demand_pass(ctx, msg);
}

void weir_decoder_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_decoder_state *state = state_of(ctx);
    weir_demand *demand = &state->demand;
    int err;

    if (!weir__is_bytes(msg)) {
        pass_other(ctx, msg);
        return;
    }
    if ((state->flags & (BROKEN | ENDED)) != 0) {
        weir_msg_release(msg);
        return;
    }
    err = weir__cumulation_add(&state->cumulation, msg);
    if (err < 0) {
        fail_decoding(ctx, err);
        return;
    }
    if (demand->is_running || !weir__demand_has_auto_read(ctx) ||
        !weir__msg_queue_is_empty(&demand->buffered)) {
        weir__demand_run(ctx, &source, false);
        return;
    }
    demand->is_running = true;
    produce(ctx);
    demand->is_running = false;
    if (demand->needs_complete || demand->needs_request || demand->has_ended)
        weir__demand_run(ctx, &source, false); /* something happened meanwhile */
    else
        settle(ctx);
}

void weir_decoder_read_complete(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);

    if (!state->demand.is_running &&
        (state->cumulation.in != NULL || state->cumulation.pieces != NULL))
        weir__cumulation_shrink(&state->cumulation);
    weir__demand_read_complete(ctx, &source);
    if (!weir__demand_has_auto_read(ctx) && can_decode(ctx, state) && is_urgent(ctx))
        weir_request_read(ctx);
}

void weir_decoder_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        state_of(ctx)->flags |= ENDING;
    weir__demand_event(ctx, event, &source);
}

void weir_decoder_request_read(weir_ctx *ctx)
{
    weir__demand_request_read(ctx, &source);
}
