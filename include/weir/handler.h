/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/handler.h - what happens to a channel's events: one const table.
 *
 *      static void on_read(weir_ctx *ctx, weir_msg *msg) { weir_write(ctx, msg, NULL); }
 *      static void on_read_complete(weir_ctx *ctx) { weir_flush(ctx); }
 *      static const weir_handler echo = {
 *          .name = "echo", .read = on_read, .read_complete = on_read_complete};
 *
 * A slot that is NULL is skipped: the event goes on to the next handler that has it. A slot that is
 * there gets the event, and passes it on (weir_fire_..., weir_write, ...) or does not. Every slot
 * runs on the handler's executor: the channel's loop, or one of the group that it was added on.
 *
 * State: `state_size` bytes, zeroed, allocated together with the context; weir_ctx_state(ctx).
 * Life: init (inside add, on the caller's thread; copies what it needs of the options; an error is
 * the adding's), added, events, removed (only if added ran), deinit (once, if init succeeded).
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

    /* In, from head to tail. */
    void (*registered)(weir_ctx *ctx);             /* the channel has a loop */
    void (*unregistered)(weir_ctx *ctx);           /* it has none any more */
    void (*active)(weir_ctx *ctx);                 /* connected, or bound if it accepts */
    void (*inactive)(weir_ctx *ctx);               /* no longer */
    void (*read)(weir_ctx *ctx, weir_msg *msg);    /* takes msg; a server's are channels */
    void (*read_complete)(weir_ctx *ctx);          /* nothing more to read for now */
    void (*event)(weir_ctx *ctx, weir_msg *event); /* takes event: the user's, or weir/handler.h */
    void (*writability)(weir_ctx *ctx);            /* ask weir_ctx_is_writable */
    void (*error)(weir_ctx *ctx, int err, const char *detail); /* detail: a sentence, or NULL */
    void (*draining)(weir_ctx *ctx); /* the group shuts down: finish, then close */

    /* Out, from tail to head. `done` may be NULL: nobody waits. */
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

    /* The state begins with a weir_demand (weir/handler.h), and request_read lets what waits there
     * go on: it is not called after each read_complete of a channel with auto-read. */
    bool buffers_reads;

    void *reserved[6]; /* NULL */
} weir_handler;

/* --- events ----------------------------------------------------------------------------------- */

/*
 * The events that channels themselves send through their pipelines.
 *
 *      static void on_event(weir_ctx *ctx, weir_msg *event)
 *      {
 *          if (event == weir_event_input_closed())
 *              weir_close(ctx, NULL);
 *          weir_msg_release(event);
 *      }
 *
 * They are static messages: compared by address, released like every other.
 */

/*
 * With half closure: the peer sends no more: its stream has ended, or TLS has. Once.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_input_closed(void);

/*
 * With half closure: all that was left to read has been read. Once, after the former.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_input_drained(void);

/*
 * The sending side has been shut.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_output_closed(void);

/* --- demand ----------------------------------------------------------------------------------- */

/*
 * What a handler that may pass on several messages for one read remembers: whether
 * the next message was requested, and the messages that were not.
 *
 * With auto-read every message passes. Without it each weir_request_read from behind lets one
 * message pass, and the others wait in the handler, which asks for more only when it has nothing
 * left. The end of the input waits behind them. The bases of decoders do all of this, and so do
 * TLS and flow control: see docs/internals/pipeline.md.
 */

/* Messages in a row. Private. */
typedef struct weir_msg_queue {
    struct weir__msg_item *first;
    struct weir__msg_item **end; /* the link that ends it; undefined while it is empty */
} weir_msg_queue;

/* The first member of the state of a handler with `buffers_reads`. Private. */
typedef struct weir_demand {
    weir_msg_queue buffered;
    bool is_requested;   /* a message was requested and not passed on */
    bool is_answering;   /* the message that was requested is being passed on */
    bool is_running;     /* a call further out on the stack passes messages on */
    bool has_passed;     /* a message, since the last read_complete */
    bool needs_complete; /* read_complete, after the messages that may pass */
    bool needs_request;  /* a request, if nothing is left to pass on */
    uint8_t pending_end; /* events of the end that wait behind the messages */
} weir_demand;

/* --- ctx -------------------------------------------------------------------------------------- */

/*
 * A handler's place in a pipeline: what it reaches the others with.
 *
 *      weir_fire_x(ctx, ...)   passes an event on, towards the tail
 *      weir_x(ctx, ...)        asks for something, towards the head and the socket
 *
 * A context is valid on its executor from `added` to `removed`; other threads use the channel.
 * Outbound calls return nothing: `done` is the only report, and is kept until then. NULL = nobody
 * waits: the first such failure of a channel fires `error`, except because it is closing.
 */

/* ---- where it is ---- */

/*
 * The handler's own memory: `state_size` bytes; NULL if that is 0.
 * Thread: the handler's.
 */
WEIR_API void *weir_ctx_state(weir_ctx *ctx);

/*
 * The table that it was added with; a base finds its larger table by it.
 * Thread: any.
 */
WEIR_API const weir_handler *weir_ctx_handler(const weir_ctx *ctx);

/*
 * Its name in the pipeline.
 * Thread: the handler's.
 */
WEIR_API const char *weir_ctx_name(const weir_ctx *ctx);

/*
 * The channel, borrowed; retain it to keep it.
 * Thread: any.
 */
WEIR_API weir_channel *weir_ctx_channel(const weir_ctx *ctx);

/*
 * The pipeline.
 * Thread: any.
 */
WEIR_API weir_pipeline *weir_ctx_pipeline(const weir_ctx *ctx);

/*
 * Where its slots run: the channel's loop, or one of its own group.
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
 * True if the handler has been removed; its state must not be used then. On the handler's executor
 * the answer holds until the caller returns or removes it. On any other thread only `true` is
 * final: the handler may be removed right after a `false`.
 * Thread: any, with a reference (weir_ctx_retain); without one, only in the handler's callbacks.
 */
WEIR_API bool weir_ctx_is_removed(const weir_ctx *ctx);

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

/* ---- in ---- */

/*
 * Each passes an event to the next handler that has the slot, or to the tail.
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
 * Passes a message on.
 * Thread: the handler's.  Takes: msg.
 */
WEIR_API void weir_fire_read(weir_ctx *ctx, weir_msg *msg);

/*
 * Passes an event of the user's own on.
 * Thread: the handler's.  Takes: event.
 */
WEIR_API void weir_fire_event(weir_ctx *ctx, weir_msg *event);

/*
 * Tells the next handler of an error; at the tail it is logged and closes the channel. `detail` is
 * a sentence for people, or NULL.
 * Thread: the handler's.
 */
WEIR_API void weir_fire_error(weir_ctx *ctx, int err, const char *detail);

/* ---- out ---- */

/*
 * Writes a message: it is queued, and goes out with the next flush.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/*
 * Sends what was written.
 * Thread: the handler's.
 */
WEIR_API void weir_flush(weir_ctx *ctx);

/*
 * Both.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_write_and_flush(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/*
 * Requests one message, where reads are on demand: a handler before this one that has several
 * passes on the next. Requests do not add up: several before the next message are one.
 * Thread: the handler's.
 */
WEIR_API void weir_request_read(weir_ctx *ctx);

/*
 * Each asks the handlers before this one, and at last the transport.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done);
WEIR_API void weir_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                           weir_promise *done);
WEIR_API void weir_disconnect(weir_ctx *ctx, weir_promise *done);
WEIR_API void weir_deregister(weir_ctx *ctx, weir_promise *done);

/*
 * Closes the channel: what was written before is sent first, then it lingers for the peer, for the
 * channel's close timeout at the longest.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_close(weir_ctx *ctx, weir_promise *done);

/*
 * Half closure: what was written before is sent first, then the end of the stream; what the peer
 * sends is still received. A handler that holds writes back keeps this behind them, as a close.
 * Thread: the handler's.  Keeps: done.
 */
WEIR_API void weir_shutdown_output(weir_ctx *ctx, weir_promise *done);

/*
 * A write, or another operation, has ended in this handler, which has not passed it on: completes
 * `done`, with success if `err` is 0. Where nobody waits a failure is told as the transport would:
 * the first of a channel fires `error`, except because it is closing.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_report(weir_ctx *ctx, weir_promise *done, int err, const char *detail);

/* ---- flow ---- */

/*
 * Whether a write now stays below the high water mark and no handler objects.
 * Thread: any.
 */
WEIR_API bool weir_ctx_is_writable(const weir_ctx *ctx);

/*
 * Whether the channel reads by itself, or only when asked by weir_request_read. Switched off inside
 * `read`, no further message comes before it is switched on, or one is requested: decoders and TLS
 * keep theirs.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_set_auto_read(weir_ctx *ctx, bool on);

/*
 * Counts bytes that the handler holds back into the channel's water marks: positive when it takes
 * messages, negative when it passes them on. What is left is taken off when it is removed.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_add_pending_bytes(weir_ctx *ctx, int64_t bytes);

/*
 * Writes a message in the place of `bytes` that the handler has held back until now: they do not
 * count any more and the message does, with nothing in between that anybody could see.
 * Thread: the handler's.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_write_pending(weir_ctx *ctx, weir_msg *msg, weir_promise *done, int64_t bytes);

/*
 * Stops reading until it is released, whatever auto_read and other handlers say: for a handler that
 * can do nothing with more bytes for a while, and is not to keep them. It releases before it goes.
 * Thread: loop.  Fails: -ENOMEM, -ENOTSUP (the handler is on an executor of its own).
 */
WEIR_API int weir_ctx_pause_input(weir_ctx *ctx);
WEIR_API void weir_ctx_resume_input(weir_ctx *ctx);

/* ---- time, and work elsewhere ---- */

/*
 * Starts a timer that belongs to the context: it is stopped before `removed`, and before the
 * channel leaves its loop. The timer is a member of the handler's state.
 * Thread: the handler's.  Lends until it fires or is stopped: timer.  Fails: as weir_timer_start,
 * -EINVAL (another's timer), WEIR_ECLOSED (it is removed, or the channel has no loop).
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
