/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixed frames: the decoder agrees with a reference implementation however the stream is split.
 * Input: frame length, split, the stream.
 */
#include <weir/frames.h>

#include "support/codec/reference_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(weir_pipeline *pipeline, const void *length)
{
    return weir_fixed_frames_add(pipeline, *(const size_t *)length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct transcript expected = {0};
    size_t length;

    if (size < 2)
        return 0;
    length = 1 + (size_t)data[0];
    reference_fixed_frames(length, data + 2, size - 2, &expected);
    transcript_expect(&expected, add, &length, data + 2, size - 2, 2u + data[1]);
    return 0;
}
