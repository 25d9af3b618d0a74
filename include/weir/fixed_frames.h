/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/fixed_frames.h - frames that all have the same length.
 *
 *      weir_fixed_frames_add(pipeline, 3);
 *
 *      "abcdefgh"      ->  "abc", "def"               and "gh?", when its end has come
 *
 * What is passed on are slices of what came in. What is left at the end of a stream is dropped.
 */
#ifndef WEIR_FIXED_FRAMES_H
#define WEIR_FIXED_FRAMES_H

#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the decoder, "fixed-frames", at the tail: frames of `length` bytes.
 * Thread: any.  Fails: -EINVAL (the length is 0, or beyond what a buffer can hold), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_fixed_frames_add(weir_pipeline *pipeline, size_t length);

#ifdef __cplusplus
}
#endif

#endif
