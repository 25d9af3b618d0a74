/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/codec.h - messages that a decoder or an encoder of messages makes of one.
 *
 *      return weir_msg_list_add(out, weir_buf_msg(buf));
 *
 * Lists are made by the bases (weir/codec.h, weir/codec.h), and lent for a call.
 */
#ifndef WEIR_CODEC_H
#define WEIR_CODEC_H

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/handler.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_msg_list weir_msg_list;

/*
 * Adds a message at the end. What was made of the message so far is dropped if this fails, and the
 * caller returns the error.
 * Thread: the handler's.  Takes: msg.  Fails: -ENOMEM.
 */
WEIR_API int weir_msg_list_add(weir_msg_list *list, weir_msg *msg);

/*
 * How many messages there are.
 * Thread: the handler's.
 */
WEIR_API size_t weir_msg_list_count(const weir_msg_list *list);

/* --- decoder ---------------------------------------------------------------------------------- */

/*
 * The base of handlers that make messages of bytes. One of your own takes one
 * function, which need not care how the bytes came:
 *
 *      static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
 *      {
 *          weir_buf *four;
 *
 *          if (weir_buf_readable(in) < 4)
 *              return weir_decoder_need(ctx, 4);
 *          if (weir_buf_read_slice(in, 4, &four) < 0)
 *              return -ENOMEM;
 *          *ret_msg = weir_buf_msg(four);
 *          return 1;
 *      }
 *
 *      struct fours { weir_decoder_state decoder; };
 *      static const weir_decoder fours = {
 *          .handler = {.name = "fours", WEIR_DECODER_SLOTS(struct fours)}, .decode = decode};
 *      ...
 *      weir_pipeline_add_last(pipeline, &fours.handler, NULL);
 *
 * Bytes that do not make a message yet are kept until more have come, or the channel has ended.
 * What is not bytes is passed on. When the decoder is removed, what is left goes to the next
 * handler: this is how a protocol changes in mid-stream.
 *
 * With auto-read all messages pass. When it is switched off, the next message waits, and so does
 * the end of the input: until auto-read is on again, or weir_request_read asks for one message.
 * Messages that nobody has requested when the channel closes are released.
 */

/*
 * Reads one message from the readable bytes of `in`: returns 1, and leaves the message in
 * `*ret_msg`; or none there, if it has only taken bytes. 0: it needs more bytes than there are. An
 * error ends the decoding: it goes through the pipeline, and all further bytes are thrown away. To
 * return 1 without having taken a byte is an error, too: WEIR_ENOPROGRESS.
 *
 * Bytes taken stay taken, also with 0. `in` is lent for the call; slices of it may be kept. It may
 * pass on further messages with weir_decoder_pass, or remove itself: then it returns 0.
 */
typedef int weir_decode_fn(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

typedef struct weir_decoder {
    weir_handler handler; /* {.name = ..., WEIR_DECODER_SLOTS(state), further slots} */
    weir_decode_fn *decode;

    /* At the end of the stream, when `decode` needs more than ever comes: once, also with no bytes
     * at all, of which it may make a message; and again as long as it returns 1 and bytes are left.
     * NULL: what is left is dropped. */
    weir_decode_fn *decode_last;

    void (*removed)(weir_ctx *ctx); /* the handler's own, after what was left has been passed on */

    /* True if `decode` is to go on though no message was requested, for a handshake: further bytes
     * are requested for it, and what it makes is kept. NULL = never. */
    bool (*is_urgent)(weir_ctx *ctx);
    void *reserved[3]; /* NULL */
} weir_decoder;

/* What has come and was not decoded. Private. */
typedef struct weir_cumulation {
    weir_buf *in;           /* what `decode` is given */
    weir_composite *pieces; /* what has come after it */
    size_t need;            /* `decode` wants to see so much; 0 = it did not say */
    bool stuck;             /* `decode` has seen all of `in` */
} weir_cumulation;

/* The first member of a decoder's state. Private. */
typedef struct weir_decoder_state {
    weir_demand demand; /* first */
    weir_cumulation cumulation;
    const char *detail;
    uint32_t flags;
    void *reserved[2];
} weir_decoder_state;

/*
 * What decode returns when it needs to see `bytes` bytes in all: it is not called before there are
 * so many. This saves calls and, of large messages, copying. Returns 0.
 * Thread: the handler's.
 */
WEIR_API int weir_decoder_need(weir_ctx *ctx, size_t bytes);

/*
 * Has decode called again with the bytes that are there, as if they had just come: for a decoder
 * that has waited for something else than bytes. Not from within decode.
 * Thread: the handler's.
 */
WEIR_API void weir_decoder_resume(weir_ctx *ctx);

/*
 * What decode returns when the bytes make no sense: `detail` is a literal sentence that says why.
 * Returns err.
 * Thread: the handler's.
 */
WEIR_API int weir_decoder_fail(weir_ctx *ctx, int err, const char *detail);

/*
 * Passes a message on, behind those that were made before. One that was not requested waits.
 * Thread: the handler's.  Takes: msg.
 */
WEIR_API void weir_decoder_pass(weir_ctx *ctx, weir_msg *msg);

/*
 * True if a message that is passed on now was requested: auto-read is on, or a request has not been
 * answered.
 * Thread: the handler's.
 */
WEIR_API bool weir_decoder_has_demand(weir_ctx *ctx);

/*
 * What decode returns when its work is done: the decoder is removed as soon as the bytes that are
 * left may be passed on, and decode is not called again. Returns 0.
 * Thread: the handler's.
 */
WEIR_API int weir_decoder_finish(weir_ctx *ctx);

/* What the base has of a handler. Its init and deinit are the decoder's own. */
#define WEIR_DECODER_SLOTS(state)                                             \
    .state_size = sizeof(state), .removed = weir_decoder_removed,             \
    .inactive = weir_decoder_inactive, .read = weir_decoder_read,             \
    .read_complete = weir_decoder_read_complete, .event = weir_decoder_event, \
    .request_read = weir_decoder_request_read, .buffers_reads = true

/*
 * These slots. A decoder with slots of its own in their place calls them.
 * Thread: the handler's.  Takes: msg, event.
 */
WEIR_API void weir_decoder_removed(weir_ctx *ctx);
WEIR_API void weir_decoder_inactive(weir_ctx *ctx);
WEIR_API void weir_decoder_read(weir_ctx *ctx, weir_msg *msg);
WEIR_API void weir_decoder_read_complete(weir_ctx *ctx);
WEIR_API void weir_decoder_event(weir_ctx *ctx, weir_msg *event);
WEIR_API void weir_decoder_request_read(weir_ctx *ctx);

/* --- encoder ---------------------------------------------------------------------------------- */

/*
 * The base of handlers that make bytes of messages. One of your own takes one
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

/* --- msg decoder ------------------------------------------------------------------------------ */

/*
 * The base of handlers that make messages of messages that come in: none or
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
 * weir/codec.h.
 */

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
    .request_read = weir_msg_decoder_request_read, .buffers_reads = true

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

/* --- msg encoder ------------------------------------------------------------------------------ */

/*
 * The base of handlers that make messages of messages that go out: none or
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
 * of it has been sent; where nothing was made, at once. For bytes there is weir/codec.h.
 */

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

/* --- codec ------------------------------------------------------------------------------------ */

/*
 * A decoder and an encoder in one handler, with one state.
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
