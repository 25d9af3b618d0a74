/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of buffers: growing, shrinking, compacting, and running out.
 */
#include "support/buffer/buf.h"

#include <weir/buf.h>
#include <weir/pool.h>
#include <weir/thread.h>

#include "support/memory.h"

#define MIB ((size_t)1 << 20)

/* ---- memory ---- */

TEST(buf, grows_by_powers_of_two_and_then_by_4_mib)
{
    const struct {
        size_t needed, capacity;
    } steps[] = {
        {1, 64},
        {65, 128},
        {1025, 2048},
        {3 * MIB, 4 * MIB},
        {4 * MIB, 4 * MIB},
        {4 * MIB + 1, 8 * MIB},
        {8 * MIB + 1, 12 * MIB},
    };

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        weir_buf *buf = make_buf(0, 0);

        assert_int_equal(weir_buf_reserve(buf, steps[i].needed), 0);
        assert_true(weir_buf_capacity(buf) >= steps[i].capacity);
        assert_true(weir_buf_capacity(buf) < steps[i].capacity + 65536);
        weir_buf_release(buf);
    }
}

TEST(buf, growing_keeps_the_bytes_and_the_indices)
{
    weir_buf *buf = make_buf_of("hello, world");

    assert_int_equal(weir_buf_skip(buf, 7), 0);
    for (size_t length = 100; length < 8 * MIB; length *= 3) {
        assert_int_equal(weir_buf_reserve(buf, length), 0);
        assert_true(weir_buf_writable(buf) >= length);
        assert_indices(buf, 7, 12);
        assert_readable(buf, "world");
        memset(weir_buf_space(buf), 0xff, weir_buf_writable(buf));
    }
    assert_int_equal(weir_buf_set_read_index(buf, 0), 0);
    assert_readable(buf, "hello, world");
    weir_buf_release(buf);
}

TEST(buf, never_grows_beyond_max)
{
    weir_buf *buf = make_buf(10, 1000);

    assert_int_equal(weir_buf_advance(buf, 10), 0);
    assert_int_equal(weir_buf_reserve(buf, 991), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_reserve(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_reserve(buf, SIZE_MAX - 9), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_capacity(buf, 1001), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_capacity(buf, SIZE_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_reserve(buf, 990), 0);
    assert_int_equal(weir_buf_capacity(buf), 1000);
    weir_buf_release(buf);
}

#ifndef __SANITIZE_ADDRESS__ /* whose shadow of it would be real memory */
TEST(buf, can_be_as_large_as_the_largest)
{
    weir_buf *buf, *slice;

    if (weir_buf_create(WEIR_BUF_MAX, 0, &buf) == -ENOMEM)
        return; /* the system does not overcommit */
    assert_int_equal(weir_buf_capacity(buf), WEIR_BUF_MAX);
    assert_int_equal(weir_buf_advance(buf, WEIR_BUF_MAX - 1), 0);
    weir_buf_space(buf)[0] = 'x';
    assert_int_equal(weir_buf_advance(buf, 2), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_advance(buf, 1), 0);
    assert_int_equal(weir_buf_reserve(buf, 1), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_reserve(buf, SIZE_MAX - WEIR_BUF_MAX), WEIR_EBOUNDS);
    assert_true(weir_buf_in_bounds(buf, WEIR_BUF_MAX - 1, 1));
    assert_false(weir_buf_in_bounds(buf, WEIR_BUF_MAX - 1, 2));
    assert_int_equal(weir_buf_slice(buf, WEIR_BUF_MAX - 1, 1, &slice), 0);
    assert_readable(slice, "x");
    weir_buf_release(slice);
    assert_int_equal(weir_buf_skip(buf, WEIR_BUF_MAX - 1), 0);
    assert_readable(buf, "x");
    assert_int_equal(weir_buf_discard(buf), 0);
    assert_readable(buf, "x");
    weir_buf_release(buf);
}
#endif

TEST(buf, capacity_can_be_set_from_the_write_index_to_max)
{
    weir_buf *buf = make_buf_of("hello");
    const uint8_t *home_bytes = weir_buf_bytes(buf);
    size_t home = weir_buf_capacity(buf);

    assert_int_equal(weir_buf_set_capacity(buf, 4), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_capacity(buf, 5), 0);
    assert_int_equal(weir_buf_capacity(buf), home);
    assert_int_equal(weir_buf_set_capacity(buf, 10000), 0);
    assert_in_range(weir_buf_capacity(buf), 10000, 12500);
    assert_int_equal(weir_buf_set_capacity(buf, 1000), 0);
    assert_in_range(weir_buf_capacity(buf), 1000, 1250);
    assert_int_equal(weir_buf_set_capacity(buf, home), 0);
    assert_int_equal(weir_buf_capacity(buf), home);
    assert_ptr_equal(weir_buf_bytes(buf), home_bytes);
    assert_readable(buf, "hello");
    weir_buf_release(buf);
}

TEST(buf, shared_memory_does_not_shrink)
{
    weir_buf *buf = make_buf_of("hello");
    weir_buf *slice;
    size_t capacity;

    assert_int_equal(weir_buf_set_capacity(buf, 10000), 0);
    assert_int_equal(weir_buf_slice(buf, 0, 5, &slice), 0);
    capacity = weir_buf_capacity(buf);
    assert_int_equal(weir_buf_set_capacity(buf, 5), 0);
    assert_int_equal(weir_buf_capacity(buf), capacity);
    weir_buf_release(slice);
    assert_int_equal(weir_buf_set_capacity(buf, 5), 0);
    assert_true(weir_buf_capacity(buf) < capacity);
    weir_buf_release(buf);
}

TEST(buf, discard_reuses_the_space_of_consumed_bytes)
{
    weir_buf *buf = make_buf_of("hello, world");
    size_t capacity = weir_buf_capacity(buf);

    assert_int_equal(weir_buf_discard(buf), 0);
    assert_indices(buf, 0, 12);
    assert_int_equal(weir_buf_skip(buf, 4), 0);
    assert_int_equal(weir_buf_discard(buf), 0);
    assert_indices(buf, 0, 8);
    assert_readable(buf, "o, world");
    assert_int_equal(weir_buf_capacity(buf), capacity);
    assert_int_equal(weir_buf_skip(buf, 8), 0);
    assert_int_equal(weir_buf_discard(buf), 0);
    assert_indices(buf, 0, 0);
    weir_buf_release(buf);
}

TEST(buf, compact_shrinks_to_the_readable_bytes)
{
    weir_buf *buf = make_buf(0, 0);

    assert_int_equal(weir_buf_reserve(buf, 100000), 0);
    memset(weir_buf_space(buf), 'x', 100000);
    assert_int_equal(weir_buf_advance(buf, 100000), 0);
    assert_int_equal(weir_buf_skip(buf, 99000), 0);
    assert_int_equal(weir_buf_compact(buf), 0);
    assert_indices(buf, 0, 1000);
    assert_in_range(weir_buf_capacity(buf), 1000, 1250);
    assert_int_equal(weir_buf_bytes(buf)[999], 'x');
    assert_int_equal(weir_buf_skip(buf, 1000), 0);
    assert_int_equal(weir_buf_compact(buf), 0);
    assert_int_equal(weir_buf_capacity(buf), 0);
    weir_buf_release(buf);
}

TEST(buf, bytes_do_not_move_under_another_holder)
{
    weir_buf *buf = make_buf_of("hello");
    weir_buf *slice;

    assert_int_equal(weir_buf_skip(buf, 1), 0);
    weir_buf_retain(buf);
    assert_int_equal(weir_buf_discard(buf), -EBUSY);
    assert_int_equal(weir_buf_compact(buf), -EBUSY);
    weir_buf_release(buf);
    assert_int_equal(weir_buf_slice(buf, 0, 5, &slice), 0);
    assert_int_equal(weir_buf_skip(slice, 1), 0);
    assert_int_equal(weir_buf_discard(buf), -EBUSY);
    assert_int_equal(weir_buf_discard(slice), -EBUSY);
    assert_int_equal(weir_buf_compact(slice), -EBUSY);
    assert_indices(buf, 1, 5);
    weir_buf_release(buf);
    assert_int_equal(weir_buf_discard(slice), 0);
    assert_readable(slice, "ello");
    assert_indices(slice, 0, 4);
    weir_buf_release(slice);
}

/* ---- no memory ---- */

/* Does everything that allocates once; returns the error, and checks that nothing has changed. */
static int grow_and_shrink(void)
{
    weir_buf *buf;
    int err = weir_buf_create_from("hello", 5, &buf);

    if (err < 0)
        return err;
    err = weir_buf_reserve(buf, 5000);
    if (err == 0)
        err = weir_buf_reserve(buf, 3 * MIB);
    if (err == 0)
        err = weir_buf_set_capacity(buf, 3000);
    if (err == 0)
        err = weir_buf_compact(buf);
    assert_readable(buf, "hello");
    assert_indices(buf, 0, 5);
    weir_buf_release(buf);
    return err;
}

static int slice_all(weir_buf *buf, weir_buf **ret_view)
{
    return weir_buf_slice(buf, 0, 5, ret_view);
}

static int read_slice_of_all(weir_buf *buf, weir_buf **ret_view)
{
    int err = weir_buf_read_slice(buf, 5, ret_view);

    assert_int_equal(weir_buf_read_index(buf), err == 0 ? 5 : 0);
    return err;
}

static int copy_all(weir_buf *buf, weir_buf **ret_view)
{
    return weir_buf_copy(buf, 0, 5, ret_view);
}

static int (*make_view)(weir_buf *buf, weir_buf **ret_view);

static int make_one_view(void)
{
    weir_buf *view = NULL, *buf;
    int err = weir_buf_create_from("hello", 5, &buf);

    if (err < 0)
        return err;
    err = make_view(buf, &view);
    assert_int_equal(view != NULL, err == 0);
    weir_buf_release(view);
    assert_int_equal(weir_msg_refs(weir_buf_msg(buf)), 1);
    weir_buf_release(buf);
    return err;
}

static void count_free(void *data, void *user_data)
{
    (void)data;
    ++*(int *)user_data;
}

static int wrap_memory(void)
{
    weir_buf *wrapped, *fixed;
    char memory[8];
    int frees = 0;
    int err = weir_buf_wrap(memory, sizeof(memory), count_free, &frees, &wrapped);

    if (err == 0) {
        err = weir_buf_wrap_static("hello", 5, &fixed);
        assert_int_equal(frees, 0);
        weir_buf_release(wrapped);
        if (err == 0)
            weir_buf_release(fixed);
    }
    assert_int_equal(frees, 1);
    return err;
}

/* The cache of the thread is emptied before each try, so that every try allocates all of its
 * memory. */
static void fail_each_allocation(int (*operation)(void))
{
    for (unsigned n = 1;; n++) {
        int err;

        weir_locals_remove_all();
        (void)weir_pool_trim();
        test_memory_fail_at(n);
        err = operation();
        if (!test_memory_failed()) {
            assert_int_equal(err, 0);
            assert_true(n > 1);
            break;
        }
        assert_true(err == 0 || err == -ENOMEM);
    }
    test_memory_fail_at(0);
}

TEST(buf, fails_without_memory)
{
    fail_each_allocation(grow_and_shrink);
    fail_each_allocation(wrap_memory);
}

TEST(buf, views_fail_without_memory)
{
    int (*const makers[])(weir_buf *, weir_buf **) = {
        slice_all, read_slice_of_all, copy_all, weir_buf_duplicate, weir_buf_read_only,
    };

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        make_view = makers[i];
        fail_each_allocation(make_one_view);
    }
}
