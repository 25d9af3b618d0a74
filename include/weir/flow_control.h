/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/flow_control.h - handlers and queues that pace messages.
 *
 *      weir_flow_control_add           one inbound message for each read request
 *      weir_flush_consolidation_add    one flush, one system call, for many
 *      weir_pending_writes             a queue of writes for handlers that delay them
 */
#ifndef WEIR_FLOW_CONTROL_H
#define WEIR_FLOW_CONTROL_H

#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- flow control ----------------------------------------------------------------------------- */

/*
 * Adds the handler at the tail. It queues inbound messages and passes one on for each
 * weir_request_read. Decoders and TLS do this by themselves; a handler of your own that passes on
 * several messages per read needs this one behind it:
 *
 *      err = weir_pipeline_add_last(pipeline, &splits, NULL);
 *      err = weir_flow_control_add(pipeline);
 *      err = weir_pipeline_add_last(pipeline, &app, NULL);      weir_request_read: one message
 *
 * Messages pass freely while auto-read is on. With auto-read off, the next message waits, and the
 * socket is not read while messages are queued. On removal the handler passes its messages on; when
 * the channel closes, messages that were not requested are released.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_flow_control_add(weir_pipeline *pipeline);

/* --- flush consolidation ---------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_FLUSH_CONSOLIDATION_OPTIONS(.max_flushes = ...). */
typedef struct weir_flush_consolidation_options {
    size_t size;
    int max_flushes; /* flush at the latest after this number of flushes; default 256 */
} weir_flush_consolidation_options;

#define WEIR_FLUSH_CONSOLIDATION_OPTIONS(...) \
    WEIR_OPTIONS(weir_flush_consolidation_options, __VA_ARGS__)

/*
 * Adds the handler at the tail; the handlers that flush come after it. A flush waits for the end of
 * the loop's turn, or for max_flushes flushes: this saves system calls where many small writes come
 * from other channels, tasks or threads, at the cost of a delay. Within reads there is nothing to
 * save: a channel itself sends once, after read_complete.
 *
 * Waiting flushes are passed on before a close, a half closure or a disconnect, when an error is
 * fired, when the channel becomes unwritable, and when the handler is removed.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int
weir_flush_consolidation_add(weir_pipeline *pipeline,
                             const weir_flush_consolidation_options *options);

/* --- pending writes --------------------------------------------------------------------------- */

/*
 * A queue of delayed writes, with the close or half closure that waits for them. It is part of a
 * handler's state:
 *
 *      static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
 *      {
 *          struct state *state = weir_ctx_state(ctx);
 *
 *          (void)weir_pending_writes_add(ctx, &state->writes, msg, done);
 *      }
 *
 *      first .......... flushed ......... last
 *      <-- may be sent --><-- not yet -->
 *
 * Queued writes count against the channel's water marks (weir_ctx_add_pending_bytes). The handler
 * must pass them on or fail them on `inactive` and when it is removed.
 */

typedef struct weir_pending_write {
    struct weir_pending_write *next;
    weir_msg *msg;
    weir_promise *done; /* retained; may be NULL */
    int64_t cost;       /* against the marks */
    int64_t note;       /* for the handler's use; initially 0 */
} weir_pending_write;

/* Read-only for the handler. All zero = empty, as a new handler's state is. */
typedef struct weir_pending_writes {
    weir_pending_write *first;
    weir_pending_write *last;
    size_t count;
    size_t flushed;              /* the number of flushed writes, from the front */
    int64_t cost;                /* of all writes */
    bool close_deferred;         /* a close waits for the queue */
    weir_promise *close_done;    /* retained */
    bool shutdown_deferred;      /* a half closure waits; it is passed on before the close */
    weir_promise *shutdown_done; /* retained */
} weir_pending_writes;

/*
 * Appends a write. Returns NULL, and fails the write, without memory or above the channel's limit.
 * If this makes the channel unwritable, the writability event may have run other handlers, which
 * may have passed the write on: then the returned pointer is invalid.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API weir_pending_write *weir_pending_writes_add(weir_ctx *ctx, weir_pending_writes *writes,
                                                     weir_msg *msg, weir_promise *done);

/*
 * Marks all writes as flushed. For the handler's `flush`.
 * Thread: any, one at a time.
 */
WEIR_API void weir_pending_writes_flush(weir_pending_writes *writes);

/*
 * Removes the first write and passes it on. The queue must not be empty.
 * Thread: the handler's.
 */
WEIR_API void weir_pending_writes_pass(weir_ctx *ctx, weir_pending_writes *writes);

/*
 * Removes the first write; it no longer counts against the marks. The queue must not be empty.
 * Thread: the handler's.  Gives: the message, and done, which may be NULL.
 */
WEIR_API WEIR_MUST_USE weir_msg *
weir_pending_writes_take(weir_ctx *ctx, weir_pending_writes *writes, weir_promise **ret_done);

/*
 * Removes the first write without uncharging it, for a handler that merges writes: its cost still
 * counts against the marks, until weir_write_pending writes the merged message with the sum of the
 * costs. weir_pending_writes_shorten does the same for the first `bytes` bytes of the first write.
 * Thread: the handler's.  Gives: the message, and done, which may be NULL.
 */
WEIR_API WEIR_MUST_USE weir_msg *weir_pending_writes_take_charged(weir_pending_writes *writes,
                                                                  weir_promise **ret_done,
                                                                  int64_t *ret_cost);
WEIR_API void weir_pending_writes_shorten(weir_pending_writes *writes, int64_t bytes);

/*
 * Fails the first write, which must exist; or all writes and the deferred half closure, after which
 * a deferred close is passed on.
 * Thread: the handler's.  Lends until it returns: detail.
 */
WEIR_API void weir_pending_writes_fail_first(weir_ctx *ctx, weir_pending_writes *writes, int err,
                                             const char *detail);
WEIR_API void weir_pending_writes_fail(weir_ctx *ctx, weir_pending_writes *writes, int err,
                                       const char *detail);

/*
 * Flushes the queue, and closes the channel once it is empty. For the handler's `close`. The
 * promises of repeated closes complete when the channel has closed.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_pending_writes_close(weir_ctx *ctx, weir_pending_writes *writes,
                                        weir_promise *done);

/*
 * The same, but defers the close even if the queue is empty, until
 * weir_pending_writes_run_deferred: for handlers that have to send something first.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_pending_writes_defer_close(weir_ctx *ctx, weir_pending_writes *writes,
                                              weir_promise *done);

/*
 * The same two for the handler's `shutdown_output`. The promises of repeated half closures complete
 * together. A half closure after a deferred close fails.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_pending_writes_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                                  weir_promise *done);
WEIR_API void weir_pending_writes_defer_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                                        weir_promise *done);

/*
 * Fails the deferred half closure, if there is one.
 * Thread: the handler's.  Lends until it returns: detail.
 */
WEIR_API void weir_pending_writes_fail_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                                       int err, const char *detail);

/*
 * True if a close or half closure is deferred: later writes must fail with WEIR_ECLOSED.
 * Thread: the handler's.
 */
WEIR_API bool weir_pending_writes_is_ending(const weir_pending_writes *writes);

/*
 * If the queue is empty, passes on the deferred half closure and then the deferred close. To be
 * called after writes have left the queue.
 * Thread: the handler's.
 */
WEIR_API void weir_pending_writes_run_deferred(weir_ctx *ctx, weir_pending_writes *writes);

#ifdef __cplusplus
}
#endif

#endif
