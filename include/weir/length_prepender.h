/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/length_prepender.h - says before each message that is written how long it is: the other
 * direction of weir/length_field.h.
 *
 *      weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.width = 2));
 *
 *      "hello", "ok"  ->  00 05 h e l l o 00 02 o k
 *
 * Buffers, composites and file ranges become frames, none of which is copied; what is none of these
 * is passed on as it is. One that is too long for the field fails with WEIR_ETOOLONG. A file range
 * goes out in two writes: if one of them fails, the channel is aborted.
 */
#ifndef WEIR_LENGTH_PREPENDER_H
#define WEIR_LENGTH_PREPENDER_H

#include <weir/number.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_LENGTH_PREPENDER_OPTIONS(...). */
typedef struct weir_length_prepender_options {
    size_t size;
    size_t width;               /* 1 to 8 bytes; default 4 */
    enum weir_byte_order order; /* default big-endian */
    int64_t adjustment;         /* is added to what the field says; may be negative */
    bool counts_itself;         /* the field counts its own bytes, too */
} weir_length_prepender_options;

#define WEIR_LENGTH_PREPENDER_OPTIONS(...)                                                 \
    (&(const weir_length_prepender_options){.size = sizeof(weir_length_prepender_options), \
                                            __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_length_prepender_options_init(weir_length_prepender_options *options);

/*
 * Adds the encoder, "length-prepender", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_length_prepender_add(weir_pipeline *pipeline,
                                       const weir_length_prepender_options *options);

#ifdef __cplusplus
}
#endif

#endif
