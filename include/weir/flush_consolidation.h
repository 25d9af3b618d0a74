/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/flush_consolidation.h - a handler that makes one flush of many: each may be a system call.
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
#ifndef WEIR_FLUSH_CONSOLIDATION_H
#define WEIR_FLUSH_CONSOLIDATION_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_FLUSH_CONSOLIDATION_OPTIONS(.limit = ...). */
typedef struct weir_flush_consolidation_options {
    size_t size;
    int limit;   /* so many flushes are one, at the most; default 256 */
    bool always; /* also where nothing is being read */
} weir_flush_consolidation_options;

#define WEIR_FLUSH_CONSOLIDATION_OPTIONS(...)                                                    \
    (&(const weir_flush_consolidation_options){.size = sizeof(weir_flush_consolidation_options), \
                                               __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_flush_consolidation_options_init(weir_flush_consolidation_options *options);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_flush_consolidation_add(weir_pipeline *pipeline,
                                          const weir_flush_consolidation_options *options);

#ifdef __cplusplus
}
#endif

#endif
