/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/write_timeout.h - a handler that aborts a channel whose peer takes a write too slowly.
 *
 *      weir_write_timeout_add(pipeline,
 *                             WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(10)));
 *
 * The time of each write counts from the write itself, and ends when all of it has been sent. When
 * it is over the handlers behind hear the error -ETIMEDOUT, once; then the channel is aborted,
 * because what was written cannot be sent: the promises of all writes fail.
 */
#ifndef WEIR_WRITE_TIMEOUT_H
#define WEIR_WRITE_TIMEOUT_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = ...). */
typedef struct weir_write_timeout_options {
    size_t size;
    int64_t timeout_ns; /* default 30 s; WEIR_OFF = none */
} weir_write_timeout_options;

#define WEIR_WRITE_TIMEOUT_OPTIONS(...) \
    (&(const weir_write_timeout_options){.size = sizeof(weir_write_timeout_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_write_timeout_options_init(weir_write_timeout_options *options);

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
