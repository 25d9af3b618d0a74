/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 validation agrees with a decoder based on code points, wherever the text is split.
 */
#include <stdlib.h>

#include <weir/buf.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* The length of a character by its first byte; 0 = invalid. */
static size_t length_of(uint8_t first)
{
    return first < 0x80         ? 1
           : first >> 5 == 0x6  ? 2
           : first >> 4 == 0xe  ? 3
           : first >> 3 == 0x1e ? 4
                                : 0;
}

static bool is_character(const uint8_t *bytes, size_t length)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t point = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);

    for (size_t i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2)
            return false;
        point = point << 6 | (bytes[i] & 0x3fu);
    }
    return point >= smallest[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

static bool is_utf8_plainly(const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        size_t length = length_of(bytes[0]);

        if (length == 0 || length > size || !is_character(bytes, length))
            return false;
        bytes += length;
        size -= length;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_utf8 = is_utf8_plainly(data, size);
    size_t cut = size > 0 ? data[size - 1] % (size + 1) : 0;
    weir_utf8 utf8 = {0, 0, 0};
    int err;

    expect(weir_span_is_utf8(weir_span_of(data, size)) == is_utf8);
    err = weir_utf8_check(&utf8, weir_span_of(data, cut));
    if (err == 0)
        err = weir_utf8_check(&utf8, weir_span_of(data + cut, size - cut));
    expect((err == 0 && weir_utf8_is_complete(&utf8)) == is_utf8);
    expect(err == 0 || err == -EILSEQ);
    return 0;
}
