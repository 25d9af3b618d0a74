/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/codec.h>

#include <errno.h>

#include "channel/demand.h"
#include "codec/encoding.h"
#include "codec/msg_list.h"

static const weir_msg_decoder *decoder_of(const weir_ctx *ctx)
{
    return (const weir_msg_decoder *)(const void *)weir_ctx_handler(ctx); /* its first member */
}

static weir_msg_decoder_state *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

int weir_msg_decoder_fail(weir_ctx *ctx, int err, const char *detail)
{
    state_of(ctx)->detail = detail;
    return err;
}

/* ---- decode_next: messages wait undecoded ---- */

static bool can_produce(weir_ctx *ctx)
{
    return weir__demand_is_open(ctx) && !weir_ctx_is_removed(ctx);
}

static void fail(weir_ctx *ctx, int err)
{
    const char *detail = state_of(ctx)->detail;

    weir_fire_error(ctx, err, detail != NULL ? detail : "decoding failed");
}

/* Decodes one step of the current message. */
static void decode_step(weir_ctx *ctx, weir_msg_decoder_state *state)
{
    const weir_msg_decoder *decoder = decoder_of(ctx);
    weir_msg *current = state->current, *msg = NULL;
    int result;

    if (!weir__msg_matches(decoder->type, decoder->accepts, current)) {
        state->current = NULL;
        weir__demand_pass(ctx, current);
        return;
    }
    state->detail = NULL;
    result = decoder->decode_next(ctx, current, &msg);
    if (result <= 0) {
        state->current = NULL;
        weir_msg_release(current);
    }
    if (result < 0) {
        weir_msg_release(msg);
        fail(ctx, result);
    } else if (msg != NULL) {
        weir__demand_pass(ctx, msg);
    }
}

static void produce(weir_ctx *ctx)
{
    weir_msg_decoder_state *state = state_of(ctx);

    while (can_produce(ctx)) {
        if (state->current == NULL)
            state->current = weir__msg_queue_pop(&state->waiting);
        if (state->current == NULL)
            return;
        decode_step(ctx, state);
    }
}

static bool has_more(weir_ctx *ctx)
{
    const weir_msg_decoder_state *state = state_of(ctx);

    return state->current != NULL || !weir__msg_queue_is_empty(&state->waiting) ||
           !weir__msg_queue_is_empty(&state->demand.buffered);
}

static void clear_waiting(weir_msg_decoder_state *state)
{
    weir__msg_queue_clear(&state->waiting);
    if (!state->demand.is_running) { /* otherwise decode_next may be using it */
        weir_msg_release(state->current);
        state->current = NULL;
    }
}

/* The rest of a message that was decoded in part cannot be passed on; those behind it can. */
static bool forward_waiting(weir_ctx *ctx)
{
    weir_msg_decoder_state *state = state_of(ctx);
    bool has_some = !weir__msg_queue_is_empty(&state->waiting);

    weir_msg_release(state->current);
    state->current = NULL;
    while (!weir__msg_queue_is_empty(&state->waiting))
        weir_fire_read(ctx, weir__msg_queue_pop(&state->waiting));
    return has_some;
}

static void settle(weir_ctx *ctx)
{
    if (weir_ctx_is_removed(ctx))
        weir__demand_flush(ctx, forward_waiting);
}

static const weir__demand_source undecoded = {
    .produce = produce, .has_more = has_more, .settle = settle};

static const weir__demand_source *source_of(const weir_ctx *ctx)
{
    return decoder_of(ctx)->decode_next != NULL ? &undecoded : &weir__demand_buffered;
}

static void read_undecoded(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_decoder_state *state = state_of(ctx);

    if (state->current == NULL && weir__msg_queue_is_empty(&state->waiting)) {
        state->current = msg;
    } else if (!weir__msg_queue_push(&state->waiting, msg)) {
        weir_msg_release(msg);
        weir_fire_error(ctx, -ENOMEM, "no memory to hold back a message that was not requested");
        return;
    }
    weir__demand_run(ctx, &undecoded, false);
}

/* ---- slots ---- */

void weir_msg_decoder_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_msg_decoder *decoder = decoder_of(ctx);
    weir_msg_list out;
    int err;

    if (decoder->decode_next != NULL) {
        read_undecoded(ctx, msg);
        return;
    }
    if (!weir__msg_matches(decoder->type, decoder->accepts, msg)) {
        weir__demand_pass(ctx, msg);
        return;
    }
    weir__msg_list_init(&out);
    state_of(ctx)->detail = NULL;
    err = decoder->decode(ctx, msg, &out);
    weir_msg_release(msg);
    if (err < 0) {
        weir__msg_list_clear(&out);
        fail(ctx, err);
    }
    weir__demand_pass_all(ctx, out.msgs, out.count);
    weir__msg_list_deinit(&out);
}

void weir_msg_decoder_read_complete(weir_ctx *ctx)
{
    weir__demand_read_complete(ctx, source_of(ctx));
}

void weir_msg_decoder_event(weir_ctx *ctx, weir_msg *event)
{
    weir__demand_event(ctx, event, source_of(ctx));
}

void weir_msg_decoder_request_read(weir_ctx *ctx)
{
    weir__demand_request_read(ctx, source_of(ctx));
}

void weir_msg_decoder_inactive(weir_ctx *ctx)
{
    weir_msg_decoder_state *state = state_of(ctx);

    weir__demand_run(ctx, source_of(ctx), true);
    if (!weir__demand_is_open(ctx) || !state->demand.is_running) {
        weir__demand_clear(ctx);
        clear_waiting(state);
    }
    weir_fire_inactive(ctx);
}

void weir_msg_decoder_removed(weir_ctx *ctx)
{
    if (decoder_of(ctx)->decode_next == NULL)
        weir__demand_removed(ctx);
    else if (!state_of(ctx)->demand.is_running) /* otherwise `settle` does it */
        weir__demand_flush(ctx, forward_waiting);
}
