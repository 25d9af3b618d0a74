/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/msg_decoder.h>

#include "codec/demand.h"
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

static void tell_error(weir_ctx *ctx, int err)
{
    const char *detail = state_of(ctx)->detail;

    weir_fire_error(ctx, err, detail != NULL ? detail : "a message could not be decoded");
}

static void pass_on(weir_ctx *ctx, weir_msg *msg)
{
    state_of(ctx)->has_made = true;
    weir_fire_read(ctx, msg);
}

void weir_msg_decoder_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_msg_decoder *decoder = decoder_of(ctx);
    weir_msg_list out;
    int err;

    if (!weir__is_for(decoder->type, decoder->accepts, msg)) {
        pass_on(ctx, msg);
        return;
    }
    weir__msg_list_init(&out);
    state_of(ctx)->has_taken = true;
    state_of(ctx)->detail = NULL;
    err = decoder->decode(ctx, msg, &out);
    weir_msg_release(msg);
    if (err < 0) {
        weir__msg_list_clear(&out);
        tell_error(ctx, err);
    }
    for (size_t i = 0; i < out.count; i++)
        pass_on(ctx, out.msgs[i]);
    weir__msg_list_deinit(&out);
}

void weir_msg_decoder_read_complete(weir_ctx *ctx)
{
    weir_msg_decoder_state *state = state_of(ctx);
    bool is_owed = state->has_taken && !state->has_made;

    state->has_taken = false;
    state->has_made = false;
    weir__demand_read_complete(ctx, is_owed);
}
