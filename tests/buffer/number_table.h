/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of WEIR_NUMBER_MAP as a row of a table, with its values as bits, so that a test can
 * choose one at random.
 */
#ifndef WEIR_TEST_BUFFER_NUMBER_TABLE_H
#define WEIR_TEST_BUFFER_NUMBER_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <weir/buf.h>

struct number {
    size_t size;
    bool is_little;
    int (*get)(const weir_buf *buf, size_t index, uint64_t *ret_bits);
    int (*set)(weir_buf *buf, size_t index, uint64_t bits);
    int (*peek)(const weir_buf *buf, uint64_t *ret_bits);
    int (*read)(weir_buf *buf, uint64_t *ret_bits);
    int (*write)(weir_buf *buf, uint64_t bits);
};

#define NUMBER_AS_BITS(NAME, type, width, order)                                 \
    static uint64_t bits_of_##NAME(type value)                                   \
    {                                                                            \
        uint##width##_t bits;                                                    \
                                                                                 \
        memcpy(&bits, &value, sizeof(bits));                                     \
        return bits;                                                             \
    }                                                                            \
    static type NAME##_of_bits(uint64_t bits)                                    \
    {                                                                            \
        uint##width##_t narrow = (uint##width##_t)bits;                          \
        type value;                                                              \
                                                                                 \
        memcpy(&value, &narrow, sizeof(value));                                  \
        return value;                                                            \
    }                                                                            \
    static int get_##NAME(const weir_buf *buf, size_t index, uint64_t *ret_bits) \
    {                                                                            \
        type value = 0;                                                          \
        int err = weir_buf_get_##NAME(buf, index, &value);                       \
                                                                                 \
        *ret_bits = bits_of_##NAME(value);                                       \
        return err;                                                              \
    }                                                                            \
    static int set_##NAME(weir_buf *buf, size_t index, uint64_t bits)            \
    {                                                                            \
        return weir_buf_set_##NAME(buf, index, NAME##_of_bits(bits));            \
    }                                                                            \
    static int peek_##NAME(const weir_buf *buf, uint64_t *ret_bits)              \
    {                                                                            \
        type value = 0;                                                          \
        int err = weir_buf_peek_##NAME(buf, &value);                             \
                                                                                 \
        *ret_bits = bits_of_##NAME(value);                                       \
        return err;                                                              \
    }                                                                            \
    static int read_##NAME(weir_buf *buf, uint64_t *ret_bits)                    \
    {                                                                            \
        type value = 0;                                                          \
        int err = weir_buf_read_##NAME(buf, &value);                             \
                                                                                 \
        *ret_bits = bits_of_##NAME(value);                                       \
        return err;                                                              \
    }                                                                            \
    static int write_##NAME(weir_buf *buf, uint64_t bits)                        \
    {                                                                            \
        return weir_buf_write_##NAME(buf, NAME##_of_bits(bits));                 \
    }
WEIR_NUMBER_MAP(NUMBER_AS_BITS)

#define IS_LITTLE_BIG false
#define IS_LITTLE_LITTLE true

/* clang-format off */
#define NUMBER_ROW(NAME, type, width, order) \
    {sizeof(type), IS_LITTLE_##order, get_##NAME, set_##NAME, peek_##NAME, read_##NAME, \
     write_##NAME},
/* clang-format on */

static const struct number number_table[] = {WEIR_NUMBER_MAP(NUMBER_ROW)};

#endif
