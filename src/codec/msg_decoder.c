/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/codec.h>

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

void weir_msg_decoder_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_msg_decoder *decoder = decoder_of(ctx);
    weir_msg_list out;
    int err;

    if (!weir__msg_matches(decoder->type, decoder->accepts, msg)) {
        weir__demand_pass(ctx, msg);
        return;
    }
    weir__msg_list_init(&out);
    state_of(ctx)->detail = NULL;
    err = decoder->decode(ctx, msg, &out);
    weir_msg_release(msg);
    if (err < 0) {
        const char *detail = state_of(ctx)->detail;

        weir__msg_list_clear(&out);
        weir_fire_error(ctx, err, detail != NULL ? detail : "decoding failed");
    }
    weir__demand_pass_all(ctx, out.msgs, out.count);
    weir__msg_list_deinit(&out);
}

void weir_msg_decoder_read_complete(weir_ctx *ctx)
{
    weir__demand_read_complete(ctx, &weir__demand_buffered);
}

void weir_msg_decoder_event(weir_ctx *ctx, weir_msg *event)
{
    weir__demand_event(ctx, event, &weir__demand_buffered);
}

void weir_msg_decoder_request_read(weir_ctx *ctx)
{
    weir__demand_request_read(ctx, &weir__demand_buffered);
}

void weir_msg_decoder_inactive(weir_ctx *ctx)
{
    weir__demand_inactive(ctx);
}

void weir_msg_decoder_removed(weir_ctx *ctx)
{
    weir__demand_removed(ctx);
}
