/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/codec.h>

#include "codec/encoding.h"

#define DEFAULT_SIZE 256

static int encode(weir_ctx *ctx, const weir__encoding *encoding, weir_msg *msg, weir_buf **ret_out)
{
    size_t size = encoding->size != NULL ? encoding->size(msg) : DEFAULT_SIZE;
    weir_buf *out;
    int err = weir_buf_create(size, 0, &out);

    if (err < 0)
        return err;
    err = encoding->encode(ctx, msg, out);
    if (err < 0)
        weir_buf_release(out);
    else
        *ret_out = out;
    return err;
}

void weir__encoding_write(weir_ctx *ctx, const weir__encoding *encoding, weir_msg *msg,
                          weir_promise *done)
{
    weir_buf *out = NULL;
    int err;

    if (!weir_msg_is(msg, encoding->type)) {
        weir_write(ctx, msg, done);
        return;
    }
    err = encode(ctx, encoding, msg, &out);
    weir_msg_release(msg);
    if (err < 0)
        weir_ctx_report(ctx, done, err, "encoding failed");
    else
        weir_write(ctx, weir_buf_msg(out), done);
}

void weir_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const weir_encoder *encoder =
        (const weir_encoder *)(const void *)weir_ctx_handler(ctx); /* its first member */

    weir__encoding_write(ctx,
                         &(const weir__encoding){.type = encoder->type,
                                                 .encode = encoder->encode,
                                                 .size = encoder->size},
                         msg, done);
}
