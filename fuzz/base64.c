/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64: decoding is strict, so encoding the decoded bytes restores the input text; and encoding
 * then decoding restores any bytes. Input: flags, bytes.
 */
#include <weir/text_codecs.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void *must_allocate(size_t size)
{
    void *memory =
        malloc(size > 0 ? size : 1); /* of the exact size, so that ASan detects an overrun */

    expect(memory != NULL);
    return memory;
}

static void check_decoding(weir_span text, uint32_t flags)
{
    uint8_t *bytes = must_allocate(weir_base64_decoded_max(text.length));
    ssize_t length = weir_base64_decode(text, flags, bytes);

    expect(length >= 0 || length == WEIR_EMALFORMED);
    if (length >= 0) {
        char *again = must_allocate(text.length);

        expect(weir_base64_encoded_length((size_t)length, flags) == text.length);
        expect(weir_base64_encode(weir_span_of(bytes, (size_t)length), flags, again) ==
               text.length);
        expect(text.length == 0 || memcmp(again, text.data, text.length) == 0);
        free(again);
    }
    free(bytes);
}

static void check_encoding(weir_span bytes, uint32_t flags)
{
    size_t length = weir_base64_encoded_length(bytes.length, flags);
    char *text = must_allocate(length);
    uint8_t *again = must_allocate(weir_base64_decoded_max(length));

    expect(weir_base64_encode(bytes, flags, text) == length);
    expect(weir_base64_decode(weir_span_of(text, length), flags, again) == (ssize_t)bytes.length);
    expect(bytes.length == 0 || memcmp(again, bytes.data, bytes.length) == 0);
    free(text);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t flags;

    if (size < 1)
        return 0;
    flags = data[0] & (WEIR_BASE64_URL | WEIR_BASE64_UNPADDED);
    check_decoding(weir_span_of(data + 1, size - 1), flags);
    check_encoding(weir_span_of(data + 1, size - 1), flags);
    return 0;
}
