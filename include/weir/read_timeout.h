/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/read_timeout.h - a handler that closes a channel from which nothing is read for a while.
 *
 *      weir_read_timeout_add(pipeline, WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(10)));
 *
 * The handlers behind it hear the error -ETIMEDOUT first: they may still write. It is told once,
 * also if somebody keeps the channel open. What weir/idle.h says of readers holds here.
 */
#ifndef WEIR_READ_TIMEOUT_H
#define WEIR_READ_TIMEOUT_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_READ_TIMEOUT_OPTIONS(.timeout_ns = ...). */
typedef struct weir_read_timeout_options {
    size_t size;
    int64_t timeout_ns; /* default 30 s; WEIR_OFF = none */
} weir_read_timeout_options;

#define WEIR_READ_TIMEOUT_OPTIONS(...) \
    (&(const weir_read_timeout_options){.size = sizeof(weir_read_timeout_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_read_timeout_options_init(weir_read_timeout_options *options);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_read_timeout_add(weir_pipeline *pipeline,
                                   const weir_read_timeout_options *options);

#ifdef __cplusplus
}
#endif

#endif
