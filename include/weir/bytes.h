/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/bytes.h - runs of bytes in and out of a buffer, copied or lent.
 *
 * get and set work at an index, anywhere between 0 and the write index; peek and read at the read
 * index, and read moves it; write appends and grows. A span is lent: it is good until the buffer
 * changes or goes. For a piece that stays, take a weir_buf_slice.
 */
#ifndef WEIR_BYTES_H
#define WEIR_BYTES_H

#include <string.h>

#include <weir/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These bytes as a span.
 * Thread: any.  Lends until they go: the bytes.
 */
static inline weir_span weir_span_of(const void *bytes, size_t length)
{
    weir_span span = {(const uint8_t *)bytes, length};

    return span;
}

/*
 * The characters of a text as a span, without the NUL.
 * Thread: any.  Lends until it goes: the text.
 */
static inline weir_span weir_span_of_text(const char *text)
{
    return weir_span_of(text, strlen(text));
}

/*
 * The readable bytes as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 */
static inline weir_span weir_buf_span(const weir_buf *buf)
{
    return weir_span_of(weir_buf_bytes(buf), weir_buf_readable(buf));
}

/*
 * The bytes at `index` as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_get_span(const weir_buf *buf, size_t index, size_t length,
                               weir_span *ret_span);

/*
 * The next readable bytes as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_peek_span(const weir_buf *buf, size_t length, weir_span *ret_span);

/*
 * The next readable bytes as a span; they are skipped.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_read_span(weir_buf *buf, size_t length, weir_span *ret_span);

/*
 * Copies the bytes at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_get_bytes(const weir_buf *buf, size_t index, void *ret_bytes, size_t length);

/*
 * Copies the next readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_peek_bytes(const weir_buf *buf, void *ret_bytes, size_t length);

/*
 * Copies the next readable bytes and skips them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_read_bytes(weir_buf *buf, void *ret_bytes, size_t length);

/*
 * Overwrites the bytes at `index`. `bytes` may lie in the buffer itself.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
WEIR_API int weir_buf_set_bytes(weir_buf *buf, size_t index, const void *bytes, size_t length);

/*
 * Appends these bytes, which do not lie in the buffer itself.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_bytes(weir_buf *buf, const void *bytes, size_t length);

/*
 * Appends a byte `length` times.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_fill(weir_buf *buf, uint8_t byte, size_t length);

/*
 * Appends the next `length` readable bytes of another buffer, where they are skipped.
 * Thread: the holder's of both.  Fails: WEIR_EBOUNDS (beyond max, or `from` has fewer), -ENOMEM,
 * -EROFS, -EINVAL (both are one).
 */
WEIR_API int weir_buf_write_buf(weir_buf *buf, weir_buf *from, size_t length);

#ifdef __cplusplus
}
#endif

#endif
