/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers: encoding and bounds, for every row of WEIR_NUMBER_MAP.
 */
#include "support/buffer/buf.h"

#include <float.h>
#include <math.h>

#include <weir/buf.h>

/* ---- of fixed size ---- */

/* The bytes of u64 0x0102030405060708 and of smaller ones, which are its end. */
TEST(number, bytes_are_in_network_order_unless_the_name_says_otherwise)
{
    weir_buf *buf = make_buf(0, 0);

    assert_int_equal(weir_buf_write_u8(buf, 0x11), 0);
    assert_int_equal(weir_buf_write_i8(buf, -2), 0);
    assert_int_equal(weir_buf_write_u16(buf, 0x0102), 0);
    assert_int_equal(weir_buf_write_u16_le(buf, 0x0102), 0);
    assert_int_equal(weir_buf_write_i16(buf, -2), 0);
    assert_int_equal(weir_buf_write_i16_le(buf, -2), 0);
    assert_int_equal(weir_buf_write_u32(buf, 0x01020304), 0);
    assert_int_equal(weir_buf_write_u32_le(buf, 0x01020304), 0);
    assert_int_equal(weir_buf_write_i32(buf, -2), 0);
    assert_int_equal(weir_buf_write_i32_le(buf, -2), 0);
    assert_int_equal(weir_buf_readable(buf), 26);
    assert_memory_equal(weir_buf_bytes(buf),
                        "\x11\xfe"
                        "\x01\x02\x02\x01\xff\xfe\xfe\xff"
                        "\x01\x02\x03\x04\x04\x03\x02\x01\xff\xff\xff\xfe\xfe\xff\xff\xff",
                        26);
    weir_buf_release(buf);
}

TEST(number, bytes_of_the_widest_and_of_floats)
{
    weir_buf *buf = make_buf(0, 0);

    assert_int_equal(weir_buf_write_u64(buf, UINT64_C(0x0102030405060708)), 0);
    assert_int_equal(weir_buf_write_u64_le(buf, UINT64_C(0x0102030405060708)), 0);
    assert_int_equal(weir_buf_write_i64(buf, -2), 0);
    assert_int_equal(weir_buf_write_i64_le(buf, -2), 0);
    assert_int_equal(weir_buf_write_f32(buf, -1.5f), 0);
    assert_int_equal(weir_buf_write_f32_le(buf, -1.5f), 0);
    assert_int_equal(weir_buf_write_f64(buf, -1.5), 0);
    assert_int_equal(weir_buf_write_f64_le(buf, -1.5), 0);
    assert_int_equal(weir_buf_readable(buf), 56);
    assert_memory_equal(weir_buf_bytes(buf),
                        "\x01\x02\x03\x04\x05\x06\x07\x08\x08\x07\x06\x05\x04\x03\x02\x01"
                        "\xff\xff\xff\xff\xff\xff\xff\xfe\xfe\xff\xff\xff\xff\xff\xff\xff"
                        "\xbf\xc0\x00\x00\x00\x00\xc0\xbf"
                        "\xbf\xf8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf8\xbf",
                        56);
    weir_buf_release(buf);
}

/* All operations on a number, one function per row of the map. */
#define CHECK_NUMBER(NAME, type, width, order)                                      \
    static void check_##NAME(type value)                                            \
    {                                                                               \
        const size_t size = sizeof(type);                                           \
        weir_buf *buf = make_buf(0, 2 * sizeof(type) + 1);                          \
        uint8_t memory[sizeof(type) + 1];                                           \
        type seen;                                                                  \
                                                                                    \
        assert_int_equal(size, width / 8);                                          \
        assert_int_equal(weir_buf_write_##NAME(buf, 0), 0);                         \
        assert_int_equal(weir_buf_write_##NAME(buf, value), 0);                     \
        assert_int_equal(weir_buf_get_##NAME(buf, size, &seen), 0);                 \
        assert_memory_equal(&seen, &value, sizeof(seen));                           \
        assert_int_equal(weir_buf_set_##NAME(buf, 0, value), 0);                    \
        assert_memory_equal(weir_buf_bytes(buf), weir_buf_bytes(buf) + size, size); \
        seen = 0;                                                                   \
        assert_int_equal(weir_buf_peek_##NAME(buf, &seen), 0);                      \
        assert_memory_equal(&seen, &value, sizeof(seen));                           \
        assert_indices(buf, 0, 2 * size);                                           \
        seen = 0;                                                                   \
        assert_int_equal(weir_buf_read_##NAME(buf, &seen), 0);                      \
        assert_memory_equal(&seen, &value, sizeof(seen));                           \
        assert_indices(buf, size, 2 * size);                                        \
        weir_store_##NAME(memory + 1, value);                                       \
        assert_memory_equal(memory + 1, weir_buf_bytes(buf), size);                 \
        seen = weir_load_##NAME(memory + 1);                                        \
        assert_memory_equal(&seen, &value, sizeof(seen));                           \
        weir_buf_release(buf);                                                      \
    }                                                                               \
                                                                                    \
    static void check_borders_of_##NAME(void)                                       \
    {                                                                               \
        const size_t size = sizeof(type);                                           \
        weir_buf *buf = make_buf(0, 2 * sizeof(type) - 1);                          \
        weir_buf *fixed;                                                            \
        type seen = 42;                                                             \
                                                                                    \
        assert_int_equal(weir_buf_get_##NAME(buf, 0, &seen), WEIR_EBOUNDS);         \
        assert_int_equal(weir_buf_write_##NAME(buf, 0), 0);                         \
        assert_int_equal(weir_buf_write_##NAME(buf, 0), WEIR_EBOUNDS);              \
        assert_int_equal(weir_buf_get_##NAME(buf, 1, &seen), WEIR_EBOUNDS);         \
        assert_int_equal(weir_buf_get_##NAME(buf, size, &seen), WEIR_EBOUNDS);      \
        assert_int_equal(weir_buf_get_##NAME(buf, size + 1, &seen), WEIR_EBOUNDS);  \
        assert_int_equal(weir_buf_get_##NAME(buf, SIZE_MAX, &seen), WEIR_EBOUNDS);  \
        assert_int_equal(weir_buf_get_##NAME(buf, 0 - size, &seen), WEIR_EBOUNDS);  \
        assert_int_equal(weir_buf_set_##NAME(buf, 1, 1), WEIR_EBOUNDS);             \
        assert_int_equal(weir_buf_set_##NAME(buf, SIZE_MAX, 1), WEIR_EBOUNDS);      \
        assert_int_equal(weir_buf_set_##NAME(buf, 0 - size, 1), WEIR_EBOUNDS);      \
        assert_int_equal(weir_buf_read_only(buf, &fixed), 0);                       \
        assert_int_equal(weir_buf_set_##NAME(fixed, 0, 1), -EROFS);                 \
        assert_int_equal(weir_buf_write_##NAME(fixed, 1), -EROFS);                  \
        weir_buf_release(fixed);                                                    \
        assert_int_equal(weir_buf_skip(buf, 1), 0);                                 \
        assert_int_equal(weir_buf_peek_##NAME(buf, &seen), WEIR_EBOUNDS);           \
        assert_int_equal(weir_buf_read_##NAME(buf, &seen), WEIR_EBOUNDS);           \
        assert_indices(buf, 1, size);                                               \
        assert_true(seen == 42);                                                    \
        weir_buf_release(buf);                                                      \
    }
WEIR_NUMBER_MAP(CHECK_NUMBER)

TEST(number, what_is_written_is_read)
{
#define CHECK_VALUES(NAME, type, width, order) \
    check_##NAME(0);                           \
    check_##NAME(1);                           \
    check_##NAME((type)-1);                    \
    check_##NAME((type)0x5a);                  \
    check_##NAME((type)INT64_C(0x7172737475767778));
    WEIR_NUMBER_MAP(CHECK_VALUES)
    check_i8(INT8_MIN);
    check_i16(INT16_MIN);
    check_i32_le(INT32_MIN);
    check_i64(INT64_MIN);
    check_u64_le(UINT64_MAX);
}

TEST(number, floats_keep_what_is_not_a_number)
{
    check_f32(-0.0f);
    check_f32_le(INFINITY);
    check_f32(NAN);
    check_f64_le(NAN);
    check_f64(-INFINITY);
    check_f64(DBL_TRUE_MIN);
    check_f64_le(DBL_MAX);
}

TEST(number, each_is_bounds_checked)
{
#define CHECK_BORDERS(NAME, type, width, order) check_borders_of_##NAME();
    WEIR_NUMBER_MAP(CHECK_BORDERS)
}

TEST(number, writing_makes_the_buffer_grow)
{
    weir_buf *buf = make_buf(0, 0);
    uint64_t value;

    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(weir_buf_write_u64(buf, i), 0);
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(weir_buf_read_u64(buf, &value), 0);
        assert_int_equal(value, i);
    }
    weir_buf_release(buf);
}

/* ---- of `size` bytes ---- */

TEST(number, any_size_has_its_bytes_in_either_order)
{
    weir_buf *buf = make_buf(0, 0);
    uint64_t value;

    assert_int_equal(weir_buf_write_uint(buf, 3, WEIR_BIG_ENDIAN, 0x010203), 0);
    assert_int_equal(weir_buf_write_uint(buf, 3, WEIR_LITTLE_ENDIAN, 0x010203), 0);
    assert_memory_equal(weir_buf_bytes(buf), "\1\2\3\3\2\1", 6);
    assert_int_equal(weir_buf_get_uint(buf, 1, 5, WEIR_BIG_ENDIAN, &value), 0);
    assert_int_equal(value, UINT64_C(0x0203030201));
    assert_int_equal(weir_buf_get_uint(buf, 1, 5, WEIR_LITTLE_ENDIAN, &value), 0);
    assert_int_equal(value, UINT64_C(0x0102030302));
    assert_int_equal(weir_buf_set_uint(buf, 0, 6, WEIR_BIG_ENDIAN, 0xffee), 0);
    assert_memory_equal(weir_buf_bytes(buf), "\0\0\0\0\xff\xee", 6);
    assert_int_equal(weir_buf_read_uint(buf, 6, WEIR_BIG_ENDIAN, &value), 0);
    assert_int_equal(value, 0xffee);
    assert_indices(buf, 6, 6);
    weir_buf_release(buf);
}

TEST(number, the_largest_of_each_size_fits_and_one_more_does_not)
{
    for (size_t size = 1; size <= 8; size++) {
        uint64_t largest = UINT64_MAX >> (64 - 8 * size), value = 0;
        weir_buf *buf = make_buf(0, 0);

        for (int order = WEIR_BIG_ENDIAN; order <= WEIR_LITTLE_ENDIAN; order++) {
            assert_int_equal(weir_buf_write_uint(buf, size, (enum weir_byte_order)order, largest),
                             0);
            assert_int_equal(weir_buf_read_uint(buf, size, (enum weir_byte_order)order, &value), 0);
            assert_int_equal(value, largest);
        }
        if (size < 8) {
            assert_int_equal(weir_buf_write_uint(buf, size, WEIR_BIG_ENDIAN, largest + 1),
                             -EOVERFLOW);
            assert_int_equal(weir_buf_set_uint(buf, 0, size, WEIR_BIG_ENDIAN, largest + 1),
                             -EOVERFLOW);
        }
        weir_buf_release(buf);
    }
}

TEST(number, any_size_is_bounds_checked)
{
    const size_t no_sizes[] = {0, 9, SIZE_MAX};
    weir_buf *buf = make_buf(0, 4);
    uint64_t value = 42;

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(weir_buf_write_uint(buf, no_sizes[i], WEIR_BIG_ENDIAN, 0), -EINVAL);
        assert_int_equal(weir_buf_set_uint(buf, 0, no_sizes[i], WEIR_BIG_ENDIAN, 0), -EINVAL);
        assert_int_equal(weir_buf_get_uint(buf, 0, no_sizes[i], WEIR_BIG_ENDIAN, &value), -EINVAL);
        assert_int_equal(weir_buf_read_uint(buf, no_sizes[i], WEIR_BIG_ENDIAN, &value), -EINVAL);
    }
    assert_int_equal(weir_buf_write_uint(buf, 3, WEIR_BIG_ENDIAN, 7), 0);
    assert_int_equal(weir_buf_write_uint(buf, 3, WEIR_BIG_ENDIAN, 7), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_uint(buf, 1, 3, WEIR_BIG_ENDIAN, 7), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_set_uint(buf, SIZE_MAX, 3, WEIR_BIG_ENDIAN, 7), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_uint(buf, 1, 3, WEIR_BIG_ENDIAN, &value), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_uint(buf, SIZE_MAX - 1, 3, WEIR_BIG_ENDIAN, &value),
                     WEIR_EBOUNDS);
    assert_int_equal(weir_buf_read_uint(buf, 4, WEIR_BIG_ENDIAN, &value), WEIR_EBOUNDS);
    assert_int_equal(value, 42);
    assert_indices(buf, 0, 3);
    weir_buf_release(buf);
}

TEST(number, any_size_leaves_a_read_only_buffer_alone)
{
    weir_buf *buf = make_read_only_of("hello");

    assert_int_equal(weir_buf_set_uint(buf, 0, 3, WEIR_BIG_ENDIAN, 7), -EROFS);
    assert_int_equal(weir_buf_write_uint(buf, 3, WEIR_BIG_ENDIAN, 7), -EROFS);
    assert_readable(buf, "hello");
    weir_buf_release(buf);
}

/* ---- of variable length ---- */

static const struct {
    uint64_t value;
    const char *bytes;
    size_t length;
} varints[] = {
    {0, "\x00", 1},
    {1, "\x01", 1},
    {127, "\x7f", 1},
    {128, "\x80\x01", 2},
    {300, "\xac\x02", 2},
    {16383, "\xff\x7f", 2},
    {16384, "\x80\x80\x01", 3},
    {UINT32_MAX, "\xff\xff\xff\xff\x0f", 5},
    {INT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9},
    {(uint64_t)INT64_MAX + 1, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10},
    {UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
};

#define VARINTS (sizeof(varints) / sizeof(varints[0]))

TEST(number, a_varint_has_7_bits_a_byte_and_the_lowest_first)
{
    for (size_t i = 0; i < VARINTS; i++) {
        weir_buf *buf = make_buf(0, 0);
        uint64_t value;
        size_t length;

        assert_int_equal(weir_varint_length(varints[i].value), varints[i].length);
        assert_int_equal(weir_buf_write_varint(buf, varints[i].value), 0);
        assert_int_equal(weir_buf_readable(buf), varints[i].length);
        assert_memory_equal(weir_buf_bytes(buf), varints[i].bytes, varints[i].length);
        assert_int_equal(weir_buf_get_varint(buf, 0, &value, &length), 0);
        assert_int_equal(value, varints[i].value);
        assert_int_equal(length, varints[i].length);
        assert_int_equal(weir_buf_read_varint(buf, &value), 0);
        assert_int_equal(value, varints[i].value);
        assert_int_equal(weir_buf_readable(buf), 0);
        weir_buf_release(buf);
    }
}

TEST(number, an_incomplete_varint_is_not_consumed)
{
    for (size_t i = 0; i < VARINTS; i++) {
        for (size_t length = 0; length < varints[i].length; length++) {
            weir_buf *buf;
            uint64_t value = 42;
            size_t seen = 42;

            assert_int_equal(weir_buf_create_from(varints[i].bytes, length, &buf), 0);
            assert_int_equal(weir_buf_read_varint(buf, &value), WEIR_EBOUNDS);
            assert_int_equal(weir_buf_get_varint(buf, 0, &value, &seen), WEIR_EBOUNDS);
            assert_indices(buf, 0, length);
            assert_int_equal(value, 42);
            assert_int_equal(seen, 42);
            weir_buf_release(buf);
        }
    }
}

static int read_varint_of(const char *bytes, size_t length)
{
    weir_buf *buf;
    uint64_t value = 42;
    int err;

    assert_int_equal(weir_buf_wrap_static(bytes, length, &buf), 0);
    err = weir_buf_read_varint(buf, &value);
    assert_indices(buf, 0, length);
    assert_int_equal(value, 42);
    weir_buf_release(buf);
    return err;
}

TEST(number, a_varint_of_more_than_64_bits_is_rejected)
{
    const char *endless = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";

    assert_int_equal(read_varint_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10), -EOVERFLOW);
    assert_int_equal(read_varint_of("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 10), -EOVERFLOW);
    assert_int_equal(read_varint_of(endless, 11), -EOVERFLOW);
    assert_int_equal(read_varint_of(endless, 10), -EOVERFLOW); /* without waiting for the next */
    assert_int_equal(read_varint_of(endless, 9), WEIR_EBOUNDS);
}

TEST(number, a_varint_has_one_form)
{
    assert_int_equal(read_varint_of("\x80\x00", 2), -EBADMSG);
    assert_int_equal(read_varint_of("\xff\x00", 2), -EBADMSG);
    assert_int_equal(read_varint_of("\x80\x80\x80\x00", 4), -EBADMSG);
    assert_int_equal(read_varint_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 10), -EBADMSG);
}

TEST(number, a_signed_varint_is_short_if_it_is_small)
{
    const struct {
        int64_t value;
        uint64_t folded;
    } pairs[] = {{0, 0},
                 {-1, 1},
                 {1, 2},
                 {-2, 3},
                 {2, 4},
                 {-64, 127},
                 {64, 128},
                 {-65, 129},
                 {INT32_MIN, UINT32_MAX},
                 {INT64_MAX, UINT64_MAX - 1},
                 {INT64_MIN, UINT64_MAX}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        weir_buf *buf = make_buf(0, 0);
        uint64_t folded;
        int64_t value = 0;
        size_t length = 0;

        assert_int_equal(weir_buf_write_varint_signed(buf, pairs[i].value), 0);
        assert_int_equal(weir_buf_write_varint(buf, pairs[i].folded), 0);
        assert_int_equal(weir_buf_read_varint(buf, &folded), 0);
        assert_int_equal(folded, pairs[i].folded);
        assert_int_equal(weir_buf_get_varint_signed(buf, weir_buf_read_index(buf), &value, &length),
                         0);
        assert_int_equal(value, pairs[i].value);
        assert_int_equal(length, weir_varint_length(folded));
        value = 0;
        assert_int_equal(weir_buf_read_varint_signed(buf, &value), 0);
        assert_int_equal(value, pairs[i].value);
        assert_int_equal(weir_buf_read_varint_signed(buf, &value), WEIR_EBOUNDS);
        assert_int_equal(
            weir_buf_get_varint_signed(buf, weir_buf_write_index(buf), &value, &length),
            WEIR_EBOUNDS);
        assert_int_equal(value, pairs[i].value);
        weir_buf_release(buf);
    }
}

TEST(number, a_varint_is_written_whole_or_not_at_all)
{
    weir_buf *buf = make_buf(0, 3);
    weir_buf *fixed = make_read_only_of("x");
    uint64_t value;
    size_t length;

    assert_int_equal(weir_buf_write_varint(buf, UINT64_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_varint_signed(buf, INT64_MIN), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_readable(buf), 0);
    assert_int_equal(weir_buf_write_varint(buf, 16384), 0);
    assert_int_equal(weir_buf_write_varint(buf, 0), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_varint(buf, 3, &value, &length), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_get_varint(buf, SIZE_MAX, &value, &length), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_write_varint(fixed, 0), -EROFS);
    weir_buf_release(fixed);
    weir_buf_release(buf);
}
