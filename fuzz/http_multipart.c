/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multipart: the parser produces the same events whether the content arrives whole, split, or byte
 * by byte, and names no more than what was sent. Input: limits, split, the content, whose boundary
 * is "x".
 */
#include "support/protocol/http/multipart_transcript.h"

#define COUNTS 2 /* bytes before the content */
#define TYPE "multipart/form-data; boundary=x"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_same(const weir_buf *a, weir_buf *b)
{
    if (!weir_buf_equal(a, b))
        abort();
    weir_buf_release(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_http_multipart_options options = {.size = sizeof(options)};
    weir_span content;
    weir_buf *whole;

    if (size < COUNTS)
        return 0;
    content = weir_span_of(data + COUNTS, size - COUNTS);
    options.max_parts = (data[0] & 1) != 0 ? 2 : 0;
    options.max_header_bytes = (data[0] & 2) != 0 ? 60 : 0;
    whole = transcript_of(TYPE, &options, content, SIZE_MAX, SIZE_MAX);
    expect_same(whole, transcript_of(TYPE, &options, content, 1, 1));
    expect_same(whole, transcript_of(TYPE, &options, content, 1u + data[1], SIZE_MAX));
    expect_same(whole, transcript_of(TYPE, &options, content, 1u + data[1], 1u + data[1]));
    if (weir_buf_readable(whole) > 4 * size + 64 * (size / 40 + 1))
        abort();
    weir_buf_release(whole);
    return 0;
}
