/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Varints: a decoded value encodes to the same bytes; a rejected one leaves the buffer unchanged.
 */
#include <stdlib.h>

#include <weir/buf.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void expect_same_when_written(const weir_buf *buf, size_t from, uint64_t value)
{
    size_t length = weir_buf_read_index(buf) - from;
    weir_span read, written;
    weir_buf *again;

    if (weir_buf_create(0, 0, &again) < 0)
        return;
    expect(weir_buf_write_varint(again, value) == 0);
    expect(weir_buf_get_span(buf, from, length, &read) == 0);
    written = weir_buf_span(again);
    expect(written.length == length && length == weir_varint_length(value));
    expect(memcmp(written.data, read.data, length) == 0);
    weir_buf_release(again);
}

/* The reason for a rejection follows from the bytes. */
static void expect_reason(const weir_buf *buf, int err)
{
    weir_span span = weir_buf_span(buf);
    size_t tail = 0;

    while (tail < span.length && tail < WEIR_VARINT_MAX && span.data[tail] >= 0x80)
        tail++;
    if (tail >= WEIR_VARINT_MAX - 1 && span.length >= WEIR_VARINT_MAX &&
        span.data[WEIR_VARINT_MAX - 1] > 1)
        expect(err == -EOVERFLOW);
    else if (tail == span.length)
        expect(err == WEIR_EBOUNDS);
    else
        expect(err == -EBADMSG && tail > 0 && span.data[tail] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t value;
    weir_buf *buf;

    if (weir_buf_wrap_static(data, size, &buf) < 0)
        return 0;
    while (weir_buf_readable(buf) > 0) {
        size_t from = weir_buf_read_index(buf);
        int err = weir_buf_read_varint(buf, &value);

        if (err == 0) {
            expect_same_when_written(buf, from, value);
            continue;
        }
        expect(weir_buf_read_index(buf) == from);
        expect_reason(buf, err);
        expect(weir_buf_skip(buf, 1) == 0);
    }
    weir_buf_release(buf);
    return 0;
}
