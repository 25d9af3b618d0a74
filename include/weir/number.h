/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/number.h - numbers in and out of a buffer.
 *
 *      u8 u16 u32 u64   i8 i16 i32 i64   f32 f64      in network order (big-endian)
 *         u16_le ...       i16_le ...    f32_le ...   little-endian
 *
 * Each of them has the functions that are described below as NAME:
 *
 *      uint32_t length;
 *      err = weir_buf_read_u32(buf, &length);
 *      err = weir_buf_write_u16_le(buf, 80);
 *
 * Besides, unsigned integers of any size from 1 to 8 bytes, and of variable length.
 */
#ifndef WEIR_NUMBER_H
#define WEIR_NUMBER_H

#include <string.h>

#include <weir/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The only list of numbers: XX(NAME, type in C, bits, byte order). */
#define WEIR_NUMBER_MAP(XX)          \
    XX(u8, uint8_t, 8, BIG)          \
    XX(i8, int8_t, 8, BIG)           \
    XX(u16, uint16_t, 16, BIG)       \
    XX(u16_le, uint16_t, 16, LITTLE) \
    XX(i16, int16_t, 16, BIG)        \
    XX(i16_le, int16_t, 16, LITTLE)  \
    XX(u32, uint32_t, 32, BIG)       \
    XX(u32_le, uint32_t, 32, LITTLE) \
    XX(i32, int32_t, 32, BIG)        \
    XX(i32_le, int32_t, 32, LITTLE)  \
    XX(u64, uint64_t, 64, BIG)       \
    XX(u64_le, uint64_t, 64, LITTLE) \
    XX(i64, int64_t, 64, BIG)        \
    XX(i64_le, int64_t, 64, LITTLE)  \
    XX(f32, float, 32, BIG)          \
    XX(f32_le, float, 32, LITTLE)    \
    XX(f64, double, 64, BIG)         \
    XX(f64_le, double, 64, LITTLE)

/* Private: from the machine's byte order to that one, or back. */
#define WEIR_NUMBER_SWAP8(bits) (bits)
#define WEIR_NUMBER_SWAP16(bits) __builtin_bswap16(bits)
#define WEIR_NUMBER_SWAP32(bits) __builtin_bswap32(bits)
#define WEIR_NUMBER_SWAP64(bits) __builtin_bswap64(bits)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define WEIR_NUMBER_BIG(width, bits) WEIR_NUMBER_SWAP##width(bits)
#define WEIR_NUMBER_LITTLE(width, bits) (bits)
#else
#define WEIR_NUMBER_BIG(width, bits) (bits)
#define WEIR_NUMBER_LITTLE(width, bits) WEIR_NUMBER_SWAP##width(bits)
#endif

/*
 * The number at `bytes`, which need not be aligned. For memory that is not in a buffer: nothing is
 * checked.
 * Thread: any.
 */
#define WEIR_NUMBER_LOAD(NAME, type, width, order)         \
    static inline type weir_load_##NAME(const void *bytes) \
    {                                                      \
        uint##width##_t bits;                              \
        type value;                                        \
                                                           \
        memcpy(&bits, bytes, sizeof(bits));                \
        bits = WEIR_NUMBER_##order(width, bits);           \
        memcpy(&value, &bits, sizeof(value));              \
        return value;                                      \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_LOAD)

/*
 * Puts a number at `ret_bytes`, which need not be aligned. Nothing is checked.
 * Thread: any.
 */
#define WEIR_NUMBER_STORE(NAME, type, width, order)                   \
    static inline void weir_store_##NAME(void *ret_bytes, type value) \
    {                                                                 \
        uint##width##_t bits;                                         \
                                                                      \
        memcpy(&bits, &value, sizeof(bits));                          \
        bits = WEIR_NUMBER_##order(width, bits);                      \
        memcpy(ret_bytes, &bits, sizeof(bits));                       \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_STORE)

/*
 * Looks at the number at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
#define WEIR_NUMBER_GET(NAME, type, width, order)                                             \
    static inline int weir_buf_get_##NAME(const weir_buf *buf, size_t index, type *ret_value) \
    {                                                                                         \
        if (!weir_buf_holds(buf, index, sizeof(type)))                                        \
            return WEIR_EBOUNDS;                                                              \
        *ret_value = weir_load_##NAME(buf->data + index);                                     \
        return 0;                                                                             \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_GET)

/*
 * Overwrites what is at `index` with a number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
#define WEIR_NUMBER_SET(NAME, type, width, order)                                  \
    static inline int weir_buf_set_##NAME(weir_buf *buf, size_t index, type value) \
    {                                                                              \
        if (weir_buf_is_read_only(buf))                                            \
            return -EROFS;                                                         \
        if (!weir_buf_holds(buf, index, sizeof(type)))                             \
            return WEIR_EBOUNDS;                                                   \
        weir_store_##NAME(buf->data + index, value);                               \
        return 0;                                                                  \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_SET)

/*
 * Looks at the number that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
#define WEIR_NUMBER_PEEK(NAME, type, width, order)                               \
    static inline int weir_buf_peek_##NAME(const weir_buf *buf, type *ret_value) \
    {                                                                            \
        if (weir_buf_readable(buf) < sizeof(type))                               \
            return WEIR_EBOUNDS;                                                 \
        *ret_value = weir_load_##NAME(buf->data + buf->read);                    \
        return 0;                                                                \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_PEEK)

/*
 * Takes the number that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
#define WEIR_NUMBER_READ(NAME, type, width, order)                         \
    static inline int weir_buf_read_##NAME(weir_buf *buf, type *ret_value) \
    {                                                                      \
        int err = weir_buf_peek_##NAME(buf, ret_value);                    \
                                                                           \
        if (err == 0)                                                      \
            buf->read += (uint32_t)sizeof(type);                           \
        return err;                                                        \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_READ)

/*
 * Appends a number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
#define WEIR_NUMBER_WRITE(NAME, type, width, order)                                \
    static inline int weir_buf_write_##NAME(weir_buf *buf, type value)             \
    {                                                                              \
        if (weir_buf_writable(buf) < sizeof(type) || weir_buf_is_read_only(buf)) { \
            int err = weir_buf_reserve(buf, sizeof(type));                         \
                                                                                   \
            if (err < 0)                                                           \
                return err;                                                        \
        }                                                                          \
        weir_store_##NAME(buf->data + buf->write, value);                          \
        buf->write += (uint32_t)sizeof(type);                                      \
        return 0;                                                                  \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_WRITE)

/* ---- integers of `size` bytes, 1 to 8 ---- */

enum weir_byte_order {
    WEIR_BIG_ENDIAN,
    WEIR_LITTLE_ENDIAN,
};

/*
 * Looks at the integer of `size` bytes at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EINVAL (size).
 */
WEIR_API int weir_buf_get_uint(const weir_buf *buf, size_t index, size_t size,
                               enum weir_byte_order order, uint64_t *ret_value);

/*
 * Overwrites what is at `index` with an integer of `size` bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS, -EINVAL (size), -EOVERFLOW (needs more
 * bytes).
 */
WEIR_API int weir_buf_set_uint(weir_buf *buf, size_t index, size_t size, enum weir_byte_order order,
                               uint64_t value);

/*
 * Takes the integer of `size` bytes that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EINVAL (size).
 */
WEIR_API int weir_buf_read_uint(weir_buf *buf, size_t size, enum weir_byte_order order,
                                uint64_t *ret_value);

/*
 * Appends an integer of `size` bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS, -EINVAL (size),
 * -EOVERFLOW (needs more bytes).
 */
WEIR_API int weir_buf_write_uint(weir_buf *buf, size_t size, enum weir_byte_order order,
                                 uint64_t value);

/*
 * ---- integers of variable length ----
 *
 * As in Protocol Buffers (uint64, sint64): 7 bits a byte, the lowest first, and bit 7 says that
 * more follow (unsigned LEB128). Signed ones are folded (zig-zag, not the signed LEB128 of DWARF
 * and WebAssembly), so that small ones stay short: 0, -1, 1, -2 are 0, 1, 2, 3. Stricter than
 * these, so that each number has one form: what others allow to be padded with zeroes is refused
 * with -EBADMSG. At most 10 bytes and no more than 64 bits are read.
 */

/* The most bytes that one needs. */
#define WEIR_VARINT_MAX 10

/*
 * How many bytes a number needs.
 * Thread: any.
 */
static inline size_t weir_varint_length(uint64_t value)
{
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

/*
 * Looks at the number at `index`, and says how many bytes it has.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (it goes on beyond the write index), -EOVERFLOW (more
 * than 64 bits), -EBADMSG (not the shortest form).
 */
WEIR_API int weir_buf_get_varint(const weir_buf *buf, size_t index, uint64_t *ret_value,
                                 size_t *ret_length);

/*
 * Looks at the signed number at `index`, and says how many bytes it has.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (it goes on beyond the write index), -EOVERFLOW (more
 * than 64 bits), -EBADMSG (not the shortest form).
 */
WEIR_API int weir_buf_get_varint_signed(const weir_buf *buf, size_t index, int64_t *ret_value,
                                        size_t *ret_length);

/*
 * Takes the number that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (not all of it is there), -EOVERFLOW, -EBADMSG.
 */
WEIR_API int weir_buf_read_varint(weir_buf *buf, uint64_t *ret_value);

/*
 * Takes the signed number that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (not all of it is there), -EOVERFLOW, -EBADMSG.
 */
WEIR_API int weir_buf_read_varint_signed(weir_buf *buf, int64_t *ret_value);

/*
 * Appends a number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_varint(weir_buf *buf, uint64_t value);

/*
 * Appends a signed number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_varint_signed(weir_buf *buf, int64_t value);

#ifdef __cplusplus
}
#endif

#endif
