/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/counters.h - a handler that counts what passes it.
 *
 *      weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = "front"), &counters);
 *      weir_counters_add(pipeline, counters);      of each connection
 *      weir_counters_read(counters, &figures);
 *
 * The figures are of all handlers that share them: one for a whole server, or one for each channel.
 * With a name they are also metrics (weir/metric.h): "front.bytes_read", ... Near the head it
 * counts bytes as they come from the socket, behind a decoder messages. What passes is added up on
 * each loop, and to the figures at each read_complete and each flush.
 */
#ifndef WEIR_COUNTERS_H
#define WEIR_COUNTERS_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_counters weir_counters;

/* Zero means default. Build with WEIR_COUNTERS_OPTIONS(.name = ...). */
typedef struct weir_counters_options {
    size_t size;
    const char *name; /* of the metrics, before a dot; default: there are none */
} weir_counters_options;

#define WEIR_COUNTERS_OPTIONS(...) \
    (&(const weir_counters_options){.size = sizeof(weir_counters_options), __VA_ARGS__})

typedef struct weir_counters_figures {
    int64_t bytes_read; /* of messages that have a size, and of files */
    int64_t messages_read;
    int64_t reads; /* read_complete: how often it was woken for them */
    int64_t bytes_written;
    int64_t messages_written;
    int64_t flushes;
    int64_t errors;
    int64_t channels; /* that have become active */
    int64_t open;     /* of those, not inactive yet */
} weir_counters_figures;

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_counters_options_init(weir_counters_options *options);

/*
 * Makes counters that are all 0.
 * Thread: any.  Lends until it returns: options.  Gives: counters.  Fails: -EINVAL, -ENOMEM, and as
 * weir_metric_create.
 */
WEIR_API int weir_counters_create(const weir_counters_options *options,
                                  weir_counters **ret_counters);

/*
 * Keeps counters; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: counters.
 */
WEIR_API weir_counters *weir_counters_retain(weir_counters *counters);
WEIR_API void weir_counters_release(weir_counters *counters);

/*
 * What was counted so far, each for itself.
 * Thread: any.
 */
WEIR_API void weir_counters_read(const weir_counters *counters, weir_counters_figures *ret_figures);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Keeps: counters.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_counters_add(weir_pipeline *pipeline, weir_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
