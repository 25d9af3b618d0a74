/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/msg_decoder.h - the base of handlers that make messages of messages that come in: none or
 * several of one. One of your own takes one function:
 *
 *      static int decode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
 *      {
 *          struct order *order = parse_order(weir_buf_of(msg));
 *
 *          if (order == NULL)
 *              return weir_msg_decoder_fail(ctx, WEIR_EMALFORMED, "an order has no number");
 *          return weir_msg_list_add(out, &order->msg);
 *      }
 *
 *      struct orders { weir_msg_decoder_state decoder; };
 *      static const weir_msg_decoder orders = {
 *          .handler = {.name = "orders", WEIR_MSG_DECODER_SLOTS(struct orders)},
 *          .type = &weir_buf_type, .decode = decode};
 *
 * What is not of its type is passed on. When auto-read is switched off, the next message waits
 * until it is on again, or weir_request_read asks for one. For bytes that come in pieces there is
 * weir/decoder.h.
 */
#ifndef WEIR_MSG_DECODER_H
#define WEIR_MSG_DECODER_H

#include <weir/ctx.h>
#include <weir/demand.h>
#include <weir/handler.h>
#include <weir/msg_list.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds what it makes of a message, which is lent, to `out`; to pass the message itself on it
 * retains it. An error goes through the pipeline, in place of the messages; the next message is
 * decoded all the same. weir_msg_decoder_fail says why in words.
 */
typedef int weir_msg_decode_fn(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out);

typedef struct weir_msg_decoder {
    weir_handler handler;      /* {.name = ..., WEIR_MSG_DECODER_SLOTS(state), further slots} */
    const weir_msg_type *type; /* which messages; NULL = `accepts` says */
    bool (*accepts)(const weir_msg *msg); /* NULL too: all */
    weir_msg_decode_fn *decode;
    void *reserved[4]; /* NULL */
} weir_msg_decoder;

/* The first member of a decoder's state. Private. */
typedef struct weir_msg_decoder_state {
    weir_demand demand; /* first */
    const char *detail;
} weir_msg_decoder_state;

/*
 * What decode returns when a message makes no sense: `detail` is a literal sentence that says why.
 * Returns err.
 * Thread: the handler's.
 */
WEIR_API int weir_msg_decoder_fail(weir_ctx *ctx, int err, const char *detail);

/* What the base has of a handler. Its init and deinit are the decoder's own. */
#define WEIR_MSG_DECODER_SLOTS(state)                                                 \
    .state_size = sizeof(state), .removed = weir_msg_decoder_removed,                 \
    .inactive = weir_msg_decoder_inactive, .read = weir_msg_decoder_read,             \
    .read_complete = weir_msg_decoder_read_complete, .event = weir_msg_decoder_event, \
    .request_read = weir_msg_decoder_request_read, .keeps_reads = true

/*
 * These slots. A decoder with slots of its own in their place calls them.
 * Thread: the handler's.  Takes: msg, event.
 */
WEIR_API void weir_msg_decoder_removed(weir_ctx *ctx);
WEIR_API void weir_msg_decoder_inactive(weir_ctx *ctx);
WEIR_API void weir_msg_decoder_read(weir_ctx *ctx, weir_msg *msg);
WEIR_API void weir_msg_decoder_read_complete(weir_ctx *ctx);
WEIR_API void weir_msg_decoder_event(weir_ctx *ctx, weir_msg *event);
WEIR_API void weir_msg_decoder_request_read(weir_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
