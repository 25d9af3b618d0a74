/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The netstring decoder agrees with a reference implementation however the stream is split. Input:
 * limit, split and flags, the stream.
 */
#include <weir/frames.h>

#include "support/codec/reference_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(weir_pipeline *pipeline, const void *options)
{
    return weir_netstrings_add(pipeline, options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_netstrings_options options = {.size = sizeof(options)};
    struct transcript expected = {0};

    if (size < 2)
        return 0;
    options.max_length = 1 + (size_t)data[0];
    options.report_after_skip = (data[1] & 1) != 0;
    reference_netstrings(options.max_length, data + 2, size - 2, &expected);
    transcript_expect(&expected, add, &options, data + 2, size - 2, 2u + data[1]);
    return 0;
}
