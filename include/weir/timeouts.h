/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/timeouts.h - a handler that tells when nothing has come, or gone, for a while.
 *
 *      weir_idle_add(pipeline, WEIR_IDLE_OPTIONS(.reader_ns = weir_seconds(60),
 *                                                .writer_ns = weir_seconds(20)));
 *
 *      static void on_event(weir_ctx *ctx, weir_msg *event)      of a handler behind it
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
 * Time counts from when the channel becomes active, or the handler is added. As long as it stays
 * idle the event is repeated, each time that the limit has passed again. A read counts when it is
 * over (read_complete), and nothing is idle in the middle of one. What handlers nearer to the head
 * send counts, too. Its timers are not touched by what is read and written: it costs a look at the
 * clock for each read_complete, and one for each time that something is sent.
 */
#ifndef WEIR_TIMEOUTS_H
#define WEIR_TIMEOUTS_H

#include <weir/handler.h>
#include <weir/msg.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    bool observe_output; /* a part of a message that was sent counts as well: slow is not idle */
} weir_idle_options;

#define WEIR_IDLE_OPTIONS(...) WEIR_OPTIONS(weir_idle_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_idle_add(weir_pipeline *pipeline, const weir_idle_options *options);

/* What the handler fires: an event, which is a message. */
typedef struct weir_idle_event weir_idle_event;

/*
 * The idle event that an event is, or NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_idle_event *weir_idle_event_of(const weir_msg *event);

/*
 * What has not happened; and whether this is the first time since it last did.
 * Thread: any.
 */
WEIR_API enum weir_idle_kind weir_idle_event_kind(const weir_idle_event *event);
WEIR_API bool weir_idle_event_is_first(const weir_idle_event *event);

/* --- read timeout ----------------------------------------------------------------------------- */

/*
 * A handler that closes a channel from which nothing is read for a while.
 *
 *      weir_read_timeout_add(pipeline, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(10)));
 *
 * The handlers behind it hear the error -ETIMEDOUT first: they may still write. It is told once,
 * also if somebody keeps the channel open. What weir/timeouts.h says of readers holds here.
 */

/* Zero means default. Build with WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = ...). */
typedef struct weir_read_timeout_options {
    size_t size;
    int64_t timeout_ns; /* default 30 s; WEIR_OFF = none */
} weir_read_timeout_options;

#define WEIR_READ_TIMEOUT_OPTIONS(...) WEIR_OPTIONS(weir_read_timeout_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_read_timeout_add(weir_pipeline *pipeline,
                                   const weir_read_timeout_options *options);

/* --- write timeout ---------------------------------------------------------------------------- */

/*
 * A handler that aborts a channel whose peer takes a write too slowly.
 *
 *      weir_write_timeout_add(pipeline,
 *                             WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(10)));
 *
 * The time of each write counts from the write itself, and ends when all of it has been sent. When
 * it is over the handlers behind hear the error -ETIMEDOUT, once; then the channel is aborted,
 * because what was written cannot be sent: the promises of all writes fail.
 */

/* Zero means default. Build with WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = ...). */
typedef struct weir_write_timeout_options {
    size_t size;
    int64_t timeout_ns; /* default 30 s; WEIR_OFF = none */
} weir_write_timeout_options;

#define WEIR_WRITE_TIMEOUT_OPTIONS(...) WEIR_OPTIONS(weir_write_timeout_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_write_timeout_add(weir_pipeline *pipeline,
                                    const weir_write_timeout_options *options);

#ifdef __cplusplus
}
#endif

#endif
