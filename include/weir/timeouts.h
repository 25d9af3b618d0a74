/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/timeouts.h - idle events, and timeouts of reads and writes.
 *
 *      weir_idle_add             fires an event when nothing was read or sent for a while
 *      weir_read_timeout_add     closes the channel when nothing was read for a while
 *      weir_write_timeout_add    aborts the channel when a write takes too long
 */
#ifndef WEIR_TIMEOUTS_H
#define WEIR_TIMEOUTS_H

#include <weir/handler.h>
#include <weir/msg.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- idle ------------------------------------------------------------------------------------- */

/*
 *      err = weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.reader_ns = weir_seconds(60),
 *                                                      .writer_ns = weir_seconds(20)));
 *
 *      static void on_event(weir_ctx *ctx, weir_msg *event)      of a later handler
 *      {
 *          const weir_idle_event *idle = weir_idle_event_of(event);
 *
 *          if (idle != NULL && weir_idle_event_kind(idle) == WEIR_IDLE_WRITER)
 *              weir_write_and_flush(ctx, new_ping(), NULL);
 *          else if (idle != NULL)
 *              weir_close(ctx, NULL);
 *          weir_msg_release(event);
 *      }
 *
 * The time starts when the channel becomes active, or when the handler is added. The event repeats
 * each time the limit passes again. A read counts at its read_complete; no channel is idle during a
 * read. Data sent by handlers nearer to the head counts, too. Reads and writes do not touch the
 * timers: each read_complete, and each time something is sent, costs one clock reading.
 */

/* What has not happened. */
enum weir_idle_kind {
    WEIR_IDLE_READER, /* nothing was read */
    WEIR_IDLE_WRITER, /* nothing was sent */
    WEIR_IDLE_BOTH,   /* neither */
};

/* Zero means default. Build with WEIR_IDLE_OPTIONS(.reader_ns = ..., ...). Each limit is off by
 * default, and otherwise at least 1 ms. */
typedef struct weir_idle_options {
    size_t size;
    int64_t reader_ns;
    int64_t writer_ns;
    int64_t both_ns;
    bool observe_output; /* a partially sent message counts as activity */
} weir_idle_options;

#define WEIR_IDLE_OPTIONS(...) WEIR_OPTIONS(weir_idle_options, __VA_ARGS__)

/*
 * Adds the handler at the tail.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_idle_add(weir_pipeline *pipeline, const weir_idle_options *options);

/* The event that the handler fires. It is a message. */
typedef struct weir_idle_event weir_idle_event;

/*
 * Casts an event to an idle event. NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_idle_event *weir_idle_event_of(const weir_msg *event);

/*
 * What has not happened; and true if this is the first event since the last activity.
 * Thread: any.
 */
WEIR_API enum weir_idle_kind weir_idle_event_kind(const weir_idle_event *event);
WEIR_API bool weir_idle_event_is_first(const weir_idle_event *event);

/* --- read timeout ----------------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = ...). */
typedef struct weir_read_timeout_options {
    size_t size;
    int64_t timeout_ns; /* default 30 s; WEIR_OFF = none */
} weir_read_timeout_options;

#define WEIR_READ_TIMEOUT_OPTIONS(...) WEIR_OPTIONS(weir_read_timeout_options, __VA_ARGS__)

/*
 * Adds the handler at the tail. If nothing is read for the timeout, it fires -ETIMEDOUT, on which
 * later handlers may still write, and closes the channel. It fires once, even if the channel stays
 * open. Time is measured as for WEIR_IDLE_READER.
 *
 *      err = weir_read_timeout_add(pipeline,
 *                                  WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(10)));
 *
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_read_timeout_add(weir_pipeline *pipeline,
                                                 const weir_read_timeout_options *options);

/* --- write timeout ---------------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = ...). */
typedef struct weir_write_timeout_options {
    size_t size;
    int64_t timeout_ns; /* default 30 s; WEIR_OFF = none */
} weir_write_timeout_options;

#define WEIR_WRITE_TIMEOUT_OPTIONS(...) WEIR_OPTIONS(weir_write_timeout_options, __VA_ARGS__)

/*
 * Adds the handler at the tail. The time of each write runs from the write until all of it has been
 * sent. When it expires, the handler fires -ETIMEDOUT once and aborts the channel; the promises of
 * all writes fail.
 *
 *      err = weir_write_timeout_add(pipeline,
 *                                   WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(10)));
 *
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_write_timeout_add(weir_pipeline *pipeline,
                                                  const weir_write_timeout_options *options);

#ifdef __cplusplus
}
#endif

#endif
