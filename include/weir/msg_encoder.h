/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/msg_encoder.h - the base of handlers that make messages of messages that go out: none or
 * several of one.
 *
 *      static int encode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
 *      {
 *          int err = weir_msg_list_add(out, header_of(msg));
 *
 *          return err == 0 ? weir_msg_list_add(out, weir_msg_retain(msg)) : err;
 *      }
 *
 *      static const weir_msg_encoder headers = {
 *          .handler = {.name = "headers", WEIR_MSG_ENCODER_SLOTS},
 *          .type = &weir_buf_type, .encode = encode};
 *
 * What is not of its type is passed on. The promise of the write completes when all that was made
 * of it has been sent; where nothing was made, at once. For bytes there is weir/encoder.h.
 */
#ifndef WEIR_MSG_ENCODER_H
#define WEIR_MSG_ENCODER_H

#include <weir/ctx.h>
#include <weir/handler.h>
#include <weir/msg_list.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds what it makes of a message, which is lent, to `out`; to pass the message itself on it
 * retains it. An error fails the write, and nothing of it is sent.
 */
typedef int weir_msg_encode_fn(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out);

typedef struct weir_msg_encoder {
    weir_handler handler;                 /* {.name = ..., WEIR_MSG_ENCODER_SLOTS, further slots} */
    const weir_msg_type *type;            /* which messages; NULL = `accepts` says */
    bool (*accepts)(const weir_msg *msg); /* NULL too: all */
    weir_msg_encode_fn *encode;
    void *reserved[4]; /* NULL */
} weir_msg_encoder;

/* What the base has of a handler. Its init and deinit are the encoder's own. */
#define WEIR_MSG_ENCODER_SLOTS .write = weir_msg_encoder_write

/*
 * This slot. An encoder with one of its own in its place calls it.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_msg_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

#ifdef __cplusplus
}
#endif

#endif
