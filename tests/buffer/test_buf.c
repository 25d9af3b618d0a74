/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: lifecycle, indices and views, with their limits. Growth is in test_buf_memory.c, random
 * sequences in test_buf_model.c.
 */
#undef NDEBUG /* misuse is caught by the asserts of the headers */

#include "support/buffer/buf.h"

#include <sched.h>

#include <weir/buf.h>

#include "os/thread.h"
#include "support/child.h"
#include "support/litmus.h"

#define MIB ((size_t)1 << 20)

/* ---- life ---- */

TEST(buf, a_new_buffer_is_empty_and_has_the_requested_capacity)
{
    const size_t capacities[] = {0, 1, 63, 64, 65, 1000, 4096, 65536, MIB, MIB + 1, 5 * MIB};

    for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
        weir_buf *buf = make_buf(capacities[i], 0);

        assert_indices(buf, 0, 0);
        assert_true(weir_buf_capacity(buf) >= capacities[i]);
        assert_int_equal(weir_buf_max(buf), WEIR_BUF_MAX);
        assert_int_equal(weir_buf_writable(buf), weir_buf_capacity(buf));
        memset(weir_buf_space(buf), 0xff, weir_buf_writable(buf));
        weir_buf_release(buf);
    }
}

/* Of every kind, so that the blocks of all of them are used again. */
static void create_and_release_all_kinds(void)
{
    static char bytes[64];
    weir_buf *limited = make_buf(10, 20), *grown = make_buf(64, 0), *wrapped, *fixed, *view;

    assert_int_equal(weir_buf_reserve(grown, 200), 0);
    assert_int_equal(weir_buf_wrap(bytes, sizeof(bytes), NULL, NULL, &wrapped), 0);
    assert_int_equal(weir_buf_wrap_static(bytes, sizeof(bytes), &fixed), 0);
    assert_int_equal(weir_buf_read_only(wrapped, &view), 0);
    weir_buf_release(limited);
    weir_buf_release(grown);
    weir_buf_release(wrapped);
    weir_buf_release(fixed);
    weir_buf_release(view);
}

TEST(buf, a_block_that_is_used_again_makes_a_new_buffer)
{
    const size_t capacities[] = {0, 64, 256};

    create_and_release_all_kinds();
    for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
        weir_buf *bufs[4];

        for (size_t j = 0; j < 4; j++) {
            bufs[j] = make_buf(capacities[i], 0);
            assert_indices(bufs[j], 0, 0);
            assert_int_equal(weir_buf_capacity(bufs[j]), capacities[i]);
            assert_int_equal(weir_buf_max(bufs[j]), WEIR_BUF_MAX);
            assert_false(weir_buf_is_read_only(bufs[j]));
            memset(weir_buf_space(bufs[j]), 0xff, weir_buf_writable(bufs[j]));
            assert_int_equal(weir_buf_reserve(bufs[j], 1000), 0);
        }
        for (size_t j = 0; j < 4; j++)
            weir_buf_release(bufs[j]);
    }
}

TEST(buf, capacity_is_never_beyond_max)
{
    weir_buf *buf = make_buf(70, 71);

    assert_in_range(weir_buf_capacity(buf), 70, 71);
    assert_int_equal(weir_buf_max(buf), 71);
    assert_int_equal(weir_buf_reserve(buf, 71), 0);
    assert_int_equal(weir_buf_capacity(buf), 71);
    weir_buf_release(buf);
}

TEST(buf, create_rejects_invalid_sizes)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(2, 1, &buf), -EINVAL);
    assert_int_equal(weir_buf_create(0, WEIR_BUF_MAX + 1, &buf), -EINVAL);
    assert_int_equal(weir_buf_create(0, SIZE_MAX, &buf), -EINVAL);
    assert_int_equal(weir_buf_create(WEIR_BUF_MAX + 1, 0, &buf), -EINVAL);
    assert_int_equal(weir_buf_create(SIZE_MAX, 0, &buf), -EINVAL);
    assert_int_equal(weir_buf_create_from("", SIZE_MAX, &buf), -EINVAL);
    assert_int_equal(weir_buf_wrap_static("", WEIR_BUF_MAX + 1, &buf), -EINVAL);
    assert_int_equal(weir_buf_wrap_static(NULL, 1, &buf), -EINVAL);
    assert_null(buf);
}

TEST(buf, is_a_message)
{
    static const weir_msg_type other = {.name = "other"};
    weir_buf *buf = make_buf_of("hello");
    weir_msg msg;

    weir_msg_init(&msg, &other);
    assert_ptr_equal(weir_buf_of(weir_buf_msg(buf)), buf);
    assert_null(weir_buf_of(&msg));
    assert_null(weir_buf_of(NULL));
    assert_int_equal(weir_msg_size(weir_buf_msg(buf)), 5);
    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_msg_size(weir_buf_msg(buf)), 3);
    weir_msg_touch(weir_buf_msg(buf), "here");
    assert_ptr_equal(weir_buf_retain(buf), buf);
    weir_buf_release(buf);
    assert_readable(buf, "llo");
    weir_msg_release(weir_buf_msg(buf));
    weir_buf_release(NULL);
}

struct freed {
    void *data;
    int times;
};

static void note_free(void *data, void *user_data)
{
    struct freed *freed = user_data;

    freed->data = data;
    freed->times++;
}

TEST(buf, wrapped_memory_is_freed_once_when_the_last_reference_goes)
{
    struct freed freed = {NULL, 0};
    char memory[] = "hello";
    weir_buf *buf, *slice;

    assert_int_equal(weir_buf_wrap(memory, 5, note_free, &freed, &buf), 0);
    assert_readable(buf, "hello");
    assert_ptr_equal(weir_buf_bytes(buf), memory);
    assert_int_equal(weir_buf_slice(buf, 1, 3, &slice), 0);
    weir_buf_release(buf);
    assert_readable(slice, "ell");
    assert_int_equal(freed.times, 0);
    weir_buf_release(slice);
    assert_int_equal(freed.times, 1);
    assert_ptr_equal(freed.data, memory);
}

TEST(buf, wrapped_memory_does_not_grow_and_can_be_written)
{
    char memory[] = "hello";
    weir_buf *buf;

    assert_int_equal(weir_buf_wrap(memory, 5, NULL, NULL, &buf), 0);
    assert_int_equal(weir_buf_max(buf), 5);
    assert_int_equal(weir_buf_reserve(buf, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_capacity(buf, 6), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_capacity(buf, 5), 0);
    weir_buf_clear(buf);
    memcpy(weir_buf_space(buf), "HE", 2);
    assert_int_equal(weir_buf_advance(buf, 2), 0);
    assert_string_equal(memory, "HEllo");
    assert_int_equal(weir_buf_skip(buf, 1), 0);
    assert_int_equal(weir_buf_compact(buf), 0);
    assert_readable(buf, "E");
    assert_int_equal(weir_buf_capacity(buf), 5);
    weir_buf_release(buf);
}

TEST(buf, wrapping_frees_the_memory_when_it_fails)
{
    struct freed freed = {NULL, 0};
    char memory[] = "hello";
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_wrap(memory, SIZE_MAX, note_free, &freed, &buf), -EINVAL);
    assert_int_equal(freed.times, 1);
    assert_int_equal(weir_buf_wrap(NULL, 1, note_free, &freed, &buf), -EINVAL);
    assert_int_equal(freed.times, 2);
    assert_int_equal(weir_buf_wrap(memory, SIZE_MAX, NULL, NULL, &buf), -EINVAL);
    assert_null(buf);
}

TEST(buf, an_empty_range_can_be_wrapped)
{
    struct freed freed = {&freed, 0};
    weir_buf *wrapped, *fixed, *slice;

    assert_int_equal(weir_buf_wrap(NULL, 0, note_free, &freed, &wrapped), 0);
    assert_int_equal(weir_buf_wrap_static(NULL, 0, &fixed), 0);
    assert_int_equal(weir_buf_slice(wrapped, 0, 0, &slice), 0);
    assert_readable(wrapped, "");
    assert_readable(fixed, "");
    assert_non_null(weir_buf_bytes(slice));
    weir_buf_release(slice);
    weir_buf_release(fixed);
    weir_buf_release(wrapped);
    assert_null(freed.data);
}

TEST(buf, static_memory_is_read_only)
{
    weir_buf *buf = make_read_only_of("hello");

    assert_true(weir_buf_is_read_only(buf));
    assert_int_equal(weir_buf_advance(buf, 0), -EROFS);
    assert_int_equal(weir_buf_set_write_index(buf, 3), -EROFS);
    assert_int_equal(weir_buf_reserve(buf, 0), -EROFS);
    assert_int_equal(weir_buf_set_capacity(buf, 5), -EROFS);
    assert_int_equal(weir_buf_discard(buf), -EROFS);
    assert_int_equal(weir_buf_compact(buf), -EROFS);
    assert_int_equal(weir_buf_skip(buf, 1), 0);
    assert_readable(buf, "ello");
    weir_buf_release(buf);
}

/* ---- indices ---- */

TEST(buf, the_read_index_goes_from_0_to_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");

    assert_int_equal(weir_buf_set_read_index(buf, 5), 0);
    assert_indices(buf, 5, 5);
    assert_int_equal(weir_buf_set_read_index(buf, 6), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_read_index(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_read_index(buf, (size_t)UINT32_MAX + 2), WEIR_EBOUNDS);
    assert_indices(buf, 5, 5);
    assert_int_equal(weir_buf_set_read_index(buf, 0), 0);
    assert_readable(buf, "hello");
    weir_buf_release(buf);
}

TEST(buf, the_write_index_goes_from_the_read_index_to_the_capacity)
{
    weir_buf *buf = make_buf_of("hello");
    size_t capacity = weir_buf_capacity(buf);

    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_buf_set_write_index(buf, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_write_index(buf, capacity + 1), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_write_index(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_indices(buf, 2, 5);
    assert_int_equal(weir_buf_set_write_index(buf, 2), 0);
    assert_int_equal(weir_buf_readable(buf), 0);
    assert_int_equal(weir_buf_set_write_index(buf, capacity), 0);
    assert_int_equal(weir_buf_writable(buf), 0);
    weir_buf_release(buf);
}

TEST(buf, truncate_keeps_the_first_readable_bytes)
{
    weir_buf *buf = make_buf_of("hello");
    weir_buf *view;

    assert_int_equal(weir_buf_skip(buf, 1), 0);
    assert_int_equal(weir_buf_truncate(buf, 5), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_truncate(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_truncate(buf, 4), 0);
    assert_readable(buf, "ello");
    assert_int_equal(weir_buf_truncate(buf, 2), 0);
    assert_readable(buf, "el");
    assert_int_equal(weir_buf_read_only(buf, &view), 0);
    assert_int_equal(weir_buf_truncate(view, 1), -EROFS);
    weir_buf_release(view);
    assert_int_equal(weir_buf_truncate(buf, 0), 0);
    assert_indices(buf, 1, 1);
    weir_buf_release(buf);
}

TEST(buf, skip_and_advance_stop_at_what_is_there)
{
    weir_buf *buf = make_buf(10, 10);

    assert_int_equal(weir_buf_skip(buf, 0), 0);
    assert_int_equal(weir_buf_skip(buf, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_advance(buf, 11), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_advance(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_advance(buf, 10), 0);
    assert_int_equal(weir_buf_advance(buf, 0), 0);
    assert_int_equal(weir_buf_advance(buf, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_skip(buf, 11), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_skip(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_skip(buf, 10), 0);
    assert_indices(buf, 10, 10);
    weir_buf_clear(buf);
    assert_indices(buf, 0, 0);
    weir_buf_release(buf);
}

TEST(buf, in_bounds_ends_at_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");

    assert_int_equal(weir_buf_skip(buf, 3), 0);
    assert_true(weir_buf_in_bounds(buf, 0, 5));
    assert_true(weir_buf_in_bounds(buf, 5, 0));
    assert_false(weir_buf_in_bounds(buf, 6, 0));
    assert_false(weir_buf_in_bounds(buf, 0, 6));
    assert_false(weir_buf_in_bounds(buf, 5, 1));
    assert_false(weir_buf_in_bounds(buf, SIZE_MAX, 1));
    assert_false(weir_buf_in_bounds(buf, 1, SIZE_MAX));
    assert_false(weir_buf_in_bounds(buf, SIZE_MAX, SIZE_MAX));
    weir_buf_release(buf);
}

/* ---- views ---- */

TEST(buf, a_slice_shares_memory_and_has_its_own_indices)
{
    weir_buf *buf = make_buf_of("hello, world");
    weir_buf *slice;

    assert_int_equal(weir_buf_skip(buf, 9), 0);
    assert_int_equal(weir_buf_slice(buf, 7, 5, &slice), 0);
    assert_readable(slice, "world");
    assert_indices(slice, 0, 5);
    assert_int_equal(weir_buf_capacity(slice), 5);
    assert_int_equal(weir_buf_max(slice), 5);
    assert_int_equal(weir_msg_refs(weir_buf_msg(buf)), 2);
    assert_int_equal(weir_buf_set_write_index(slice, 0), 0);
    memcpy(weir_buf_space(slice), "WO", 2);
    assert_int_equal(weir_buf_set_read_index(buf, 0), 0);
    assert_readable(buf, "hello, WOrld");
    weir_buf_release(slice);
    assert_int_equal(weir_msg_refs(weir_buf_msg(buf)), 1);
    weir_buf_release(buf);
}

TEST(buf, slices_stop_at_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");
    weir_buf *slice = NULL;

    assert_int_equal(weir_buf_slice(buf, 0, 6, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_slice(buf, 6, 0, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_slice(buf, 5, 1, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_slice(buf, 2, SIZE_MAX, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_slice(buf, SIZE_MAX, 2, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_slice(buf, 6, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_slice(buf, SIZE_MAX, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_copy(buf, 1, 5, &slice), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_copy(buf, SIZE_MAX, 2, &slice), WEIR_EBOUNDS);
    assert_null(slice);
    assert_indices(buf, 0, 5);
    assert_int_equal(weir_buf_slice(buf, 5, 0, &slice), 0);
    assert_readable(slice, "");
    weir_buf_release(slice);
    weir_buf_release(buf);
}

TEST(buf, read_slice_consumes_its_bytes)
{
    weir_buf *buf = make_buf_of("hello, world");
    weir_buf *first, *second;

    assert_int_equal(weir_buf_read_slice(buf, 5, &first), 0);
    assert_int_equal(weir_buf_skip(buf, 2), 0);
    assert_int_equal(weir_buf_read_slice(buf, 5, &second), 0);
    weir_buf_release(buf);
    assert_readable(first, "hello");
    assert_readable(second, "world");
    weir_buf_release(first);
    weir_buf_release(second);
}

TEST(buf, a_view_of_a_view_holds_the_root)
{
    weir_buf *buf = make_buf_of("hello, world");
    weir_buf *slice, *inner, *duplicate;

    assert_int_equal(weir_buf_slice(buf, 2, 8, &slice), 0);
    assert_int_equal(weir_buf_slice(slice, 2, 3, &inner), 0);
    assert_int_equal(weir_buf_duplicate(inner, &duplicate), 0);
    assert_int_equal(weir_msg_refs(weir_buf_msg(buf)), 4);
    assert_int_equal(weir_msg_refs(weir_buf_msg(slice)), 1);
    weir_buf_release(slice);
    weir_buf_release(buf);
    weir_buf_release(inner);
    assert_readable(duplicate, "o, ");
    weir_buf_release(duplicate);
}

TEST(buf, a_duplicate_can_write_what_the_other_then_sees)
{
    weir_buf *buf = make_buf(64, 0);
    weir_buf *duplicate;

    memcpy(weir_buf_space(buf), "hello", 5);
    assert_int_equal(weir_buf_advance(buf, 5), 0);
    assert_int_equal(weir_buf_skip(buf, 1), 0);
    assert_int_equal(weir_buf_duplicate(buf, &duplicate), 0);
    assert_indices(duplicate, 1, 5);
    assert_int_equal(weir_buf_capacity(duplicate), weir_buf_capacity(buf));
    assert_int_equal(weir_buf_max(duplicate), weir_buf_capacity(buf));
    memcpy(weir_buf_space(duplicate), "!", 1);
    assert_int_equal(weir_buf_advance(duplicate, 1), 0);
    assert_indices(buf, 1, 5);
    assert_int_equal(weir_buf_advance(buf, 1), 0);
    assert_readable(buf, "ello!");
    weir_buf_release(buf);
    weir_buf_release(duplicate);
}

TEST(buf, views_of_a_read_only_view_are_read_only)
{
    weir_buf *buf = make_buf_of("hello");
    weir_buf *view, *slice, *copy;

    assert_int_equal(weir_buf_read_only(buf, &view), 0);
    assert_int_equal(weir_buf_slice(view, 0, 2, &slice), 0);
    assert_true(weir_buf_is_read_only(view));
    assert_true(weir_buf_is_read_only(slice));
    assert_false(weir_buf_is_read_only(buf));
    assert_int_equal(weir_buf_advance(view, 1), -EROFS);
    assert_int_equal(weir_buf_copy(view, 1, 3, &copy), 0);
    assert_false(weir_buf_is_read_only(copy));
    assert_readable(copy, "ell");
    weir_buf_release(copy);
    weir_buf_release(slice);
    weir_buf_release(view);
    weir_buf_release(buf);
}

TEST(buf, views_made_before_it_grows_keep_their_bytes)
{
    weir_buf *buf = make_buf_of("hello");
    weir_buf *at_home, *in_block;

    assert_int_equal(weir_buf_slice(buf, 0, 5, &at_home), 0);
    assert_int_equal(weir_buf_reserve(buf, 1000), 0);
    assert_int_equal(weir_buf_slice(buf, 1, 4, &in_block), 0);
    assert_int_equal(weir_buf_reserve(buf, 100000), 0);
    weir_buf_clear(buf);
    memcpy(weir_buf_space(buf), "HELLO", 5);
    assert_readable(at_home, "hello");
    assert_readable(in_block, "ello");
    weir_buf_release(buf);
    assert_readable(in_block, "ello");
    weir_buf_release(at_home);
    weir_buf_release(in_block);
}

/* ---- threads ---- */

#define ROUNDS 300

struct other_holder {
    weir_buf *slices[ROUNDS];
    unsigned sum;
};

static void read_and_release(void *arg)
{
    struct other_holder *other = arg;

    for (int i = 0; i < ROUNDS; i++) {
        other->sum += weir_buf_bytes(other->slices[i])[0];
        weir_buf_release(other->slices[i]);
    }
}

/* Plain reads on the other thread, plain writes here: ordered only by the reference count. */
TEST(buf, accesses_through_a_view_happen_before_its_release)
{
    struct other_holder other = {.sum = 0};
    weir_buf *bufs[ROUNDS];
    weir__thread thread;

    for (int i = 0; i < ROUNDS; i++) {
        bufs[i] = make_buf_of("ab");
        assert_int_equal(weir_buf_slice(bufs[i], 0, 2, &other.slices[i]), 0);
        assert_int_equal(weir_buf_skip(bufs[i], 1), 0);
    }
    assert_int_equal(weir__thread_start("other", read_and_release, &other, &thread), 0);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) /* the other way: reading it does not affect the original */
            assert_int_equal(weir_buf_reserve(bufs[i], 1000), 0);
        while (weir_buf_discard(bufs[i]) == -EBUSY)
            sched_yield();
        assert_readable(bufs[i], "b");
        weir_buf_release(bufs[i]);
    }
    weir__thread_join(&thread);
    assert_int_equal(other.sum, ROUNDS * 'a');
}

/* ---- misuse ---- */

static void release_twice(void)
{
    weir_buf *buf = make_buf_of("hello");

    weir_buf_release(buf);
    weir_buf_release(buf);
}

static void retain_after_release(void)
{
    weir_buf *buf = make_buf_of("hello");

    weir_buf_release(buf);
    weir_buf_retain(buf);
}

TEST(buf, use_after_the_last_release_ends_a_debug_build)
{
    assert_false(child_survives(release_twice));
    assert_false(child_survives(retain_after_release));
}

#ifdef __SANITIZE_ADDRESS__
static volatile uint8_t seen;

static void read_bytes_after_release(void)
{
    weir_buf *buf = make_buf_of("hello");
    const uint8_t *bytes = weir_buf_bytes(buf);

    weir_buf_release(buf);
    seen = bytes[0];
}

static void read_indices_after_release(void)
{
    weir_buf *buf = make_buf_of("hello");

    weir_buf_release(buf);
    seen = (uint8_t)weir_buf_readable(buf);
}

static void read_old_memory_after_growth(void)
{
    weir_buf *buf = make_buf(0, 0);
    const uint8_t *bytes;

    assert_int_equal(weir_buf_reserve(buf, 100), 0);
    bytes = weir_buf_space(buf);
    assert_int_equal(weir_buf_reserve(buf, 10000), 0);
    seen = bytes[0];
}

static void write_beyond_the_capacity(void)
{
    weir_buf *buf = make_buf(100, 0);

    weir_buf_space(buf)[weir_buf_capacity(buf)] = 1;
}

TEST(buf, asan_sees_into_released_memory)
{
    assert_false(child_survives(read_bytes_after_release));
    assert_false(child_survives(read_indices_after_release));
    assert_false(child_survives(read_old_memory_after_growth));
    assert_false(child_survives(write_beyond_the_capacity));
}
#endif

TEST(buf, is_shared_as_a_view_that_is_not_written_to)
{
    weir_buf *buf = make_buf_of("hello");
    weir_msg *share = NULL;

    assert_int_equal(weir_msg_share(weir_buf_msg(buf), &share), 0);
    assert_ptr_equal(weir_buf_bytes(weir_buf_of(share)), weir_buf_bytes(buf));
    assert_int_equal(weir_buf_skip(weir_buf_of(share), 2), 0);
    assert_int_equal(weir_buf_set_u8(weir_buf_of(share), 0, 'x'), -EROFS);
    assert_readable(buf, "hello");
    weir_buf_release(buf);
    assert_readable(weir_buf_of(share), "llo");
    weir_msg_release(share);
}

/* ---- several threads on behalf of one holder ---- */

static void slice_and_release(void *buf)
{
    weir_buf *slice;

    if (weir_buf_slice(buf, 0, 8, &slice) == 0)
        weir_buf_release(slice);
}

TEST(buf, of_one_holder_is_sliced_by_two_threads)
{
    weir_buf *buf = make_buf(64, 0), *view;

    (void)weir_buf_advance(buf, 64);
    (void)litmus_run(slice_and_release, buf, LITMUS_ROUNDS / 4);
    assert_int_equal(weir_msg_refs(weir_buf_msg(buf)), 1);
    assert_int_equal(weir_buf_slice(buf, 0, 64, &view), 0);
    weir_buf_release(buf);
    (void)litmus_run(slice_and_release, view, LITMUS_ROUNDS / 4);
    assert_int_equal(weir_msg_refs(weir_buf_msg(view->block)), 1);
    weir_buf_release(view);
}
