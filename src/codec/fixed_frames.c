/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include "codec/frames.h"

struct fixed_frames {
    weir_decoder_state decoder;
    size_t length;
};

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    const struct fixed_frames *fixed = weir_ctx_state(ctx);

    return weir__frames_take(ctx, in, fixed->length, 0, 0, ret_msg);
}

static int init(void *state, const void *length)
{
    struct fixed_frames *fixed = state;

    fixed->length = *(const size_t *)length;
    if (fixed->length == 0 || fixed->length > WEIR_BUF_MAX)
        return weir__frames_reject("fixed-frames", "the length must be 1 to WEIR_BUF_MAX bytes");
    return 0;
}

static const weir_decoder decoder = {
    .handler = {.name = "fixed-frames", .init = init, WEIR_DECODER_SLOTS(struct fixed_frames)},
    .decode = decode,
};

int weir_fixed_frames_add(weir_pipeline *pipeline, size_t length)
{
    return weir_pipeline_add_last(pipeline, &decoder.handler, &length);
}
