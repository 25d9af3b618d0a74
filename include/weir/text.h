/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/text.h - text in and out of a buffer: strings, formatted output, hex dumps, UTF-8.
 *
 *      err = weir_buf_printf(buf, "HTTP/1.1 %d %s\r\n", status, reason);
 *
 * A buffer has a length and no NUL: none is written, and one that is read is a byte like others.
 */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H

#include <stdarg.h>

#include <weir/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Appends a text, without its NUL.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_string(weir_buf *buf, const char *text);

/*
 * Copies `length` bytes at `index` as a text with a NUL, into an array of `size` characters.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -ENOSPC (size <= length).
 */
WEIR_API int weir_buf_get_string(const weir_buf *buf, size_t index, size_t length, char *ret_text,
                                 size_t size);

/*
 * Copies the next `length` readable bytes as a text with a NUL, into an array of `size` characters,
 * and skips them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -ENOSPC (size <= length).
 */
WEIR_API int weir_buf_read_string(weir_buf *buf, size_t length, char *ret_text, size_t size);

/*
 * Appends what printf would print.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS, -EINVAL (the format).
 */
WEIR_API int weir_buf_printf(weir_buf *buf, const char *format, ...) WEIR_PRINTF(2, 3);

/*
 * Appends what vprintf would print; the arguments are left as they were.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS, -EINVAL (the format).
 */
WEIR_API int weir_buf_vprintf(weir_buf *buf, const char *format, va_list arguments)
    WEIR_PRINTF(2, 0);

/*
 * Prints bytes for people, 16 a line, as `hexdump -C` does: offset, values, characters. As snprintf
 * it cuts off what is too long for `size`, ends with a NUL, and returns the length of the whole.
 * Thread: any.
 */
WEIR_API size_t weir_span_hex_dump(weir_span span, char *text, size_t size);

/*
 * weir_span_hex_dump of the readable bytes.
 * Thread: its holder's.
 */
static inline size_t weir_buf_hex_dump(const weir_buf *buf, char *text, size_t size)
{
    return weir_span_hex_dump(weir_buf_span(buf), text, size);
}

/* ---- UTF-8 ---- */

/* A check that goes on from piece to piece; zero is its beginning, the fields are private. */
typedef struct weir_utf8 {
    uint8_t missing; /* so many bytes until the character ends */
    uint8_t low;     /* between which the next of them lies */
    uint8_t high;
} weir_utf8;

/*
 * Looks at the next piece of a text. Characters may be cut anywhere. Once it has failed it fails.
 * Thread: any.  Fails: -EILSEQ (not UTF-8: overlong, a surrogate, beyond U+10FFFF, no such bytes).
 */
WEIR_API int weir_utf8_check(weir_utf8 *utf8, weir_span span);

/*
 * Whether the text may end here: no character is cut, and nothing has failed.
 * Thread: any.
 */
static inline bool weir_utf8_is_complete(const weir_utf8 *utf8)
{
    return utf8->missing == 0;
}

/*
 * Whether it is a whole text in UTF-8.
 * Thread: any.
 */
WEIR_API bool weir_span_is_utf8(weir_span span);

/*
 * Whether the readable bytes are a whole text in UTF-8.
 * Thread: its holder's.
 */
static inline bool weir_buf_is_utf8(const weir_buf *buf)
{
    return weir_span_is_utf8(weir_buf_span(buf));
}

#ifdef __cplusplus
}
#endif

#endif
