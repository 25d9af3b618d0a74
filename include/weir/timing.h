/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/timing.h - a handler that times those behind it: how long they have kept the loop with each
 * kind of event.
 *
 *      weir_timing_create(WEIR_TIMING_OPTIONS(.name = "app"), &timing);
 *      weir_timing_add(pipeline, timing);          in front of the handlers in question
 *      weir_histogram_read(weir_timing_histogram(timing, WEIR_TIMING_READ), &summary);
 *
 * Times are in nanoseconds, and of all handlers that share them. Those of one that is behind a
 * second one contain the second one's. A handler that runs on an executor of its own counts with
 * what it takes to hand it the event. With a name the histograms are also metrics (weir/metric.h):
 * "app.read", ... Each event costs two looks at the clock.
 */
#ifndef WEIR_TIMING_H
#define WEIR_TIMING_H

#include <weir/clock.h>
#include <weir/handler.h>
#include <weir/histogram.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_timing weir_timing;

enum weir_timing_kind {
    WEIR_TIMING_REGISTERED,
    WEIR_TIMING_UNREGISTERED,
    WEIR_TIMING_ACTIVE,
    WEIR_TIMING_INACTIVE,
    WEIR_TIMING_READ,
    WEIR_TIMING_READ_COMPLETE,
    WEIR_TIMING_EVENT,
    WEIR_TIMING_WRITABILITY,
    WEIR_TIMING_ERROR,
    WEIR_TIMING_DRAINING,
};

/* Zero means default. Build with WEIR_TIMING_OPTIONS(.name = ...). */
typedef struct weir_timing_options {
    size_t size;
    const char *name;  /* of the metrics, before a dot; default: there are none */
    weir_clock *clock; /* default weir_clock_monotonic(); lent as long as it is used */
} weir_timing_options;

#define WEIR_TIMING_OPTIONS(...) \
    (&(const weir_timing_options){.size = sizeof(weir_timing_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_timing_options_init(weir_timing_options *options);

/*
 * Makes histograms that are all empty.
 * Thread: any.  Lends until it returns: options.  Gives: timing.  Fails: -EINVAL, -ENOMEM, and as
 * weir_metric_create.
 */
WEIR_API int weir_timing_create(const weir_timing_options *options, weir_timing **ret_timing);

/*
 * Keeps it; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: timing.
 */
WEIR_API weir_timing *weir_timing_retain(weir_timing *timing);
WEIR_API void weir_timing_release(weir_timing *timing);

/*
 * How long events of a kind have taken, borrowed; NULL if there is no such kind.
 * Thread: any.
 */
WEIR_API const weir_histogram *weir_timing_histogram(const weir_timing *timing,
                                                     enum weir_timing_kind kind);

/*
 * Adds the handler at the end of a pipeline: those that are added later are behind it.
 * Thread: any.  Keeps: timing.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_timing_add(weir_pipeline *pipeline, weir_timing *timing);

#ifdef __cplusplus
}
#endif

#endif
