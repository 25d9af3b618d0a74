/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching bytes: the optimized functions agree with naive ones. Input: the length of the needle,
 * the needle, the haystack.
 */
#include <stdlib.h>

#include "buffer/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static ssize_t find_plainly(weir_span span, weir_span sequence)
{
    for (size_t i = 0; i + sequence.length <= span.length; i++)
        if (sequence.length == 0 || memcmp(span.data + i, sequence.data, sequence.length) == 0)
            return (ssize_t)i;
    return -ENOENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_span wanted, span;
    weir_byte_set set;
    size_t length;

    if (size == 0)
        return 0;
    length = data[0] < size ? data[0] : size - 1;
    wanted = weir_span_of(data + 1, length);
    span = weir_span_of(data + 1 + length, size - 1 - length);
    weir_byte_set_init(&set, wanted.data, wanted.length);
    expect(weir_span_find_any(span, &set) == weir__span_find_any_plain(span, &set));
    expect(weir_span_find_sequence(span, wanted) == find_plainly(span, wanted));
    if (length > 0)
        expect(weir_span_find(span, wanted.data[0]) ==
               find_plainly(span, weir_span_of(wanted.data, 1)));
    return 0;
}
