/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/handler.h - handlers, which process the events of a channel, and their contexts.
 *
 *      static void on_read(weir_ctx *ctx, weir_msg *msg) { weir_write(ctx, msg, NULL); }
 *      static void on_read_complete(weir_ctx *ctx) { weir_flush(ctx); }
 *      static const weir_handler echo = {
 *          .name = "echo", .read = on_read, .read_complete = on_read_complete};
 *
 * A handler is a const table of functions, its slots. An event goes to the next handler that has
 * its slot; handlers without it are skipped. The slot passes the event on (weir_fire_...,
 * weir_write,
 * ...) or consumes it. All slots run on the handler's executor: the channel's loop, or, behind the
 * border of the pipeline (weir/pipeline.h), an executor of a group.
 *
 * Tables and their names are static: weir may read a table as long as the process runs, to count
 * the turns that its functions block and to move it (weir/watchdog.h), and takes another table at
 * the same address for the same handler.
 *
 * State: `state_size` zeroed bytes, allocated with the context; see weir_ctx_state.
 * Lifecycle: init (inside weir_pipeline_add, on the caller's thread; copies the options it needs;
 * its error is returned by the add), added, events, removed (only after added), deinit (once, if
 * init succeeded).
 *
 * Sections: the table, the events of channels, demand (private to weir), contexts.
 */
#ifndef WEIR_HANDLER_H
#define WEIR_HANDLER_H

#include <weir/address.h>
#include <weir/base.h>
#include <weir/executor.h>
#include <weir/group.h>
#include <weir/msg.h>
#include <weir/promise.h>
#include <weir/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_ctx weir_ctx;
typedef struct weir_channel weir_channel;
typedef struct weir_pipeline weir_pipeline;

typedef struct weir_handler {
    const char *name;
    size_t state_size;
    int (*init)(void *state, const void *options);
    void (*deinit)(void *state); /* any thread */
    void (*added)(weir_ctx *ctx);
    void (*removed)(weir_ctx *ctx);

    /* Inbound, from head to tail. */
    void (*registered)(weir_ctx *ctx);             /* the channel is on a loop */
    void (*unregistered)(weir_ctx *ctx);           /* it has left the loop */
    void (*active)(weir_ctx *ctx);                 /* connected, or bound if it is a listener */
    void (*inactive)(weir_ctx *ctx);               /* no longer active */
    void (*read)(weir_ctx *ctx, weir_msg *msg);    /* takes msg; a listener reads channels */
    void (*read_complete)(weir_ctx *ctx);          /* nothing left to read for now */
    void (*event)(weir_ctx *ctx, weir_msg *event); /* takes event: user's, or weir_event_... */
    void (*writability)(weir_ctx *ctx);            /* weir_ctx_is_writable has changed: may be
                                                      called within a write or a flush */
    void (*error)(weir_ctx *ctx, int err, const char *detail); /* detail may be NULL */
    void (*draining)(weir_ctx *ctx); /* the group shuts down: finish, then close */

    /* Outbound, from tail to head. `done` may be NULL. */
    void (*bind)(weir_ctx *ctx, const weir_address *local, weir_promise *done);
    void (*connect)(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                    weir_promise *done);
    void (*disconnect)(weir_ctx *ctx, weir_promise *done);
    void (*close)(weir_ctx *ctx, weir_promise *done);
    void (*deregister)(weir_ctx *ctx, weir_promise *done);
    void (*request_read)(weir_ctx *ctx);
    void (*write)(weir_ctx *ctx, weir_msg *msg, weir_promise *done); /* takes msg */
    void (*flush)(weir_ctx *ctx);
    void (*shutdown_output)(weir_ctx *ctx, weir_promise *done); /* half closure */

    /* The state begins with a weir_demand, and request_read passes on the messages that it holds.
     * With auto-read, request_read is not called after each read_complete then. */
    bool buffers_reads;

    /* Is not moved to another group when it blocks (weir/watchdog.h), or one in front of it does.
     * For a handler that is also used by tasks, timers or listeners of its own on the loop, or by
     * other handlers there. */
    bool stays_on_loop;

    /* For a handler that calls functions of others, as the routes of an HTTP server: called on the
     * watchdog's thread for each block of the handler, with the functions of the stack, innermost
     * first. Has those that blocked more than `limit` times run on other threads, and returns the
     * number of them that did not before. The handler itself is not moved. */
    size_t (*blocked)(const void *const *functions, size_t count, uint64_t limit);

    void *reserved[5]; /* NULL */
} weir_handler;

/* --- events ----------------------------------------------------------------------------------- */

/*
 * Events that channels fire themselves.
 *
 *      static void on_event(weir_ctx *ctx, weir_msg *event)
 *      {
 *          if (event == weir_event_input_closed())
 *              weir_close(ctx, NULL);
 *          weir_msg_release(event);
 *      }
 *
 * They are static messages: compare them by address, release them as any message.
 */

/*
 * Half closure: the peer sends nothing more; its stream or its TLS session has ended. Fired once,
 * after everything received has been read.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_input_closed(void);

/*
 * The peer has ended its stream, or closed, while nothing is read: see `report_hangup` of
 * weir_channel_options. What it had sent may still be read. Fired at most once.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_hangup(void);

/*
 * The sending side has been shut down.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_output_closed(void);

/* --- demand ----------------------------------------------------------------------------------- */

/*
 * Read requests in a handler that can make several messages of one read.
 *
 * With auto-read every message passes. Without it, each weir_request_read from a later handler lets
 * one message pass. The others wait in the handler, which requests more only when none is left; the
 * end of the input waits behind them. The decoder bases, TLS and flow control implement this: see
 * docs/internals/pipeline.md.
 */

/* A queue of messages. Private. */
typedef struct weir_msg_queue {
    struct weir__msg_item *first;
    struct weir__msg_item **end; /* the last link; undefined while the queue is empty */
} weir_msg_queue;

/* The first member of the state of a handler with `buffers_reads`. Private. */
typedef struct weir_demand {
    weir_msg_queue buffered;
    bool is_requested;   /* a message was requested and not passed on yet */
    bool is_answering;   /* the requested message is being passed on */
    bool is_running;     /* an outer call on the stack passes messages on */
    bool has_passed;     /* a message was passed on since the last read_complete */
    bool needs_complete; /* read_complete must be fired after the messages */
    bool needs_request;  /* a request must be made if no message is left */
    bool has_ended;      /* the end of the input waits behind the messages */
} weir_demand;

/* --- contexts --------------------------------------------------------------------------------- */
/*
 * A context is a handler's position in a pipeline.
 *
 *      weir_fire_x(ctx, ...)   passes an event to the next handler, towards the tail
 *      weir_x(ctx, ...)        starts an operation, towards the head and the socket
 *      weir_ctx_x(ctx, ...)    everything else
 *
 * A context may be used on the handler's executor from `added` to `removed`; other threads use the
 * channel, or retain the context. Operations return nothing: `done` reports the result. If `done`
 * is NULL, the first failure of a channel fires `error`, unless the channel is closing.
 */

/* ---- the handler and its channel ---- */

/*
 * The handler's state: `state_size` bytes; NULL if that is 0.
 * Thread: the handler's.
 */
WEIR_API void *weir_ctx_state(weir_ctx *ctx);

/*
 * The table that the handler was added with.
 * Thread: any.
 */
WEIR_API const weir_handler *weir_ctx_handler(const weir_ctx *ctx);

/*
 * The handler's name in the pipeline.
 * Thread: the handler's.
 */
WEIR_API const char *weir_ctx_name(const weir_ctx *ctx);

/*
 * The channel, borrowed.
 * Thread: any.
 */
WEIR_API weir_channel *weir_ctx_channel(const weir_ctx *ctx);

/*
 * The pipeline, borrowed.
 * Thread: any.
 */
WEIR_API weir_pipeline *weir_ctx_pipeline(const weir_ctx *ctx);

/*
 * The executor that the slots run on, borrowed: the channel's loop, or one of the handler's group.
 * Thread: the handler's.
 */
WEIR_API weir_executor *weir_ctx_executor(const weir_ctx *ctx);

/*
 * The current time of the clock of the handler's executor, as weir_loop_now; 0 before the channel
 * is registered.
 * Thread: the handler's.
 */
WEIR_API int64_t weir_ctx_now(const weir_ctx *ctx);

/*
 * The time since the current turn of the handler's event loop began, which is when it stopped
 * waiting for events; 0 outside of turns and of event loops.
 * Thread: the handler's.
 */
WEIR_API int64_t weir_ctx_turn_elapsed(const weir_ctx *ctx);

/*
 * True if the handler has been removed; its state must not be used then. On the handler's executor
 * the answer holds until the caller returns or removes it. On any other thread only `true` is
 * final: the handler may be removed right after a `false`.
 * Thread: any, with a reference (weir_ctx_retain); without one, only in the handler's callbacks.
 */
WEIR_API bool weir_ctx_is_removed(const weir_ctx *ctx);

/*
 * The context whose `write` the next weir_write calls, borrowed; NULL if it runs on another
 * executor, or if only the transport is left. So two handlers that belong together find out that
 * nothing stands between them.
 * Thread: the handler's.
 */
WEIR_API weir_ctx *weir_ctx_next_writer(const weir_ctx *ctx);

/*
 * Retains a context, and its channel, beyond the handler's removal. A task that returns from
 * another thread or loop can then ask weir_ctx_is_removed:
 *
 *      static void on_result(void *arg, int status)       on weir_ctx_executor(ctx)
 *      {
 *          weir_ctx *ctx = arg;
 *          if (!weir_ctx_is_removed(ctx))
 *              reply(ctx, weir_ctx_state(ctx));
 *          weir_ctx_release(ctx);
 *      }
 *
 * A reference does not delay the removal, nor `deinit`. After the removal only weir_ctx_is_removed,
 * weir_ctx_channel, weir_ctx_pipeline, weir_ctx_handler and weir_ctx_name may be called.
 * Thread: any, with a reference; without one, only in the handler's callbacks.
 */
WEIR_API weir_ctx *weir_ctx_retain(weir_ctx *ctx);

/*
 * Releases a reference. NULL is ignored.
 * Thread: any.  Takes: ctx.
 */
WEIR_API void weir_ctx_release(weir_ctx *ctx);

/* ---- inbound events ---- */

/*
 * Each passes the event to the next handler that has its slot, or to the tail.
 * Thread: the handler's.
 */
WEIR_API void weir_fire_registered(weir_ctx *ctx);
WEIR_API void weir_fire_unregistered(weir_ctx *ctx);
WEIR_API void weir_fire_active(weir_ctx *ctx);
WEIR_API void weir_fire_inactive(weir_ctx *ctx);
WEIR_API void weir_fire_read_complete(weir_ctx *ctx);
WEIR_API void weir_fire_writability(weir_ctx *ctx);
WEIR_API void weir_fire_draining(weir_ctx *ctx);

/*
 * Passes a message to the next handler.
 * Thread: the handler's.  Takes: msg.
 */
WEIR_API void weir_fire_read(weir_ctx *ctx, weir_msg *msg);

/*
 * Passes a user event to the next handler.
 * Thread: the handler's.  Takes: event.
 */
WEIR_API void weir_fire_event(weir_ctx *ctx, weir_msg *event);

/*
 * Passes an error to the next handler. The tail logs it and closes the channel. `detail` is a text
 * for the log, or NULL.
 * Thread: the handler's.
 */
WEIR_API void weir_fire_error(weir_ctx *ctx, int err, const char *detail);

/* ---- outbound operations ---- */

/*
 * Writes a message. It is queued and sent by the next flush. For want of memory see
 * weir_channel_write.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/*
 * Sends everything that was written. While the channel delivers what it has received, that is done
 * once, after read_complete; immediately if the channel is unwritable.
 * Thread: the handler's.
 */
WEIR_API void weir_flush(weir_ctx *ctx);

/*
 * Writes and flushes.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_write_and_flush(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/*
 * Requests one message, if auto-read is off. A handler nearer to the head that holds messages
 * passes on the next one; otherwise the transport reads. Several requests before a message count as
 * one.
 * Thread: the handler's.
 */
WEIR_API void weir_request_read(weir_ctx *ctx);

/*
 * Each passes the operation to the previous handler that has its slot, and finally to the
 * transport.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done);
WEIR_API void weir_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                           weir_promise *done);
WEIR_API void weir_disconnect(weir_ctx *ctx, weir_promise *done);
WEIR_API void weir_deregister(weir_ctx *ctx, weir_promise *done);

/*
 * Closes the channel, as weir_channel_close, starting at this handler.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_close(weir_ctx *ctx, weir_promise *done);

/*
 * Half closure: sends everything written before, then the end of the stream. Input is still
 * received. A handler that queues writes must queue this behind them, as a close.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_shutdown_output(weir_ctx *ctx, weir_promise *done);

/*
 * Reports the result of an operation that this handler did not pass on: completes `done`, with
 * success if `err` is 0. If `done` is NULL, the first failure of a channel fires `error`, unless
 * the channel is closing.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_report(weir_ctx *ctx, weir_promise *done, int err, const char *detail);

/* ---- flow control ---- */

/*
 * True if the channel is writable: weir_channel_is_writable.
 * Thread: any.
 */
WEIR_API bool weir_ctx_is_writable(const weir_ctx *ctx);

/*
 * Switches auto-read. After a handler has switched it off in `read`, no further message arrives
 * until it is switched on or one is requested: decoders and TLS hold back theirs.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_set_auto_read(weir_ctx *ctx, bool on);

/*
 * Adds bytes that the handler queues to the channel's pending bytes: positive when it queues a
 * message, negative when it passes it on. The rest is subtracted when the handler is removed.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_add_pending_bytes(weir_ctx *ctx, int64_t bytes);

/*
 * Writes a message that the handler had queued and counted as `bytes`: subtracts them and counts
 * the message in one step, so that the writability does not change in between.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_write_pending(weir_ctx *ctx, weir_msg *msg, weir_promise *done, int64_t bytes);

/*
 * Pauses reading, regardless of auto-read and requests, until the handler resumes it. For a handler
 * that cannot process input for a while and must not buffer it. It must resume before its removal.
 * Thread: loop.  Fails: -ENOMEM, -ENOTSUP (the handler runs on another executor).
 */
WEIR_API WEIR_MUST_USE int weir_ctx_pause_input(weir_ctx *ctx);
WEIR_API void weir_ctx_resume_input(weir_ctx *ctx);

/* ---- timers and offloading ---- */

/*
 * Starts a timer of the handler, which is a member of its state. It is stopped before `removed`,
 * and before the channel leaves its loop.
 * Thread: the handler's.  Lends until it fires or is stopped: timer.  Fails: as weir_timer_start,
 * -EINVAL (a timer of another context), WEIR_ECLOSED (removed, or the channel has no loop).
 */
WEIR_API int weir_ctx_timer_start(weir_ctx *ctx, weir_timer *timer, int64_t delay_ns,
                                  void (*fn)(weir_ctx *ctx, weir_timer *timer));

/* The offloaded work. Runs on another executor and may block. Its result is passed to `done`. */
typedef void *weir_offload_work_fn(void *arg);

/* Runs on the handler's executor after the work. `ctx` is NULL if the handler has been removed:
 * then it only frees what `arg` and `result` own. `err` is WEIR_ECANCELED if the work never ran. */
typedef void weir_offload_done_fn(weir_ctx *ctx, int err, void *result, void *arg);

/*
 * Runs `work` on the group's next executor, then `done` on the handler's: exactly once, also if the
 * channel is closed by then. If the handler is removed meanwhile, its `deinit` waits for the work.
 * On an error neither function is called.
 * Thread: the handler's.  Fails: -ENOMEM, -EINVAL, WEIR_EREJECTED, -ENOTSUP (a group with a thread
 * per channel).
 */
WEIR_API WEIR_MUST_USE int weir_ctx_offload(weir_ctx *ctx, weir_group *group,
                                            weir_offload_work_fn *work, weir_offload_done_fn *done,
                                            void *arg);

/*
 * The same, with `work` on a given executor.
 * Thread: the handler's.  Fails: -ENOMEM, -EINVAL, WEIR_EREJECTED.
 */
WEIR_API WEIR_MUST_USE int weir_ctx_offload_to(weir_ctx *ctx, weir_executor *executor,
                                               weir_offload_work_fn *work,
                                               weir_offload_done_fn *done, void *arg);

#ifdef __cplusplus
}
#endif

#endif
