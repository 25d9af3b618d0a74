/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/codec.h - a decoder and an encoder in one handler, with one state.
 *
 *      struct calls { weir_decoder_state decoder; uint32_t next_id; };
 *      static const weir_codec calls = {
 *          .decoder = {.handler = {.name = "calls", WEIR_CODEC_SLOTS(struct calls)},
 *                      .decode = decode},
 *          .type = &call_type, .encode = encode};
 *      ...
 *      weir_pipeline_add_last(pipeline, &calls.decoder.handler, NULL);
 *
 * weir_codec is of bytes on the one side and messages on the other; weir_msg_codec is of messages
 * on both. Each side is as its own header says.
 */
#ifndef WEIR_CODEC_H
#define WEIR_CODEC_H

#include <weir/decoder.h>
#include <weir/encoder.h>
#include <weir/msg_decoder.h>
#include <weir/msg_encoder.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_codec {
    weir_decoder decoder;      /* {.handler = {.name = ..., WEIR_CODEC_SLOTS(state)}, ...} */
    const weir_msg_type *type; /* what is encoded */
    weir_encode_fn *encode;
    size_t (*size)(const weir_msg *msg); /* about how many bytes it will be; NULL = 256 */
    void *reserved[4];                   /* NULL */
} weir_codec;

typedef struct weir_msg_codec {
    weir_msg_decoder decoder;  /* {.handler = {.name = ..., WEIR_MSG_CODEC_SLOTS(state)}, ...} */
    const weir_msg_type *type; /* what is encoded; NULL = `accepts` says */
    bool (*accepts)(const weir_msg *msg);
    weir_msg_encode_fn *encode;
    void *reserved[4]; /* NULL */
} weir_msg_codec;

#define WEIR_CODEC_SLOTS(state) WEIR_DECODER_SLOTS(state), .write = weir_codec_write
#define WEIR_MSG_CODEC_SLOTS(state) WEIR_MSG_DECODER_SLOTS(state), .write = weir_msg_codec_write

/*
 * These slots, beside those of the decoders. A codec with one of its own in their place calls them.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_codec_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);
WEIR_API void weir_msg_codec_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

#ifdef __cplusplus
}
#endif

#endif
