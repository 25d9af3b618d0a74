/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composites: single cases with their limits. test_composite_components.c tests their components,
 * test_composite_model.c random sequences.
 */
#include <weir/composite.h>

#include <limits.h>

#include <weir/pool.h>
#include <weir/thread.h>

#include "support/buffer/buf.h"
#include "support/buffer/composite.h"
#include "support/memory.h"

/* ---- life ---- */

TEST(composite, a_new_one_is_empty)
{
    weir_composite *composite = make_composite(0);
    weir_span span;
    weir_buf *buf;
    uint8_t byte;

    assert_int_equal(weir_composite_count(composite), 0);
    assert_int_equal(weir_composite_length(composite), 0);
    assert_int_equal(weir_composite_readable(composite), 0);
    assert_int_equal(weir_composite_read_index(composite), 0);
    assert_int_equal(weir_composite_get_bytes(composite, 0, &byte, 0), 0);
    assert_int_equal(weir_composite_get_bytes(composite, 0, &byte, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_u8(composite, &byte), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_component(composite, 0, &span), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_remove(composite, 0, &buf), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_find(composite, 0, 0), -ENOENT);
    assert_int_equal(weir_composite_consolidate(composite), 0);
    weir_composite_discard(composite);
    assert_int_equal(weir_composite_count(composite), 0);
    weir_composite_release(composite);
    weir_composite_release(NULL);
}

TEST(composite, is_a_message_of_its_own_type)
{
    weir_composite *composite = make_one_two_three();
    weir_msg *msg = weir_composite_msg(composite);
    weir_buf *buf = make_buf_of("buf");

    assert_ptr_equal(weir_composite_of(msg), composite);
    assert_null(weir_composite_of(weir_buf_msg(buf)));
    assert_null(weir_composite_of(NULL));
    assert_null(weir_buf_of(msg));
    assert_string_equal(msg->type->name, "composite");
    weir_buf_release(buf);
    weir_composite_release(composite);
}

TEST(composite, counts_what_is_readable_against_water_marks)
{
    weir_composite *composite = make_one_two_three();

    assert_int_equal(weir_msg_size(weir_composite_msg(composite)), 11);
    assert_int_equal(weir_composite_skip(composite, 4), 0);
    assert_int_equal(weir_msg_size(weir_composite_msg(composite)), 7);
    weir_composite_release(composite);
}

TEST(composite, releases_its_components_with_its_last_reference)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf_of("kept");

    assert_int_equal(weir_composite_add(composite, weir_buf_msg(weir_buf_retain(buf))), 0);
    assert_ptr_equal(weir_composite_retain(composite), composite);
    weir_composite_release(composite);
    assert_int_equal(weir_msg_refs(&buf->msg), 2);
    weir_composite_release(composite);
    assert_int_equal(weir_msg_refs(&buf->msg), 1);
    weir_buf_release(buf);
}

/* ---- indices and bytes ---- */

TEST(composite, indices_end_at_the_length)
{
    weir_composite *composite = make_one_two_three();

    assert_int_equal(weir_composite_set_read_index(composite, 11), 0);
    assert_int_equal(weir_composite_set_read_index(composite, 12), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_set_read_index(composite, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_skip(composite, 0), 0);
    assert_int_equal(weir_composite_skip(composite, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_set_read_index(composite, 1), 0);
    assert_int_equal(weir_composite_skip(composite, SIZE_MAX), WEIR_EBOUNDS); /* 1 + that is 0 */
    assert_int_equal(weir_composite_read_index(composite), 1);
    weir_composite_release(composite);
}

TEST(composite, bytes_beyond_the_length_are_out_of_bounds)
{
    weir_composite *composite = make_one_two_three();
    char bytes[16];

    assert_int_equal(weir_composite_get_bytes(composite, 0, bytes, 11), 0);
    assert_memory_equal(bytes, "onetwothree", 11);
    assert_int_equal(weir_composite_get_bytes(composite, 11, bytes, 0), 0);
    assert_int_equal(weir_composite_get_bytes(composite, 5, NULL, 0), 0);
    assert_int_equal(weir_composite_get_bytes(composite, 12, bytes, 0), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_get_bytes(composite, 0, bytes, 12), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_get_bytes(composite, 10, bytes, 2), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_get_bytes(composite, 1, bytes, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_get_bytes(composite, SIZE_MAX, bytes, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_bytes(composite, bytes, 12), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_index(composite), 0);
    assert_int_equal(weir_composite_read_bytes(composite, bytes, 5), 0);
    assert_memory_equal(bytes, "onetw", 5);
    assert_int_equal(weir_composite_read_index(composite), 5);
    weir_composite_release(composite);
}

TEST(composite, numbers_are_read_across_borders)
{
    weir_composite *composite = make_composite(0);
    uint64_t u64;
    uint32_t u32;
    uint16_t u16;
    uint8_t u8;

    add_text(composite, "\x01\x02\x03");
    add_text(composite, "\x04");
    add_text(composite, "\x05\x06\x07\x08");
    assert_int_equal(weir_composite_get_u64(composite, 0, &u64), 0);
    assert_true(u64 == UINT64_C(0x0102030405060708));
    assert_int_equal(weir_composite_get_u64_le(composite, 0, &u64), 0);
    assert_true(u64 == UINT64_C(0x0807060504030201));
    assert_int_equal(weir_composite_get_u64(composite, 1, &u64), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_u8(composite, &u8), 0);
    assert_int_equal(u8, 1);
    assert_int_equal(weir_composite_peek_u32(composite, &u32), 0);
    assert_int_equal(u32, 0x02030405);
    assert_int_equal(weir_composite_read_u32_le(composite, &u32), 0);
    assert_int_equal(u32, 0x05040302);
    assert_int_equal(weir_composite_read_u16(composite, &u16), 0);
    assert_int_equal(u16, 0x0607);
    assert_int_equal(weir_composite_read_u16(composite, &u16), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_index(composite), 7);
    weir_composite_release(composite);
}

/* ---- parts ---- */

TEST(composite, a_slice_within_a_component_is_a_buffer)
{
    weir_composite *composite = make_one_two_three();
    weir_span whole;
    weir_msg *slice;

    assert_int_equal(weir_composite_component(composite, 2, &whole), 0);
    assert_int_equal(weir_composite_slice(composite, 7, 3, &slice), 0);
    assert_non_null(weir_buf_of(slice));
    assert_ptr_equal(weir_buf_bytes(weir_buf_of(slice)), whole.data + 1);
    weir_composite_release(composite);
    assert_readable(weir_buf_of(slice), "hre");
    weir_msg_release(slice);
}

TEST(composite, a_slice_across_components_is_a_composite_of_views)
{
    weir_composite *composite = make_one_two_three(), *slice;
    weir_msg *msg;

    assert_int_equal(weir_composite_skip(composite, 2), 0);
    assert_int_equal(weir_composite_read_slice(composite, 5, &msg), 0);
    assert_int_equal(weir_composite_read_index(composite), 7);
    weir_composite_release(composite);
    slice = weir_composite_of(msg);
    assert_non_null(slice);
    assert_int_equal(weir_composite_count(slice), 3);
    assert_unread(slice, "etwot");
    weir_composite_release(slice);
}

TEST(composite, an_empty_slice_is_an_empty_buffer)
{
    weir_composite *composite = make_one_two_three();
    weir_msg *slice;

    assert_int_equal(weir_composite_slice(composite, 3, 0, &slice), 0);
    assert_int_equal(weir_buf_readable(weir_buf_of(slice)), 0);
    weir_msg_release(slice);
    assert_int_equal(weir_composite_slice(composite, 11, 0, &slice), 0);
    weir_msg_release(slice);
    assert_int_equal(weir_composite_slice(composite, 12, 0, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_slice(composite, 11, 1, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_slice(composite, 1, SIZE_MAX, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_slice(composite, 12, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_read_index(composite), 0);
    weir_composite_release(composite);
}

TEST(composite, a_copy_has_bytes_of_its_own)
{
    weir_composite *composite = make_one_two_three();
    weir_buf *copy;

    assert_int_equal(weir_composite_copy(composite, 2, 6, &copy), 0);
    assert_int_equal(weir_composite_copy(composite, 6, 6, &copy), WEIR_EBOUNDS);
    weir_composite_release(composite);
    assert_readable(copy, "etwoth");
    weir_buf_release(copy);
}

TEST(composite, iovecs_are_the_readable_bytes)
{
    weir_composite *composite = make_one_two_three();
    struct iovec vectors[4];

    assert_int_equal(weir_composite_skip(composite, 4), 0);
    assert_int_equal(weir_composite_iovecs(composite, vectors, 0), 0);
    assert_int_equal(weir_composite_iovecs(composite, vectors, 1), 1);
    assert_int_equal(weir_composite_iovecs(composite, vectors, 4), 2);
    assert_int_equal(vectors[0].iov_len, 2);
    assert_memory_equal(vectors[0].iov_base, "wo", 2);
    assert_int_equal(vectors[1].iov_len, 5);
    assert_memory_equal(vectors[1].iov_base, "three", 5);
    weir_composite_release(composite);
}

TEST(composite, iovecs_are_as_many_as_the_system_takes)
{
    static struct iovec vectors[2 * IOV_MAX];
    weir_composite *composite = make_composite(SIZE_MAX);

    for (int i = 0; i < IOV_MAX + 1; i++)
        add_text(composite, "x");
    assert_int_equal(weir_composite_iovecs(composite, vectors, 2 * IOV_MAX), IOV_MAX);
    weir_composite_release(composite);
}

/* ---- finding ---- */

TEST(composite, finds_bytes_in_every_component)
{
    weir_composite *composite = make_one_two_three();
    weir_byte_set set;

    weir_byte_set_init(&set, "wh", 2);
    assert_int_equal(weir_composite_find(composite, 0, 'o'), 0);
    assert_int_equal(weir_composite_find(composite, 1, 'o'), 5);
    assert_int_equal(weir_composite_find(composite, 10, 'e'), 10);
    assert_int_equal(weir_composite_find(composite, 6, 'o'), -ENOENT);
    assert_int_equal(weir_composite_find(composite, 11, 'e'), -ENOENT);
    assert_int_equal(weir_composite_find(composite, 12, 'e'), WEIR_EBOUNDS);
    assert_int_equal(weir_composite_find_any(composite, 0, &set), 4);
    assert_int_equal(weir_composite_find_any(composite, 5, &set), 7);
    assert_int_equal(weir_composite_find_any(composite, 8, &set), -ENOENT);
    assert_int_equal(weir_composite_find_any(composite, SIZE_MAX, &set), WEIR_EBOUNDS);
    weir_composite_release(composite);
}

static ssize_t find_text(weir_composite *composite, size_t from, const char *text)
{
    return weir_composite_find_sequence(composite, from, weir_span_of_text(text));
}

TEST(composite, finds_sequences_across_borders)
{
    weir_composite *composite = make_one_two_three();

    assert_int_equal(find_text(composite, 0, "onetwothree"), 0);
    assert_int_equal(find_text(composite, 0, "etwot"), 2);
    assert_int_equal(find_text(composite, 0, "two"), 3);
    assert_int_equal(find_text(composite, 3, "two"), 3);
    assert_int_equal(find_text(composite, 4, "two"), -ENOENT);
    assert_int_equal(find_text(composite, 0, "ot"), 5);
    assert_int_equal(find_text(composite, 0, "e"), 2);
    assert_int_equal(find_text(composite, 3, "e"), 9);
    assert_int_equal(find_text(composite, 0, "onetwothree!"), -ENOENT);
    assert_int_equal(find_text(composite, 0, "ee!"), -ENOENT);
    assert_int_equal(find_text(composite, 4, ""), 4);
    assert_int_equal(find_text(composite, 11, ""), 11);
    assert_int_equal(find_text(composite, 12, ""), WEIR_EBOUNDS);
    assert_int_equal(find_text(composite, 11, "e"), -ENOENT);
    weir_composite_release(composite);
}

TEST(composite, finds_a_sequence_that_almost_began_before)
{
    weir_composite *composite = make_composite(0);

    add_text(composite, "aab");
    add_text(composite, "aa");
    add_text(composite, "a");
    add_text(composite, "b");
    assert_int_equal(find_text(composite, 0, "aaab"), 3);
    assert_int_equal(find_text(composite, 0, "abaaab"), 1);
    weir_composite_release(composite);
}

/* ---- no memory ---- */

static int add_buf(weir_composite *composite)
{
    weir_buf *buf;
    int err = weir_buf_create_from("buf", 3, &buf);

    return err < 0 ? err : weir_composite_add(composite, weir_buf_msg(buf));
}

static int add_many(weir_composite *composite)
{
    int err = 0;

    for (int i = 0; i < 20 && err == 0; i++)
        err = add_buf(composite);
    return err;
}

static int add_nested(weir_composite *composite)
{
    weir_composite *nested;
    int err = weir_composite_create(SIZE_MAX, &nested);

    if (err < 0)
        return err;
    err = add_many(nested);
    if (err == 0)
        err = weir_composite_add(composite, weir_composite_msg(weir_composite_retain(nested)));
    assert_int_equal(weir_msg_refs(weir_composite_msg(nested)), 1);
    weir_composite_release(nested);
    return err;
}

static int slice_all(weir_composite *composite)
{
    weir_msg *slice;
    int err = weir_composite_slice(composite, 0, weir_composite_length(composite), &slice);

    if (err == 0)
        weir_msg_release(slice);
    return err;
}

static int slice_none(weir_composite *composite)
{
    weir_msg *slice;
    int err = weir_composite_slice(composite, 0, 0, &slice);

    if (err == 0)
        weir_msg_release(slice);
    return err;
}

static int remove_shared(weir_composite *composite)
{
    weir_buf *buf, *removed;
    int err = weir_buf_create_from("buf", 3, &buf);

    if (err < 0)
        return err;
    err = weir_composite_add(composite, weir_buf_msg(weir_buf_retain(buf)));
    if (err == 0)
        err = weir_composite_remove(composite, weir_composite_count(composite) - 1, &removed);
    if (err == 0)
        weir_buf_release(removed);
    weir_buf_release(buf);
    return err;
}

/* Larger than what is left in the slab of its class, so that it takes memory. */
static int consolidate_large(weir_composite *composite)
{
    weir_buf *buf;
    int err = weir_buf_create(100000, 0, &buf);

    if (err < 0)
        return err;
    assert_int_equal(weir_buf_advance(buf, 70000), 0);
    err = weir_composite_add(composite, weir_buf_msg(buf));
    return err < 0 ? err : weir_composite_consolidate(composite);
}

/* After any failure "buf" can be read from the composite as often as it was added. */
static void assert_whole(weir_composite *composite)
{
    char bytes[3];

    while (weir_composite_readable(composite) > 0 && weir_composite_readable(composite) < 70000) {
        assert_int_equal(weir_composite_read_bytes(composite, bytes, 3), 0);
        assert_memory_equal(bytes, "buf", 3);
    }
}

static int use_all(void)
{
    static int (*const steps[])(weir_composite *) = {
        add_many, add_nested, slice_all, slice_none, remove_shared, consolidate_large,
    };
    weir_composite *composite;
    int err = weir_composite_create(SIZE_MAX, &composite);

    if (err < 0)
        return err;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && err == 0; i++)
        err = steps[i](composite);
    assert_whole(composite);
    weir_composite_release(composite);
    return err;
}

TEST(composite, survives_every_failed_allocation)
{
    for (unsigned n = 1;; n++) {
        int err;

        weir_locals_remove_all(); /* so that every try allocates all of its memory */
        (void)weir_pool_trim();
        test_memory_fail_at(n);
        err = use_all();
        if (!test_memory_failed()) {
            assert_int_equal(err, 0);
            assert_true(n > 10);
            break;
        }
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
}

TEST(composite, remove_without_memory_for_a_view_changes_nothing)
{
    weir_composite *composite = make_composite(0), *other = make_composite(0);
    weir_buf *removed;

    assert_int_equal(weir_composite_add(other, weir_buf_msg(make_buf_of("shared"))), 0);
    assert_int_equal(
        weir_composite_add(composite, weir_composite_msg(weir_composite_retain(other))), 0);
    test_memory_fail_at(1); /* the first view of this thread: its headers have no slab yet */
    assert_int_equal(weir_composite_remove(composite, 0, &removed), -ENOMEM);
    test_memory_fail_at(0);
    assert_unread(composite, "shared");
    assert_int_equal(weir_composite_remove(composite, 0, &removed), 0);
    assert_readable(removed, "shared");
    assert_unread(other, "shared");
    weir_buf_release(removed);
    weir_composite_release(other);
    weir_composite_release(composite);
}

TEST(composite, add_without_memory_for_a_view_releases_the_buffer)
{
    weir_composite *composite = make_composite(0);
    weir_buf *buf = make_buf_of("shared");

    assert_int_equal(weir_composite_add(composite, weir_buf_msg(make_buf_of("first"))), 0);
    test_memory_fail_at(1); /* the first view of this thread */
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(weir_buf_retain(buf))), -ENOMEM);
    test_memory_fail_at(0);
    assert_unread(composite, "first");
    assert_int_equal(weir_msg_refs(&buf->msg), 1);
    weir_buf_release(buf);
    weir_composite_release(composite);
}

TEST(composite, is_usable_if_consolidation_fails)
{
    weir_composite *composite = make_composite(1);
    weir_buf *buf = make_buf(100000, 0);

    assert_int_equal(weir_buf_advance(buf, 70000), 0);
    add_text(composite, "before");
    weir_locals_remove_all();
    test_memory_fail_at(1);
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(buf)), 0);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_int_equal(weir_composite_count(composite), 2);
    assert_int_equal(weir_composite_length(composite), 70006);
    add_text(composite, "after");
    assert_int_equal(weir_composite_count(composite), 1);
    weir_composite_release(composite);
}

TEST(composite, is_shared_with_an_index_of_its_own)
{
    weir_composite *composite = make_one_two_three();
    weir_msg *share = NULL;

    assert_int_equal(weir_composite_skip(composite, 2), 0);
    assert_int_equal(weir_msg_share(weir_composite_msg(composite), &share), 0);
    assert_int_equal(weir_composite_skip(weir_composite_of(share), 4), 0);
    assert_unread(composite, "etwothree");
    weir_composite_release(composite);
    assert_unread(weir_composite_of(share), "three");
    weir_msg_release(share);
}

TEST(composite, of_one_piece_is_shared_as_a_buffer_that_is_not_written_to)
{
    weir_composite *composite = make_composite(0);
    weir_msg *share = NULL;

    add_text(composite, "one");
    assert_int_equal(weir_msg_share(weir_composite_msg(composite), &share), 0);
    assert_readable(weir_buf_of(share), "one");
    assert_int_equal(weir_buf_set_u8(weir_buf_of(share), 0, 'x'), -EROFS);
    weir_msg_release(share);
    weir_composite_release(composite);
}
