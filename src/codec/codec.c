/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/codec.h>

#include "codec/encoding.h"

void weir_codec_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const weir_codec *codec = (const weir_codec *)(const void *)weir_ctx_handler(
        ctx); /* the first member of its first member */

    weir__encoding_write(
        ctx,
        &(const weir__encoding){.type = codec->type, .encode = codec->encode, .size = codec->size},
        msg, done);
}

void weir_msg_codec_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const weir_msg_codec *codec = (const weir_msg_codec *)(const void *)weir_ctx_handler(
        ctx); /* the first member of its first member */

    weir__msg_encoding_write(ctx,
                             &(const weir__msg_encoding){.type = codec->type,
                                                         .accepts = codec->accepts,
                                                         .encode = codec->encode},
                             msg, done);
}
