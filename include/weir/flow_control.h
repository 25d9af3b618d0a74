/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/flow_control.h - a handler that lets through one message for each read that is asked for.
 *
 * Decoders and TLS do so by themselves (weir/handler.h). A handler of your own that passes on
 * several messages for one read needs this one behind it, which keeps them until they are asked
 * for:
 *
 *      weir_pipeline_add_last(pipeline, &splits, NULL);
 *      weir_flow_control_add(pipeline);
 *      weir_pipeline_add_last(pipeline, &app, NULL);      weir_request_read: one message
 *
 * With auto-read all of them pass; when that is switched off, from the next message on they wait.
 * The socket is not read while there are messages to be asked for. A handler that is removed passes
 * on what it has; when the channel closes, what nobody has asked for is dropped.
 */
#ifndef WEIR_FLOW_CONTROL_H
#define WEIR_FLOW_CONTROL_H

#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_flow_control_add(weir_pipeline *pipeline);

/* --- flush consolidation ---------------------------------------------------------------------- */

/*
 * A handler that makes one flush of many: each may be a system call.
 *
 *      weir_flush_consolidation_add(pipeline, NULL);      before the handlers that flush
 *
 * A flush in the middle of a read waits until the read is over (read_complete), or until there have
 * been as many as the limit says. Others pass, unless `always` makes them wait for the end of the
 * turn: this saves more where many small writes come from other threads, and costs a delay.
 *
 * What waits is flushed before a close, a half closure or a disconnect, when an error passes, when
 * the channel becomes unwritable, and when the handler is removed.
 */

/* Zero means default. Build with WEIR_FLUSH_CONSOLIDATION_OPTIONS(.limit = ...). */
typedef struct weir_flush_consolidation_options {
    size_t size;
    int max_flushes; /* so many flushes are one, at the most; default 256 */
    bool always;     /* also where nothing is being read */
} weir_flush_consolidation_options;

#define WEIR_FLUSH_CONSOLIDATION_OPTIONS(...) \
    WEIR_OPTIONS(weir_flush_consolidation_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_flush_consolidation_add(weir_pipeline *pipeline,
                                          const weir_flush_consolidation_options *options);

/* --- pending writes --------------------------------------------------------------------------- */

/*
 * Writes that a handler holds back, and the close or half closure that
 * waits for them.
 *
 *      static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
 *      {
 *          struct state *state = weir_ctx_state(ctx);
 *
 *          (void)weir_pending_writes_add(ctx, &state->writes, msg, done);
 *      }
 *
 * They are in the handler's state, and belong to its context. They count against the channel's
 * marks (weir_ctx_add_pending_bytes).
 *
 *      first .......... flushed ......... last
 *      <-- may go out --><-- not yet -->
 *
 * A handler that holds writes back lets none of them be lost: it passes them on or fails them when
 * it hears `inactive`, and when it is removed.
 */

typedef struct weir_pending_write {
    struct weir_pending_write *next;
    weir_msg *msg;
    weir_promise *done; /* kept; NULL if nobody waits */
    int64_t cost;       /* against the marks */
    int64_t note;       /* the handler's own: when it may go out, say. 0 at first */
} weir_pending_write;

/* To be read only. Empty if it is all zero, as a handler's state is at first. */
typedef struct weir_pending_writes {
    weir_pending_write *first;
    weir_pending_write *last;
    size_t count;
    size_t flushed;              /* of these, from the front */
    int64_t cost;                /* of all of them */
    bool close_deferred;         /* when all are gone, */
    weir_promise *close_done;    /* kept */
    bool shutdown_deferred;      /* shutdown_deferred the output then, and before that, */
    weir_promise *shutdown_done; /* kept */
} weir_pending_writes;

/*
 * Holds a write back. NULL if there is no memory, or it would go beyond the channel's cap: then it
 * has failed. Where this makes the channel unwritable, who hears of that may have had the handler
 * write more, or pass this one on, before it returns: then what is given here is gone.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API weir_pending_write *weir_pending_writes_add(weir_ctx *ctx, weir_pending_writes *writes,
                                                     weir_msg *msg, weir_promise *done);

/*
 * All of them are flushed now: a handler's `flush`.
 * Thread: any, one at a time.
 */
WEIR_API void weir_pending_writes_flush(weir_pending_writes *writes);

/*
 * Passes the first one on. There must be one.
 * Thread: the handler's.
 */
WEIR_API void weir_pending_writes_pass(weir_ctx *ctx, weir_pending_writes *writes);

/*
 * Takes the first one out: it does not count against the marks any more. There must be one.
 * Thread: the handler's.  Gives: the message, and done, which may be NULL.
 */
WEIR_API weir_msg *weir_pending_writes_take(weir_ctx *ctx, weir_pending_writes *writes,
                                            weir_promise **ret_done);

/*
 * The same for what becomes part of something else: the first one is taken out, and still counts
 * with ret_cost; or so many bytes of it are. What is written in their place takes the cost off
 * (weir_write_pending).
 * Thread: the handler's.  Gives: the message, and done, which may be NULL.
 */
WEIR_API weir_msg *weir_pending_writes_take_charged(weir_pending_writes *writes,
                                                    weir_promise **ret_done, int64_t *ret_cost);
WEIR_API void weir_pending_writes_shorten(weir_pending_writes *writes, int64_t bytes);

/*
 * Fails the first one, which must be there; or all of them, and with them a half closure that
 * waits; a close is passed on.
 * Thread: the handler's.  Lends until it returns: detail.
 */
WEIR_API void weir_pending_writes_fail_first(weir_ctx *ctx, weir_pending_writes *writes, int err,
                                             const char *detail);
WEIR_API void weir_pending_writes_fail(weir_ctx *ctx, weir_pending_writes *writes, int err,
                                       const char *detail);

/*
 * A handler's `close`: passes it on, or remembers it until all are gone; all are flushed by it. Who
 * closes again meanwhile hears when the channel has closed.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_pending_writes_close(weir_ctx *ctx, weir_pending_writes *writes,
                                        weir_promise *done);

/*
 * The same for a handler that has something else to do before: remembers it in any case, until
 * weir_pending_writes_run_deferred.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_pending_writes_defer_close(weir_ctx *ctx, weir_pending_writes *writes,
                                              weir_promise *done);

/*
 * A handler's `shutdown_output`, likewise. Who asks again meanwhile hears as the first one does; if
 * a close waits already, it fails.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_pending_writes_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                                  weir_promise *done);
WEIR_API void weir_pending_writes_defer_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                                        weir_promise *done);

/*
 * A half closure that waits, if there is one, cannot be done any more.
 * Thread: the handler's.  Lends until it returns: detail.
 */
WEIR_API void weir_pending_writes_fail_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                                       int err, const char *detail);

/*
 * Whether a close or a half closure waits: a write that comes now is behind it, and is to fail with
 * WEIR_ECLOSED.
 * Thread: the handler's.
 */
WEIR_API bool weir_pending_writes_is_ending(const weir_pending_writes *writes);

/*
 * Passes on what nothing waits for any more, the half closure and then the close: to be called when
 * some have gone.
 * Thread: the handler's.
 */
WEIR_API void weir_pending_writes_run_deferred(weir_ctx *ctx, weir_pending_writes *writes);

#ifdef __cplusplus
}
#endif

#endif
