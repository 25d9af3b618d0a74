/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/encoder.h - the base of handlers that make bytes of messages. One of your own takes one
 * function:
 *
 *      static int encode(weir_ctx *ctx, weir_msg *msg, weir_buf *out)
 *      {
 *          const struct greeting *greeting = (const struct greeting *)msg;
 *
 *          return weir_buf_printf(out, "hello %s\n", greeting->name);
 *      }
 *
 *      static const weir_encoder greetings = {
 *          .handler = {.name = "greetings", WEIR_ENCODER_SLOTS},
 *          .type = &greeting_type, .encode = encode};
 *
 * What is not of its type is passed on. Together with a decoder it makes a codec: one table may
 * have the slots of both, of which the decoder's comes first (weir/codec.h).
 */
#ifndef WEIR_ENCODER_H
#define WEIR_ENCODER_H

#include <weir/buf.h>
#include <weir/ctx.h>
#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Appends the bytes of a message, which is lent, to `out`. An error fails the write, and nothing of
 * the message is sent.
 */
typedef int weir_encode_fn(weir_ctx *ctx, weir_msg *msg, weir_buf *out);

typedef struct weir_encoder {
    weir_handler handler; /* {.name = ..., WEIR_ENCODER_SLOTS, further slots} */
    const weir_msg_type *type;
    weir_encode_fn *encode;
    size_t (*size)(const weir_msg *msg); /* about how many bytes it will be; NULL = 256 */
    void *reserved[4];                   /* NULL */
} weir_encoder;

/* What the base has of a handler. Its init and deinit are the encoder's own. */
#define WEIR_ENCODER_SLOTS .write = weir_encoder_write

/*
 * This slot. An encoder with one of its own in its place calls it.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

#ifdef __cplusplus
}
#endif

#endif
