/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of decoders: bytes come in, `decode` is called as long as it makes something of them.
 *
 * What `decode` has made is passed on when it has returned, one message at a time. The handlers
 * behind may do anything then: give the decoder more bytes, which wait until this turn of the loop
 * is over; remove it; end the input.
 */
#include <weir/decoder.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/events.h>
#include <weir/pipeline.h>

#include "base/unguarded.h"
#include "codec/cumulation.h"
#include "codec/demand.h"
#include "codec/flat.h"

enum {
    DECODING = 1 << 0, /* somebody further out does */
    MADE = 1 << 1,     /* a message, since the last read_complete */
    BROKEN = 1 << 2,   /* the bytes make no sense any more */
    ENDING = 1 << 3,   /* nothing more comes: who decodes sees to the rest */
    ENDED = 1 << 4,    /* and has */
};

static const weir_decoder *decoder_of(const weir_ctx *ctx)
{
    return (const weir_decoder *)(const void *)weir_ctx_handler(ctx); /* its first member */
}

static weir_decoder_state *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
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

/* ---- decoding ---- */

static void give_up(weir_ctx *ctx, int err)
{
    weir_decoder_state *state = state_of(ctx);
    const char *detail = state->detail;

    state->flags |= BROKEN;
    state->detail = NULL;
    if ((state->flags & DECODING) == 0) /* otherwise `decode` may be looking at it: `run` does */
        weir__cumulation_clear(&state->cumulation);
    weir_fire_error(ctx, err, detail);
}

static void pass_on(weir_ctx *ctx, weir_msg *msg)
{
    state_of(ctx)->flags |= MADE;
    weir_fire_read(ctx, msg);
}

/* One call: 1 if there may be another, 0 if not, or an error. */
WEIR__UNGUARDED static int call(weir_ctx *ctx, weir_decode_fn *decode, weir_buf *in,
                                bool may_be_empty)
{
    weir_decoder_state *state = state_of(ctx);
    size_t before = weir_buf_readable(in);
    weir_msg *msg = NULL;
    bool has_taken;
    int result;

    state->cumulation.need = 0;
    result = decode(ctx, in, &msg);
    has_taken = weir_buf_readable(in) != before;
    if (result > 0 && !has_taken && !(may_be_empty && msg != NULL)) {
        weir_msg_release(msg);
        return weir_decoder_fail(ctx, WEIR_ENOPROGRESS, "a decoder took no byte");
    }
    if (result == 0)
        weir__cumulation_wait(&state->cumulation, state->cumulation.need);
    if (result > 0)
        weir__cumulation_go_on(&state->cumulation);
    if (msg != NULL)
        pass_on(ctx, msg);
    return result > 0 ? has_taken : result;
}

static bool goes_on(weir_ctx *ctx)
{
    return !weir_ctx_is_removed(ctx) && (state_of(ctx)->flags & BROKEN) == 0;
}

WEIR__UNGUARDED static void decode_all(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);
    weir_buf *in;
    int result = 1;

    while (result >= 0 && goes_on(ctx)) {
        result = weir__cumulation_next(&state->cumulation, &in);
        if (result == 0)
            return;
        if (result > 0)
            result = call(ctx, decoder_of(ctx)->decode, in, false);
    }
    if (result < 0)
        give_up(ctx, result);
}

static void decode_last(weir_ctx *ctx)
{
    weir_buf *in = NULL;
    int result = weir__cumulation_join(&state_of(ctx)->cumulation, &in);

    if (result == 0)
        do
            result = call(ctx, decoder_of(ctx)->decode_last, in, true);
        while (result > 0 && weir_buf_readable(in) > 0 && goes_on(ctx));
    if (result < 0)
        give_up(ctx, result);
}

static void decode_rest(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);

    decode_all(ctx);
    if (decoder_of(ctx)->decode_last != NULL && goes_on(ctx))
        decode_last(ctx);
    state->flags |= ENDED;
    if (!weir_ctx_is_removed(ctx))
        weir__cumulation_clear(&state->cumulation);
}

/* It has been removed: what it did not need is the next handler's. */
static void let_go(weir_ctx *ctx)
{
    weir_msg *left = weir__cumulation_take(&state_of(ctx)->cumulation);

    if (left != NULL) {
        for (; left != NULL; left = weir__cumulation_take(&state_of(ctx)->cumulation))
            weir_fire_read(ctx, left);
        weir_fire_read_complete(ctx);
    }
    if (decoder_of(ctx)->removed != NULL)
        decoder_of(ctx)->removed(ctx);
}

/* Whoever comes first decodes; who comes meanwhile only leaves something to be done. */
WEIR__UNGUARDED static void run(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);

    if ((state->flags & DECODING) != 0)
        return;
    state->flags |= DECODING;
    decode_all(ctx);
    if ((state->flags & (ENDING | ENDED)) == ENDING)
        decode_rest(ctx);
    state->flags &= ~(uint32_t)DECODING;
    if ((state->flags & BROKEN) != 0)
        weir__cumulation_clear(&state->cumulation);
    if (weir_ctx_is_removed(ctx))
        let_go(ctx);
}

/* Decodes where no read_complete follows by itself. */
static void run_and_complete(weir_ctx *ctx)
{
    run(ctx);
    if ((state_of(ctx)->flags & MADE) != 0 && !weir_ctx_is_removed(ctx))
        weir_decoder_read_complete(ctx);
}

static void end(weir_ctx *ctx)
{
    state_of(ctx)->flags |= ENDING;
    run_and_complete(ctx);
}

void weir_decoder_resume(weir_ctx *ctx)
{
    weir__cumulation_look_again(&state_of(ctx)->cumulation);
    run_and_complete(ctx);
}

/* ---- slots ---- */

void weir_decoder_removed(weir_ctx *ctx)
{
    if ((state_of(ctx)->flags & DECODING) == 0) /* otherwise `run` sees it */
        let_go(ctx);
}

void weir_decoder_inactive(weir_ctx *ctx)
{
    end(ctx);
    weir_fire_inactive(ctx);
}

void weir_decoder_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_decoder_state *state = state_of(ctx);
    int err;

    if (!weir__is_bytes(msg)) {
        pass_on(ctx, msg);
        return;
    }
    if ((state->flags & (BROKEN | ENDED)) != 0) {
        weir_msg_release(msg);
        return;
    }
    err = weir__cumulation_add(&state->cumulation, msg);
    if (err < 0)
        give_up(ctx, err);
    else
        run(ctx);
}

void weir_decoder_read_complete(weir_ctx *ctx)
{
    weir_decoder_state *state = state_of(ctx);
    bool has_made = (state->flags & MADE) != 0;

    state->flags &= ~(uint32_t)MADE;
    if ((state->flags & DECODING) == 0)
        weir__cumulation_rest(&state->cumulation);
    weir__demand_read_complete(ctx, !has_made);
}

void weir_decoder_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        end(ctx);
    weir_fire_event(ctx, event);
}
