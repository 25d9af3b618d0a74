/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes: each function within its bounds, at them and beyond.
 */
#include "support/buffer/buf.h"

#include <weir/buf.h>

static void assert_span(weir_span span, const char *text)
{
    assert_int_equal(span.length, strlen(text));
    assert_memory_equal(span.data, text, span.length);
}

TEST(bytes, spans_are_made_of_memory_text_and_buffers)
{
    weir_buf *buf = make_buf_of("hello");

    assert_span(weir_span_of("hello", 2), "he");
    assert_span(weir_span_of_text("hello"), "hello");
    assert_int_equal(weir_span_of(NULL, 0).length, 0);
    assert_int_equal(weir_buf_skip(buf, 3), 0);
    assert_span(weir_buf_span(buf), "lo");
    weir_buf_release(buf);
}

TEST(bytes, spans_of_a_buffer_are_lent_where_the_bytes_are)
{
    weir_buf *buf = make_buf_of("hello");
    weir_span span;

    assert_int_equal(weir_buf_get_span(buf, 0, 5, &span), 0);
    assert_ptr_equal(span.data, weir_buf_bytes(buf));
    assert_int_equal(weir_buf_read_span(buf, 1, &span), 0);
    assert_span(span, "h");
    assert_int_equal(weir_buf_peek_span(buf, 4, &span), 0);
    assert_span(span, "ello");
    assert_int_equal(weir_buf_get_span(buf, 5, 0, &span), 0);
    assert_span(span, "");
    assert_indices(buf, 1, 5);
    weir_buf_release(buf);
}

TEST(bytes, spans_stop_at_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");
    weir_span span = {NULL, 77};

    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_buf_get_span(buf, 0, 6, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_span(buf, 6, 0, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_span(buf, SIZE_MAX, 2, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_span(buf, 2, SIZE_MAX, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_peek_span(buf, 4, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_peek_span(buf, SIZE_MAX, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_span(buf, 4, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_span(buf, SIZE_MAX, &span), WEIR_EBOUNDS);
    assert_int_equal(span.length, 77);
    assert_indices(buf, 2, 5);
    weir_buf_release(buf);
}

TEST(bytes, are_copied_out)
{
    weir_buf *buf = make_buf_of("hello");
    char bytes[6] = "......";

    assert_int_equal(weir_buf_get_bytes(buf, 1, bytes, 4), 0);
    assert_memory_equal(bytes, "ello..", 6);
    assert_int_equal(weir_buf_read_bytes(buf, bytes, 2), 0);
    assert_memory_equal(bytes, "helo..", 6);
    assert_int_equal(weir_buf_peek_bytes(buf, bytes, 3), 0);
    assert_memory_equal(bytes, "lloo..", 6);
    assert_indices(buf, 2, 5);
    assert_int_equal(weir_buf_get_bytes(buf, 5, NULL, 0), 0);
    assert_int_equal(weir_buf_read_bytes(buf, NULL, 0), 0);
    weir_buf_release(buf);
}

TEST(bytes, copying_out_stops_at_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");
    char bytes[8] = "........";

    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_buf_get_bytes(buf, 0, bytes, 6), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_bytes(buf, 6, bytes, 0), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_bytes(buf, SIZE_MAX, bytes, 2), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_bytes(buf, 2, bytes, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_peek_bytes(buf, bytes, 4), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_bytes(buf, bytes, 4), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_bytes(buf, bytes, SIZE_MAX), WEIR_EBOUNDS);
    assert_memory_equal(bytes, "........", 8);
    assert_indices(buf, 2, 5);
    weir_buf_release(buf);
}

TEST(bytes, are_overwritten_up_to_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");

    assert_int_equal(weir_buf_set_bytes(buf, 1, "EL", 2), 0);
    assert_int_equal(weir_buf_set_bytes(buf, 5, NULL, 0), 0);
    assert_int_equal(weir_buf_set_bytes(buf, 4, "xx", 2), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_bytes(buf, 6, "", 0), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_bytes(buf, SIZE_MAX, "xx", 2), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_bytes(buf, 1, "xx", SIZE_MAX), WEIR_EBOUNDS);
    assert_readable(buf, "hELlo");
    weir_buf_release(buf);
}

TEST(bytes, can_be_set_from_the_same_buffer)
{
    weir_buf *buf = make_buf_of("abcdef");

    assert_int_equal(weir_buf_set_bytes(buf, 1, weir_buf_bytes(buf), 5), 0);
    assert_readable(buf, "aabcde");
    weir_buf_release(buf);
}

TEST(bytes, are_appended_until_max)
{
    weir_buf *buf = make_buf(0, 7);

    assert_int_equal(weir_buf_write_bytes(buf, NULL, 0), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "hello", 5), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "xxx", 3), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_bytes(buf, "xxx", SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_bytes(buf, "xxx", SIZE_MAX - 4), WEIR_EBOUNDS);
    assert_readable(buf, "hello");
    assert_int_equal(weir_buf_write_fill(buf, 'x', 3), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_fill(buf, 'x', SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_fill(buf, '.', 2), 0);
    assert_int_equal(weir_buf_write_fill(buf, '.', 0), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "x", 1), WEIR_EBOUNDS);
    assert_readable(buf, "hello..");
    weir_buf_release(buf);
}

TEST(bytes, move_from_buffer_to_buffer)
{
    weir_buf *to = make_buf(0, 8);
    weir_buf *from = make_buf_of("hello, world");

    assert_int_equal(weir_buf_write_buf(to, from, 5), 0);
    assert_int_equal(weir_buf_write_buf(to, from, 0), 0);
    assert_int_equal(weir_buf_write_buf(to, from, 4), WEIR_EBOUNDS); /* there is no room */
    assert_int_equal(weir_buf_write_buf(to, from, 8), WEIR_EBOUNDS); /* there are only 7 */
    assert_int_equal(weir_buf_write_buf(to, from, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_buf(to, to, 0), -EINVAL);
    assert_readable(to, "hello");
    assert_readable(from, ", world");
    assert_int_equal(weir_buf_write_buf(to, from, 3), 0);
    assert_readable(to, "hello, w");
    assert_readable(from, "orld");
    weir_buf_release(to);
    weir_buf_release(from);
}

TEST(bytes, move_between_views_of_the_same_memory)
{
    weir_buf *buf = make_buf_of("abcdef");
    weir_buf *duplicate;

    assert_int_equal(weir_buf_duplicate(buf, &duplicate), 0);
    assert_int_equal(weir_buf_set_write_index(duplicate, 2), 0);
    assert_int_equal(weir_buf_write_buf(duplicate, buf, 4), 0);
    assert_readable(duplicate, "ababcd");
    weir_buf_release(duplicate);
    weir_buf_release(buf);
}

TEST(bytes, of_a_read_only_buffer_stay)
{
    weir_buf *buf = make_read_only_of("hello");
    weir_buf *from = make_buf_of("x");

    assert_int_equal(weir_buf_set_bytes(buf, 0, "x", 1), -EROFS);
    assert_int_equal(weir_buf_set_bytes(buf, 9, "x", 1), -EROFS);
    assert_int_equal(weir_buf_write_bytes(buf, "x", 1), -EROFS);
    assert_int_equal(weir_buf_write_bytes(buf, "x", 0), -EROFS);
    assert_int_equal(weir_buf_write_fill(buf, 'x', 1), -EROFS);
    assert_int_equal(weir_buf_write_buf(buf, from, 1), -EROFS);
    assert_readable(buf, "hello");
    assert_readable(from, "x");
    weir_buf_release(from);
    weir_buf_release(buf);
}
