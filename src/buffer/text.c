/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings, formatted output and hex dumps.
 */
#include <weir/buf.h>

#include <stdio.h>

#include "base/memory.h"

/* ---- strings ---- */

int weir_buf_write_string(weir_buf *buf, const char *text)
{
    return weir_buf_write_bytes(buf, text, strlen(text));
}

int weir_buf_get_string(const weir_buf *buf, size_t index, size_t length, char *ret_text,
                        size_t size)
{
    if (!weir_buf_in_bounds(buf, index, length))
        return WEIR_EBOUNDS;
    if (size <= length)
        return -ENOSPC;
    memcpy(ret_text, buf->data + index, length);
    ret_text[length] = '\0';
    return 0;
}

int weir_buf_read_string(weir_buf *buf, size_t length, char *ret_text, size_t size)
{
    int err = weir_buf_get_string(buf, buf->read, length, ret_text, size);

    if (err == 0)
        buf->read += (uint32_t)length;
    return err;
}

/* ---- formatted ---- */

/* Most formatted texts are shorter. */
#define SHORT_TEXT 256

/* As vsnprintf, but `arguments` can be used again. */
WEIR_PRINTF(3, 0)
static int format_text(char *text, size_t size, const char *format, va_list arguments)
{
    va_list copy;
    int length;

    va_copy(copy, arguments);
    length = vsnprintf(text, size, format, copy);
    va_end(copy);
    return length;
}

WEIR_PRINTF(3, 0)
static int write_long_text(weir_buf *buf, size_t length, const char *format, va_list arguments)
{
    char *text = weir__alloc(length + 1);
    int err;

    if (text == NULL)
        return -ENOMEM;
    (void)format_text(text, length + 1, format, arguments);
    err = weir_buf_write_bytes(buf, text, length);
    weir__free(text);
    return err;
}

/*
 * Not formatted in the buffer itself: printf appends a NUL, for which the buffer may have no room,
 * and which would overwrite a byte that is visible in a view, or after moving the write index.
 */
int weir_buf_vprintf(weir_buf *buf, const char *format, va_list arguments)
{
    char text[SHORT_TEXT];
    int length = format_text(text, sizeof(text), format, arguments);

    if (length < 0)
        return -EINVAL;
    if ((size_t)length < sizeof(text))
        return weir_buf_write_bytes(buf, text, (size_t)length);
    return write_long_text(buf, (size_t)length, format, arguments);
}

int weir_buf_printf(weir_buf *buf, const char *format, ...)
{
    va_list arguments;
    int err;

    va_start(arguments, format);
    err = weir_buf_vprintf(buf, format, arguments);
    va_end(arguments);
    return err;
}

/* ---- hex dump ---- */

/*
 *      00000010  77 65 69 72 20 69 73 20  61 20 6c 6f 77 20 64 61  |weir is a low da|
 *      `- OFFSET `- VALUES                                          `- CHARACTERS
 */
#define DUMP_COUNT 16
#define DUMP_OFFSET_DIGITS 8
#define DUMP_VALUES 10
#define DUMP_CHARACTERS 61
#define DUMP_LINE (DUMP_CHARACTERS + DUMP_COUNT + 2) /* with the bar and the newline */

static void put_hex(char *text, size_t digits, size_t value)
{
    for (; digits > 0; digits--, value /= 16)
        text[digits - 1] = "0123456789abcdef"[value % 16];
}

/* `count` is at most DUMP_COUNT; returns the length of the line. */
static size_t dump_line(const uint8_t *bytes, size_t count, size_t offset, char *line)
{
    memset(line, ' ', DUMP_LINE);
    put_hex(line, DUMP_OFFSET_DIGITS, offset);
    line[DUMP_CHARACTERS - 1] = '|';
    for (size_t i = 0; i < count; i++) {
        size_t gap = i / (DUMP_COUNT / 2);

        put_hex(line + DUMP_VALUES + 3 * i + gap, 2, bytes[i]);
        line[DUMP_CHARACTERS + i] = bytes[i] >= ' ' && bytes[i] <= '~' ? (char)bytes[i] : '.';
    }
    line[DUMP_CHARACTERS + count] = '|';
    line[DUMP_CHARACTERS + count + 1] = '\n';
    return DUMP_CHARACTERS + count + 2;
}

static size_t dump_length(size_t count)
{
    size_t rest = count % DUMP_COUNT;

    return count / DUMP_COUNT * DUMP_LINE + (rest > 0 ? DUMP_LINE - DUMP_COUNT + rest : 0);
}

size_t weir_span_hex_dump(weir_span span, char *text, size_t size)
{
    char line[DUMP_LINE];
    size_t used = 0;

    for (size_t i = 0; i < span.length && used + 1 < size; i += DUMP_COUNT) {
        size_t count = span.length - i < DUMP_COUNT ? span.length - i : DUMP_COUNT;
        size_t length = dump_line(span.data + i, count, i, line);

        if (length > size - used - 1)
            length = size - used - 1;
        memcpy(text + used, line, length);
        used += length;
    }
    if (size > 0)
        text[used] = '\0';
    return dump_length(span.length);
}
