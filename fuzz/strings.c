/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The string codec accepts a message if and only if it has no NUL and, with .utf8, is valid UTF-8;
 * and encodes it back to the same bytes. Input: .utf8, the bytes.
 */
#include <weir/text_codecs.h>

#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/embedded.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void expect_bytes(weir_msg *msg, weir_span expected)
{
    weir_buf *buf = weir_buf_of(msg);

    expect(buf != NULL && weir_buf_readable(buf) == expected.length);
    expect(expected.length == 0 ||
           memcmp(weir_buf_bytes(buf), expected.data, expected.length) == 0);
    weir_msg_release(msg);
}

static void check(weir_embedded *embedded, weir_span bytes, bool is_text)
{
    weir_buf *buf;
    weir_msg *msg;
    int err;

    expect(weir_buf_create_from(bytes.data, bytes.length, &buf) == 0);
    err = weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    msg = weir_embedded_read_inbound(embedded);
    expect(err == (is_text ? 0 : WEIR_EMALFORMED) && (msg != NULL) == is_text);
    if (msg == NULL)
        return;
    expect(weir_string_length(weir_string_of(msg)) == bytes.length);
    expect(strlen(weir_string_text(weir_string_of(msg))) == bytes.length);
    expect(weir_embedded_write_outbound(embedded, msg) == 0);
    expect_bytes(weir_embedded_read_outbound(embedded), bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_strings_options options = {.size = sizeof(options)};
    weir_embedded *embedded;
    weir_span bytes;
    bool is_text;

    if (size < 1)
        return 0;
    options.utf8 = (data[0] & 1) != 0;
    bytes = weir_span_of(data + 1, size - 1);
    is_text = memchr(bytes.data, '\0', bytes.length) == NULL &&
              (!options.utf8 || weir_span_is_utf8(bytes));
    expect(weir_embedded_create(NULL, &embedded) == 0);
    expect(weir_strings_add(weir_embedded_pipeline(embedded), &options) == 0);
    check(embedded, bytes, is_text);
    weir_embedded_release(embedded);
    return 0;
}
