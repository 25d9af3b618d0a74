/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delimited frames and lines: the decoder agrees with a reference implementation however the stream
 * is split.
 *
 * Input: flags, limit, split, four delimiter lengths, the delimiters, the stream.
 */
#include <weir/frames.h>

#include "support/codec/reference_frames.h"

#define DELIMITERS 4
#define OPTION_BYTES 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(weir_pipeline *pipeline, const void *options)
{
    return weir_delimited_add(pipeline, options);
}

static int add_lines(weir_pipeline *pipeline, const void *arg)
{
    const weir_delimited_options *options = arg;

    return weir_lines_add(pipeline,
                          WEIR_LINES_OPTIONS(.max_length = options->max_length,
                                             .keep_end = options->keep_delimiter,
                                             .report_after_skip = options->report_after_skip));
}

static void check(const weir_delimited_options *options, transcript_add_fn *add_it,
                  const uint8_t *data, size_t size, uint32_t cuts)
{
    struct transcript expected = {0};

    reference_delimited(options, data, size, &expected);
    transcript_expect(&expected, add_it, options, data, size, cuts);
}

static size_t read_delimiters(const uint8_t *data, size_t size, weir_span *ret_spans,
                              size_t *ret_count)
{
    size_t used = OPTION_BYTES;

    for (size_t i = 0; i < DELIMITERS; i++) {
        size_t length = data[3 + i] % 8;

        if (length == 0 || size - used < length)
            continue;
        ret_spans[(*ret_count)++] = weir_span_of(data + used, length);
        used += length;
    }
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const weir_span line_ends[] = {{(const uint8_t *)"\n", 1}, {(const uint8_t *)"\r\n", 2}};
    weir_delimited_options options = {.size = sizeof(options)};
    weir_span spans[DELIMITERS];
    uint32_t cuts;
    size_t used;

    if (size < OPTION_BYTES)
        return 0;
    options.keep_delimiter = (data[0] & 1) != 0;
    options.report_after_skip = (data[0] & 2) != 0;
    options.max_length = 1 + (size_t)data[1];
    cuts = 2u + data[2];
    used = read_delimiters(data, size, spans, &options.count);
    options.delimiters = spans;
    if (options.count > 0)
        check(&options, add, data + used, size - used, cuts);
    options.delimiters = line_ends;
    options.count = 2;
    check(&options, add_lines, data + used, size - used, cuts);
    return 0;
}
