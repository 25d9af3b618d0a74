/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/codec.h - the bases of decoders and encoders.
 *
 *      weir_decoder        bytes -> messages       weir_encoder        messages -> bytes
 *      weir_msg_decoder    messages -> messages    weir_msg_encoder    messages -> messages
 *      weir_codec, weir_msg_codec                  both directions in one handler
 *
 * A codec of your own is a const table with one function per direction. Messages of other types are
 * passed on. Ready-made codecs: weir/frames.h, weir/text_codecs.h.
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

/* --- decoder: bytes to messages --------------------------------------------------------------- */

/*
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
 *      err = weir_pipeline_add_last(pipeline, &fours.handler, NULL);
 *
 * The base accumulates bytes until `decode` can make a message of them, however they were split on
 * the way. A decoder that is removed passes its remaining bytes to the next handler: this is how a
 * connection switches protocols.
 *
 * Messages pass freely while auto-read is on. With auto-read off, the next message and the end of
 * the input wait until auto-read is switched on, or until weir_request_read requests one message.
 * Messages that were not requested when the channel closes are released.
 */

/*
 * Decodes one message from the readable bytes of `in`. Returns 1 with the message in `*ret_msg`, or
 * 1 without a message if it only consumed bytes; 0 if it needs more bytes; or an error, which is
 * fired through the pipeline and ends decoding: all further bytes are discarded. Returning 1
 * without having consumed a byte is the error WEIR_ENOPROGRESS.
 *
 * Consumed bytes stay consumed, even if 0 is returned. `in` is borrowed for the call; slices of it
 * may be kept. The function may pass on further messages with weir_decoder_pass. It may remove the
 * decoder, and then returns 0.
 */
typedef int weir_decode_fn(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

typedef struct weir_decoder {
    weir_handler handler; /* {.name = ..., WEIR_DECODER_SLOTS(state), further slots} */
    weir_decode_fn *decode;

    /* Called at the end of the stream for the bytes that `decode` could not use: once, even without
     * bytes, in which case it may still make a message; and again while it returns 1 and bytes are
     * left. NULL: these bytes are discarded. */
    weir_decode_fn *decode_last;

    void (*removed)(weir_ctx *ctx); /* the handler's own; called after the rest was passed on */

    /* True if `decode` is to run although no message was requested, as during a handshake. The base
     * then requests bytes by itself, and queues the messages that `decode` makes. NULL = never. */
    bool (*is_urgent)(weir_ctx *ctx);
    void *reserved[3]; /* NULL */
} weir_decoder;

/* Bytes that are not decoded yet. Private. */
typedef struct weir_cumulation {
    weir_buf *in;           /* what `decode` sees */
    weir_composite *pieces; /* what arrived after it */
    size_t need;            /* bytes that `decode` asked for; 0 = unknown */
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
 * Makes `decode` wait until `bytes` bytes are readable. Saves calls, and for large messages copies.
 * Returns 0, which `decode` returns.
 * Thread: the handler's.
 */
WEIR_API int weir_decoder_need(weir_ctx *ctx, size_t bytes);

/*
 * Calls `decode` again with the bytes that are already there, for a decoder that waited for
 * something other than bytes. Not to be called from within `decode`.
 * Thread: the handler's.
 */
WEIR_API void weir_decoder_resume(weir_ctx *ctx);

/*
 * Fails decoding: `detail`, a string literal, says why. Returns `err`, which `decode` returns.
 * Thread: the handler's.
 */
WEIR_API WEIR_MUST_USE int weir_decoder_fail(weir_ctx *ctx, int err, const char *detail);

/*
 * Passes a message on after those made before it. It waits if it was not requested.
 * Thread: the handler's.  Takes: msg.
 */
WEIR_API void weir_decoder_pass(weir_ctx *ctx, weir_msg *msg);

/*
 * True if the next message will pass without waiting: auto-read is on, or a request is unanswered.
 * Thread: the handler's.
 */
WEIR_API bool weir_decoder_has_demand(weir_ctx *ctx);

/*
 * Ends decoding: `decode` is not called again, and the decoder is removed as soon as its remaining
 * bytes may be passed on. Returns 0, which `decode` returns.
 * Thread: the handler's.
 */
WEIR_API int weir_decoder_finish(weir_ctx *ctx);

/* The slots that the base provides. `init` and `deinit` stay the handler's own. */
#define WEIR_DECODER_SLOTS(state)                                             \
    .state_size = sizeof(state), .removed = weir_decoder_removed,             \
    .inactive = weir_decoder_inactive, .read = weir_decoder_read,             \
    .read_complete = weir_decoder_read_complete, .event = weir_decoder_event, \
    .request_read = weir_decoder_request_read, .buffers_reads = true

/*
 * The functions behind these slots. A handler that overrides one of the slots calls its function.
 * Thread: the handler's.  Takes: msg, event.
 */
WEIR_API void weir_decoder_removed(weir_ctx *ctx);
WEIR_API void weir_decoder_inactive(weir_ctx *ctx);
WEIR_API void weir_decoder_read(weir_ctx *ctx, weir_msg *msg);
WEIR_API void weir_decoder_read_complete(weir_ctx *ctx);
WEIR_API void weir_decoder_event(weir_ctx *ctx, weir_msg *event);
WEIR_API void weir_decoder_request_read(weir_ctx *ctx);

/* --- encoder: messages to bytes --------------------------------------------------------------- */

/*
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
 */

/* Appends the bytes of a borrowed message to `out`. An error fails the write; nothing is sent. */
typedef int weir_encode_fn(weir_ctx *ctx, weir_msg *msg, weir_buf *out);

typedef struct weir_encoder {
    weir_handler handler; /* {.name = ..., WEIR_ENCODER_SLOTS, further slots} */
    const weir_msg_type *type;
    weir_encode_fn *encode;
    size_t (*size)(const weir_msg *msg); /* estimated number of bytes; NULL = 256 */
    void *reserved[4];                   /* NULL */
} weir_encoder;

/* The slot that the base provides. `init` and `deinit` stay the handler's own. */
#define WEIR_ENCODER_SLOTS .write = weir_encoder_write

/*
 * The function behind this slot. A handler that overrides the slot calls it.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/* --- message list ----------------------------------------------------------------------------- */

/* Output of the message codecs below. The base creates it and lends it for the call. */
typedef struct weir_msg_list weir_msg_list;

/*
 * Appends a message. If this fails, the caller returns the error, and the base releases the
 * messages of the list.
 * Thread: the handler's.  Takes: msg.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_msg_list_add(weir_msg_list *list, weir_msg *msg);

/*
 * The number of messages in the list.
 * Thread: the handler's.
 */
WEIR_API size_t weir_msg_list_count(const weir_msg_list *list);

/* --- msg decoder: messages to messages, inbound ----------------------------------------------- */

/*
 *      static int decode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
 *      {
 *          struct order *order = parse_order(weir_buf_of(msg));
 *
 *          if (order == NULL)
 *              return weir_msg_decoder_fail(ctx, WEIR_EMALFORMED, "an order without a number");
 *          return weir_msg_list_add(out, &order->msg);
 *      }
 *
 *      struct orders { weir_msg_decoder_state decoder; };
 *      static const weir_msg_decoder orders = {
 *          .handler = {.name = "orders", WEIR_MSG_DECODER_SLOTS(struct orders)},
 *          .type = &weir_buf_type, .decode = decode};
 *
 * Each message becomes zero or more messages. With auto-read off, they wait as those of a
 * weir_decoder do. For a byte stream, use weir_decoder.
 */

/*
 * Appends the messages made of a borrowed message to `out`; to pass the message itself on, it
 * retains it. An error is fired through the pipeline in place of the messages, and decoding
 * continues with the next message.
 */
typedef int weir_msg_decode_fn(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out);

/*
 * Makes the next message of a borrowed message, for decoders whose messages become much larger, as
 * when they decompress: one at a time, and only when it is requested. Returns 1 if there is more:
 * it is called again with the same message; 0 after the last one. Both with a message in
 * `*ret_msg`, or without. To pass the message itself on, it retains it. An error is fired through
 * the pipeline, and decoding continues with the next message. Messages that arrive meanwhile wait.
 */
typedef int weir_msg_decode_next_fn(weir_ctx *ctx, weir_msg *msg, weir_msg **ret_msg);

typedef struct weir_msg_decoder {
    weir_handler handler;      /* {.name = ..., WEIR_MSG_DECODER_SLOTS(state), further slots} */
    const weir_msg_type *type; /* the type to decode; NULL = decided by `accepts` */
    bool (*accepts)(const weir_msg *msg); /* NULL as well = every message */
    weir_msg_decode_fn *decode;
    weir_msg_decode_next_fn *decode_next; /* instead of `decode` */
    void *reserved[3];                    /* NULL */
} weir_msg_decoder;

/* The first member of a decoder's state. Private. */
typedef struct weir_msg_decoder_state {
    weir_demand demand; /* first */
    const char *detail;
    weir_msg *current;      /* of decode_next */
    weir_msg_queue waiting; /* behind it */
} weir_msg_decoder_state;

/*
 * Fails the message: `detail`, a string literal, says why. Returns `err`, which `decode` returns.
 * Thread: the handler's.
 */
WEIR_API WEIR_MUST_USE int weir_msg_decoder_fail(weir_ctx *ctx, int err, const char *detail);

/* The slots that the base provides. `init` and `deinit` stay the handler's own. */
#define WEIR_MSG_DECODER_SLOTS(state)                                                 \
    .state_size = sizeof(state), .removed = weir_msg_decoder_removed,                 \
    .inactive = weir_msg_decoder_inactive, .read = weir_msg_decoder_read,             \
    .read_complete = weir_msg_decoder_read_complete, .event = weir_msg_decoder_event, \
    .request_read = weir_msg_decoder_request_read, .buffers_reads = true

/*
 * The functions behind these slots. A handler that overrides one of the slots calls its function.
 * Thread: the handler's.  Takes: msg, event.
 */
WEIR_API void weir_msg_decoder_removed(weir_ctx *ctx);
WEIR_API void weir_msg_decoder_inactive(weir_ctx *ctx);
WEIR_API void weir_msg_decoder_read(weir_ctx *ctx, weir_msg *msg);
WEIR_API void weir_msg_decoder_read_complete(weir_ctx *ctx);
WEIR_API void weir_msg_decoder_event(weir_ctx *ctx, weir_msg *event);
WEIR_API void weir_msg_decoder_request_read(weir_ctx *ctx);

/* --- msg encoder: messages to messages, outbound ---------------------------------------------- */

/*
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
 * Each message becomes zero or more messages. The promise of the write completes when all of them
 * have been sent; at once if there are none.
 */

/*
 * Appends the messages made of a borrowed message to `out`; to pass the message itself on, it
 * retains it. An error fails the write; nothing is sent.
 */
typedef int weir_msg_encode_fn(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out);

typedef struct weir_msg_encoder {
    weir_handler handler;                 /* {.name = ..., WEIR_MSG_ENCODER_SLOTS, further slots} */
    const weir_msg_type *type;            /* the type to encode; NULL = decided by `accepts` */
    bool (*accepts)(const weir_msg *msg); /* NULL as well = every message */
    weir_msg_encode_fn *encode;
    void *reserved[4]; /* NULL */
} weir_msg_encoder;

/* The slot that the base provides. `init` and `deinit` stay the handler's own. */
#define WEIR_MSG_ENCODER_SLOTS .write = weir_msg_encoder_write

/*
 * The function behind this slot. A handler that overrides the slot calls it.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_msg_encoder_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/* --- codec: a decoder and an encoder in one handler ------------------------------------------- */

/*
 *      struct calls { weir_decoder_state decoder; uint32_t next_id; };
 *      static const weir_codec calls = {
 *          .decoder = {.handler = {.name = "calls", WEIR_CODEC_SLOTS(struct calls)},
 *                      .decode = decode},
 *          .type = &call_type, .encode = encode};
 *      ...
 *      err = weir_pipeline_add_last(pipeline, &calls.decoder.handler, NULL);
 *
 * Both directions share one state. weir_codec combines weir_decoder and weir_encoder,
 * weir_msg_codec combines weir_msg_decoder and weir_msg_encoder.
 */

typedef struct weir_codec {
    weir_decoder decoder;      /* {.handler = {.name = ..., WEIR_CODEC_SLOTS(state)}, ...} */
    const weir_msg_type *type; /* the type to encode */
    weir_encode_fn *encode;
    size_t (*size)(const weir_msg *msg); /* estimated number of bytes; NULL = 256 */
    void *reserved[4];                   /* NULL */
} weir_codec;

typedef struct weir_msg_codec {
    weir_msg_decoder decoder;  /* {.handler = {.name = ..., WEIR_MSG_CODEC_SLOTS(state)}, ...} */
    const weir_msg_type *type; /* the type to encode; NULL = decided by `accepts` */
    bool (*accepts)(const weir_msg *msg);
    weir_msg_encode_fn *encode;
    void *reserved[4]; /* NULL */
} weir_msg_codec;

#define WEIR_CODEC_SLOTS(state) WEIR_DECODER_SLOTS(state), .write = weir_codec_write
#define WEIR_MSG_CODEC_SLOTS(state) WEIR_MSG_DECODER_SLOTS(state), .write = weir_msg_codec_write

/*
 * The functions behind the `write` slots. A codec that overrides the slot calls its function.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_codec_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);
WEIR_API void weir_msg_codec_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

#ifdef __cplusplus
}
#endif

#endif
