/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings, formatted output, hex dumps.
 */
#include "support/buffer/buf.h"

#include <stdio.h>

#include <weir/buf.h>

#include "support/memory.h"

/* ---- strings ---- */

TEST(text, a_string_is_written_without_its_end)
{
    weir_buf *buf = make_buf(0, 6);

    assert_int_equal(weir_buf_write_string(buf, "hello"), 0);
    assert_int_equal(weir_buf_write_string(buf, ""), 0);
    assert_int_equal(weir_buf_write_string(buf, "xx"), WEIR_EBOUNDS);
    assert_readable(buf, "hello");
    weir_buf_release(buf);
}

TEST(text, a_string_is_read_with_an_end)
{
    weir_buf *buf = make_buf_of("hello");
    char text[6] = "......";

    assert_int_equal(weir_buf_get_string(buf, 1, 3, text, 4), 0);
    assert_string_equal(text, "ell");
    assert_int_equal(text[4], '.');
    assert_int_equal(weir_buf_read_string(buf, 5, text, 6), 0);
    assert_string_equal(text, "hello");
    assert_indices(buf, 5, 5);
    assert_int_equal(weir_buf_read_string(buf, 0, text, 1), 0);
    assert_string_equal(text, "");
    weir_buf_release(buf);
}

TEST(text, a_string_is_bounds_checked)
{
    weir_buf *buf = make_buf_of("hello");
    char text[6] = "......";

    assert_int_equal(weir_buf_get_string(buf, 0, 5, text, 5), -ENOSPC);
    assert_int_equal(weir_buf_get_string(buf, 0, 0, text, 0), -ENOSPC);
    assert_int_equal(weir_buf_read_string(buf, 5, text, 5), -ENOSPC);
    assert_int_equal(weir_buf_get_string(buf, 1, 5, text, 6), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_string(buf, SIZE_MAX, 1, text, 6), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_string(buf, 1, SIZE_MAX, text, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_string(buf, 6, text, 7), WEIR_EBOUNDS);
    assert_memory_equal(text, "......", 6);
    assert_indices(buf, 0, 5);
    weir_buf_release(buf);
}

/* ---- formatted ---- */

TEST(text, printf_appends)
{
    weir_buf *buf = make_buf(0, 0);

    assert_int_equal(weir_buf_printf(buf, "%s", ""), 0);
    assert_int_equal(weir_buf_printf(buf, "HTTP/1.1 %d %s\r\n", 200, "OK"), 0);
    assert_int_equal(weir_buf_printf(buf, "%c%c", 'a', 0), 0);
    assert_int_equal(weir_buf_readable(buf), 19);
    assert_memory_equal(weir_buf_bytes(buf), "HTTP/1.1 200 OK\r\na\0", 19);
    weir_buf_release(buf);
}

/* Around the length that is formatted on the stack. */
TEST(text, printf_takes_every_length)
{
    char expected[600];

    memset(expected, ' ', sizeof(expected));
    for (int length = 1; length <= 600; length++) {
        weir_buf *buf = make_buf(0, (size_t)length);

        assert_int_equal(weir_buf_printf(buf, "%*d", length, 7), 0);
        assert_int_equal(weir_buf_readable(buf), length);
        assert_memory_equal(weir_buf_bytes(buf), expected, (size_t)length - 1);
        assert_int_equal(weir_buf_bytes(buf)[length - 1], '7');
        weir_buf_release(buf);
    }
}

TEST(text, printf_writes_all_or_nothing)
{
    weir_buf *buf = make_buf(0, 300);
    weir_buf *fixed = make_read_only_of("hello");

    assert_int_equal(weir_buf_printf(buf, "%300d", 7), 0);
    assert_int_equal(weir_buf_printf(buf, "x"), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_readable(buf), 300);
    weir_buf_clear(buf);
    assert_int_equal(weir_buf_printf(buf, "%301d", 7), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_readable(buf), 0);
    assert_int_equal(weir_buf_printf(fixed, "x"), -EROFS);
    assert_int_equal(weir_buf_printf(fixed, "%300d", 7), -EROFS);
    assert_readable(fixed, "hello");
    weir_buf_release(fixed);
    weir_buf_release(buf);
}

TEST(text, printf_touches_no_byte_behind_what_it_writes)
{
    weir_buf *buf = make_buf_of("....................");

    assert_int_equal(weir_buf_set_write_index(buf, 0), 0);
    assert_int_equal(weir_buf_printf(buf, "%d", 123), 0);
    assert_int_equal(weir_buf_set_write_index(buf, 20), 0);
    assert_readable(buf, "123.................");
    weir_buf_release(buf);
}

TEST(text, printf_rejects_invalid_formats)
{
    weir_buf *buf = make_buf(0, 0);

    /* no multibyte form in the C locale */
    assert_int_equal(weir_buf_printf(buf, "%ls", L"\x263a"), -EINVAL);
    assert_int_equal(weir_buf_readable(buf), 0);
    weir_buf_release(buf);
}

WEIR_PRINTF(2, 3)
static void print_twice(weir_buf *buf, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    assert_int_equal(weir_buf_vprintf(buf, format, arguments), 0);
    assert_int_equal(weir_buf_vprintf(buf, format, arguments), 0);
    va_end(arguments);
}

TEST(text, vprintf_leaves_the_arguments_as_they_were)
{
    weir_buf *buf = make_buf(0, 0);

    print_twice(buf, "%d %s;", 1, "one");
    assert_readable(buf, "1 one;1 one;");
    weir_buf_clear(buf);
    print_twice(buf, "%300d", 7);
    assert_int_equal(weir_buf_readable(buf), 600);
    weir_buf_release(buf);
}

TEST(text, printf_fails_without_memory)
{
    weir_buf *buf = make_buf(1000, 0);

    test_memory_fail_at(1);
    assert_int_equal(weir_buf_printf(buf, "%300d", 7), -ENOMEM);
    assert_true(test_memory_failed());
    assert_int_equal(weir_buf_readable(buf), 0);
    assert_int_equal(weir_buf_printf(buf, "%300d", 7), 0);
    weir_buf_release(buf);
}

/* ---- hex dump ---- */

static const char dump_of_20[] =
    "00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|\n"
    "00000010  7e 7f ff 20                                       |~.. |\n";

static const uint8_t twenty[20] = {0,  1,  2,  3,  4,  5,  6,    7,    8,    9,
                                   10, 11, 12, 13, 14, 15, 0x7e, 0x7f, 0xff, 0x20};

TEST(text, a_hex_dump_looks_as_that_of_hexdump)
{
    weir_buf *buf;
    char text[256];

    assert_int_equal(weir_buf_create_from(twenty, sizeof(twenty), &buf), 0);
    assert_int_equal(weir_buf_hex_dump(buf, text, sizeof(text)), strlen(dump_of_20));
    assert_string_equal(text, dump_of_20);
    assert_int_equal(weir_buf_skip(buf, 16), 0);
    (void)weir_buf_hex_dump(buf, text, sizeof(text));
    assert_string_equal(text,
                        "00000000  7e 7f ff 20                                       |~.. |\n");
    weir_buf_release(buf);
}

TEST(text, a_hex_dump_is_truncated)
{
    weir_span span = weir_span_of(twenty, sizeof(twenty));
    char text[sizeof(dump_of_20) + 1];

    for (size_t size = 0; size <= sizeof(dump_of_20); size++) {
        memset(text, '#', sizeof(text));
        assert_int_equal(weir_span_hex_dump(span, text, size), strlen(dump_of_20));
        assert_int_equal(text[size], '#');
        if (size > 0) {
            assert_memory_equal(text, dump_of_20, size - 1);
            assert_int_equal(text[size - 1], '\0');
        }
    }
    assert_int_equal(weir_span_hex_dump(span, NULL, 0), strlen(dump_of_20));
}

TEST(text, a_hex_dump_has_the_length_it_says)
{
    const uint8_t many[60] = {0};
    char text[1024];

    for (size_t length = 0; length <= sizeof(many); length++) {
        size_t length_returned = weir_span_hex_dump(weir_span_of(many, length), text, sizeof(text));

        assert_int_equal(length_returned, strlen(text));
    }
    assert_int_equal(weir_span_hex_dump(weir_span_of(NULL, 0), text, sizeof(text)), 0);
    assert_string_equal(text, "");
}
