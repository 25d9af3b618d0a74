/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/varint_frames.h - frames with their length before them as a varint of at most 32 bits, as
 * Protocol Buffers write messages one after the other; both ways.
 *
 *      weir_varint_frames_add(pipeline, NULL);
 *
 *      ac 02 <300 bytes> 02 o k        <->  <300 bytes>, "ok"
 *
 * In: slices of what came. A frame over the limit is an error, WEIR_ETOOLONG, and is skipped: the
 * channel goes on if somebody handles the error, since at the tail it closes it. A length of more
 * than 32 bits, or one that is not in its shortest form, is WEIR_EMALFORMED, after which nothing is
 * decoded any more.
 *
 * Out: buffers, composites and file ranges become frames, none of which is copied; what is none of
 * these is passed on as it is. A file range goes out in two writes: if one of them fails, the
 * channel is aborted.
 */
#ifndef WEIR_VARINT_FRAMES_H
#define WEIR_VARINT_FRAMES_H

#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_VARINT_FRAMES_OPTIONS(...). */
typedef struct weir_varint_frames_options {
    size_t size;
    size_t limit;   /* for what comes in, without its length, in bytes; default 1 MiB */
    bool tell_late; /* of a frame over the limit: when it has been skipped */
} weir_varint_frames_options;

#define WEIR_VARINT_FRAMES_OPTIONS(...) \
    (&(const weir_varint_frames_options){.size = sizeof(weir_varint_frames_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_varint_frames_options_init(weir_varint_frames_options *options);

/*
 * Adds the codec, "varint-frames", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_varint_frames_add(weir_pipeline *pipeline,
                                    const weir_varint_frames_options *options);

#ifdef __cplusplus
}
#endif

#endif
