/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/encoder.h>

#define SIZE_USUAL 256

static const weir_encoder *encoder_of(const weir_ctx *ctx)
{
    return (const weir_encoder *)(const void *)weir_ctx_handler(ctx); /* its first member */
}

static int encode(weir_ctx *ctx, weir_msg *msg, weir_buf **ret_out)
{
    const weir_encoder *encoder = encoder_of(ctx);
    size_t size = encoder->size != NULL ? encoder->size(msg) : SIZE_USUAL;
    weir_buf *out;
    int err = weir_buf_create(size, 0, &out);

    if (err < 0)
        return err;
    err = encoder->encode(ctx, msg, out);
    if (err < 0)
        weir_buf_release(out);
    else
        *ret_out = out;
    return err;
}

void weir_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_buf *out = NULL;
    int err;

    if (!weir_msg_is(msg, encoder_of(ctx)->type)) {
        weir_write(ctx, msg, done);
        return;
    }
    err = encode(ctx, msg, &out);
    weir_msg_release(msg);
    if (err < 0)
        weir_ctx_report(ctx, done, err, "a message could not be encoded");
    else
        weir_write(ctx, weir_buf_msg(out), done);
}
