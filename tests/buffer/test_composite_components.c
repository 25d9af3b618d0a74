/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding, removing and consolidating components.
 */
#include <weir/composite.h>

#include <limits.h>

#include "support/buffer/buf.h"
#include "support/buffer/composite.h"

TEST(composite, a_component_is_what_was_readable_of_the_buffer)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf_of("..read");

    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(buf)), 0);
    assert_component(composite, 0, "read");
    assert_unread(composite, "read");
    weir_composite_release(composite);
}

TEST(composite, reading_leaves_the_buffers_as_they_are)
{
    weir_composite *first = make_composite(0), *second = make_composite(0);
    weir_buf *buf = make_buf_of("shared");
    uint8_t byte;

    assert_int_equal(weir_composite_add(first, weir_buf_msg(weir_buf_retain(buf))), 0);
    assert_int_equal(weir_composite_add(second, weir_buf_msg(weir_buf_retain(buf))), 0);
    assert_int_equal(weir_composite_read_u8(first, &byte), 0);
    assert_unread(first, "hared");
    assert_unread(second, "shared");
    assert_readable(buf, "shared");
    weir_composite_release(first);
    weir_composite_release(second);
    weir_buf_release(buf);
}

TEST(composite, can_have_empty_components)
{
    weir_composite *composite = make_composite(0);
    struct iovec vectors[8];
    uint16_t number;

    add_text(composite, "");
    add_text(composite, "a");
    add_text(composite, "");
    add_text(composite, "b");
    add_text(composite, "");
    assert_int_equal(weir_composite_count(composite), 5);
    assert_int_equal(weir_composite_iovecs(composite, vectors, 8), 2);
    assert_int_equal(weir_composite_find_sequence(composite, 0, weir_span_of_text("ab")), 0);
    assert_int_equal(weir_composite_read_u16(composite, &number), 0);
    assert_int_equal(number, 'a' << 8 | 'b');
    weir_composite_discard(composite);
    assert_int_equal(weir_composite_count(composite), 0);
    weir_composite_release(composite);
}

TEST(composite, insert_puts_components_in_order)
{
    weir_composite *composite = make_composite(0);

    add_text(composite, "c");
    assert_int_equal(weir_composite_insert(composite, 0, weir_buf_msg(make_buf_of("a"))), 0);
    assert_int_equal(weir_composite_insert(composite, 1, weir_buf_msg(make_buf_of("b"))), 0);
    assert_int_equal(weir_composite_insert(composite, 3, weir_buf_msg(make_buf_of("d"))), 0);
    assert_unread(composite, "abcd");
    weir_composite_release(composite);
}

TEST(composite, insert_before_the_read_index_keeps_what_is_readable)
{
    weir_composite *composite = make_one_two_three();

    assert_int_equal(weir_composite_skip(composite, 4), 0); /* "o" of "two" is next */
    assert_int_equal(weir_composite_insert(composite, 1, weir_buf_msg(make_buf_of("..."))), 0);
    assert_unread(composite, "wothree");
    assert_int_equal(weir_composite_read_index(composite), 7);
    assert_int_equal(weir_composite_set_read_index(composite, 0), 0);
    assert_unread(composite, "one...twothree");
    weir_composite_release(composite);
}

TEST(composite, insert_at_the_read_index_can_be_read)
{
    weir_composite *composite = make_one_two_three();

    assert_int_equal(weir_composite_skip(composite, 3), 0);
    assert_int_equal(weir_composite_insert(composite, 1, weir_buf_msg(make_buf_of("..."))), 0);
    assert_unread(composite, "...twothree");
    weir_composite_release(composite);
}

TEST(composite, releases_messages_that_it_rejects)
{
    static const weir_msg_type other_type = {.name = "other"};
    weir_composite *composite = make_one_two_three();
    weir_buf *buf = make_buf_of("late");
    weir_msg other;

    weir_msg_init(&other, &other_type);
    (void)weir_msg_retain(&other);
    assert_int_equal(weir_composite_add(composite, &other), -EINVAL);
    assert_int_equal(weir_msg_refs(&other), 1);
    assert_int_equal(weir_composite_add(composite, NULL), -EINVAL);
    assert_int_equal(weir_composite_insert(composite, 4, weir_buf_msg(weir_buf_retain(buf))),
                     WEIR_EBOUNDS);
    assert_int_equal(weir_composite_insert(composite, SIZE_MAX, weir_buf_msg(weir_buf_retain(buf))),
                     WEIR_EBOUNDS);
    assert_int_equal(weir_msg_refs(&buf->msg), 1);
    (void)weir_composite_retain(composite);
    assert_int_equal(weir_composite_add(composite, weir_composite_msg(composite)), -EINVAL);
    assert_int_equal(weir_msg_refs(weir_composite_msg(composite)), 1);
    assert_unread(composite, "onetwothree");
    weir_buf_release(buf);
    weir_composite_release(composite);
}

TEST(composite, a_nested_one_is_flattened)
{
    weir_composite *outer = make_composite(0), *inner = make_one_two_three();

    add_text(outer, "<");
    assert_int_equal(weir_composite_skip(inner, 4), 0); /* all of "one", some of "two" */
    assert_int_equal(weir_composite_add(outer, weir_composite_msg(inner)), 0);
    add_text(outer, ">");
    assert_int_equal(weir_composite_count(outer), 4);
    assert_component(outer, 1, "wo");
    assert_component(outer, 2, "three");
    assert_unread(outer, "<wothree>");
    weir_composite_release(outer);
}

TEST(composite, a_nested_one_that_is_shared_stays_whole)
{
    weir_composite *outer = make_composite(0), *inner = make_one_two_three();

    (void)weir_composite_retain(inner);
    assert_int_equal(weir_composite_add(outer, weir_composite_msg(inner)), 0);
    assert_int_equal(weir_composite_skip(outer, 5), 0);
    weir_composite_release(outer);
    assert_unread(inner, "onetwothree");
    weir_composite_release(inner);
}

TEST(composite, an_empty_nested_one_adds_nothing)
{
    weir_composite *outer = make_one_two_three(), *inner = make_one_two_three();

    assert_int_equal(weir_composite_skip(inner, 11), 0);
    assert_int_equal(weir_composite_insert(outer, 1, weir_composite_msg(inner)), 0);
    assert_int_equal(weir_composite_insert(outer, 3, weir_composite_msg(make_composite(0))), 0);
    assert_int_equal(weir_composite_count(outer), 3);
    assert_unread(outer, "onetwothree");
    weir_composite_release(outer);
}

TEST(composite, remove_returns_the_buffer)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf_of("..body"), *removed;

    add_text(composite, "head");
    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(buf)), 0);
    assert_int_equal(weir_composite_remove(composite, 1, &removed), 0);
    assert_ptr_equal(removed, buf);
    assert_readable(removed, "body");
    assert_unread(composite, "head");
    weir_buf_release(removed);
    weir_composite_release(composite);
}

TEST(composite, remove_of_a_buffer_that_others_have_gives_a_view)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf_of("shared"), *removed;

    assert_int_equal(weir_composite_add(composite, weir_buf_msg(weir_buf_retain(buf))), 0);
    assert_int_equal(weir_composite_skip(composite, 2), 0);
    assert_int_equal(weir_composite_remove(composite, 0, &removed), 0);
    assert_ptr_not_equal(removed, buf);
    assert_readable(removed, "ared");
    assert_readable(buf, "shared");
    assert_int_equal(weir_composite_read_index(composite), 0);
    weir_buf_release(buf);
    weir_buf_release(removed);
    weir_composite_release(composite);
}

TEST(composite, remove_returns_the_component_after_changes_of_the_buffer)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf(64, 0), *removed;

    memcpy(weir_buf_space(buf), "early late", 10);
    assert_int_equal(weir_buf_advance(buf, 5), 0);
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(weir_buf_retain(buf))), 0);
    assert_int_equal(weir_buf_advance(buf, 5), 0);
    weir_buf_release(buf);
    assert_int_equal(weir_composite_remove(composite, 0, &removed), 0);
    assert_readable(removed, "early");
    weir_buf_release(removed);
    weir_composite_release(composite);
}

TEST(composite, keeps_the_bytes_of_a_buffer_that_another_holder_empties)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf_of("kept"), *removed;

    assert_int_equal(weir_composite_add(composite, weir_buf_msg(weir_buf_retain(buf))), 0);
    weir_buf_clear(buf);
    assert_int_equal(weir_buf_reserve(buf, 100000), 0);
    assert_unread(composite, "kept");
    assert_int_equal(weir_composite_remove(composite, 0, &removed), 0);
    assert_readable(removed, "kept");
    weir_buf_release(removed);
    weir_buf_release(buf);
    weir_composite_release(composite);
}

TEST(composite, remove_keeps_what_was_read_read)
{
    weir_composite *composite = make_one_two_three();
    weir_buf *removed;

    assert_int_equal(weir_composite_skip(composite, 5), 0); /* "o" of "two" is next */
    assert_int_equal(weir_composite_remove(composite, 0, &removed), 0);
    assert_readable(removed, "");
    weir_buf_release(removed);
    assert_int_equal(weir_composite_read_index(composite), 2);
    assert_int_equal(weir_composite_remove(composite, 0, &removed), 0);
    assert_readable(removed, "o");
    weir_buf_release(removed);
    assert_int_equal(weir_composite_read_index(composite), 0);
    assert_unread(composite, "three");
    assert_int_equal(weir_composite_remove(composite, 1, &removed), WEIR_EBOUNDS);
    weir_composite_release(composite);
}

TEST(composite, discard_releases_what_was_read_to_its_end)
{
    weir_composite *composite = make_one_two_three();

    weir_composite_discard(composite);
    assert_int_equal(weir_composite_count(composite), 3);
    assert_int_equal(weir_composite_skip(composite, 5), 0);
    weir_composite_discard(composite);
    assert_int_equal(weir_composite_count(composite), 2);
    assert_int_equal(weir_composite_read_index(composite), 2);
    assert_unread(composite, "othree");
    assert_int_equal(weir_composite_skip(composite, 6), 0);
    weir_composite_discard(composite);
    assert_int_equal(weir_composite_count(composite), 0);
    assert_int_equal(weir_composite_length(composite), 0);
    weir_composite_release(composite);
}

TEST(composite, consolidate_makes_one_component_of_all)
{
    weir_composite *composite = make_one_two_three();

    assert_int_equal(weir_composite_skip(composite, 4), 0);
    assert_int_equal(weir_composite_consolidate(composite), 0);
    assert_int_equal(weir_composite_count(composite), 1);
    assert_int_equal(weir_composite_read_index(composite), 4);
    assert_component(composite, 0, "onetwothree");
    assert_unread(composite, "wothree");
    weir_composite_release(composite);
}

TEST(composite, components_beyond_the_limit_are_consolidated)
{
    weir_composite *composite = make_composite(0);

    for (size_t i = 0; i < WEIR_COMPOSITE_DEFAULT_MAX; i++) {
        add_text(composite, "x");
        assert_int_equal(weir_composite_count(composite), i + 1);
    }
    add_text(composite, "x");
    assert_int_equal(weir_composite_count(composite), 1);
    assert_unread(composite, "xxxxxxxxxxxxxxxxx");
    weir_composite_release(composite);
}

TEST(composite, has_the_limit_that_was_asked_for)
{
    weir_composite *few = make_composite(1), *many = make_composite(SIZE_MAX);

    for (size_t i = 0; i < 1000; i++) {
        add_text(few, "x");
        add_text(many, "x");
    }
    assert_int_equal(weir_composite_count(few), 1);
    assert_int_equal(weir_composite_count(many), 1000);
    assert_int_equal(weir_composite_length(few), 1000);
    assert_int_equal(weir_composite_length(many), 1000);
    weir_composite_release(few);
    weir_composite_release(many);
}

/* Its length is wrong: these bytes must not be read. */
static weir_msg *make_vast(void)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_wrap_static("", WEIR_BUF_MAX, &buf), 0);
    return weir_buf_msg(buf);
}

TEST(composite, can_be_longer_than_any_buffer)
{
    weir_composite *composite = make_composite(2);
    weir_buf *copy;
    size_t length = 3 * WEIR_BUF_MAX;

    for (int i = 0; i < 3; i++) /* beyond the limit, but there is no buffer for all of it */
        assert_int_equal(weir_composite_add(composite, make_vast()), 0);
    assert_int_equal(weir_composite_count(composite), 3);
    assert_true(weir_composite_length(composite) == length);
    assert_int_equal(weir_composite_consolidate(composite), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_copy(composite, 1, length - 1, &copy), -EINVAL);
    assert_int_equal(weir_composite_skip(composite, length), 0);
    assert_int_equal(weir_composite_skip(composite, 1), WEIR_EBOUNDS);
    weir_composite_release(composite);
}
