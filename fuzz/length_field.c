/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length field decoder agrees with a reference implementation for any options, however the
 * stream is split.
 */
#include "support/codec/reference_frames.h"

#define OPTION_BYTES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(weir_pipeline *pipeline, const void *options)
{
    return weir_length_field_add(pipeline, options);
}

/* Valid options only, so that most of the time is spent on frames. */
static weir_length_field_options read_options(const uint8_t *data)
{
    weir_length_field_options options = {.size = sizeof(options)};

    options.width = 1 + data[0] % 8;
    options.order = (data[0] & 0x80) != 0 ? WEIR_LITTLE_ENDIAN : WEIR_BIG_ENDIAN;
    options.report_after_skip = (data[0] & 0x40) != 0;
    options.offset = data[1] % 16;
    options.adjustment = (int8_t)data[2];
    options.strip = data[3] % 32;
    options.max_length = 160 + data[4];
    return options;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct transcript expected = {0};
    weir_length_field_options options;
    uint32_t cuts;

    if (size < OPTION_BYTES)
        return 0;
    options = read_options(data);
    cuts = 2u + data[5];
    data += OPTION_BYTES;
    size -= OPTION_BYTES;
    reference_length_field(&options, data, size, &expected);
    transcript_expect(&expected, add, &options, data, size, cuts);
    return 0;
}
