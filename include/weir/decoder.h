/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/decoder.h - the base of handlers that make messages of bytes. One of your own takes one
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
#ifndef WEIR_DECODER_H
#define WEIR_DECODER_H

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/ctx.h>
#include <weir/demand.h>
#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

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
WEIR_API bool weir_decoder_is_wanted(weir_ctx *ctx);

/*
 * What decode returns when its work is done: the decoder is removed as soon as the bytes that are
 * left may be passed on, and decode is not called again. Returns 0.
 * Thread: the handler's.
 */
WEIR_API int weir_decoder_leave(weir_ctx *ctx);

/* What the base has of a handler. Its init and deinit are the decoder's own. */
#define WEIR_DECODER_SLOTS(state)                                             \
    .state_size = sizeof(state), .removed = weir_decoder_removed,             \
    .inactive = weir_decoder_inactive, .read = weir_decoder_read,             \
    .read_complete = weir_decoder_read_complete, .event = weir_decoder_event, \
    .request_read = weir_decoder_request_read, .keeps_reads = true

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

#ifdef __cplusplus
}
#endif

#endif
