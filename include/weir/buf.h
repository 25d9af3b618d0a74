/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/buf.h - bytes on their way: read from the front, written at the back.
 *
 *      0        read        write       capacity         max
 *      +--------+-----------+-----------+ - - - - - - - - +
 *      |  read  | readable  | writable  |  room to grow   |
 *      +--------+-----------+-----------+ - - - - - - - - +
 *
 * A buffer is a message (weir/msg.h): counted, passed on or released once. Its memory comes from
 * the pool, from somebody else (weir_buf_wrap), or from another buffer of which it is a view. What
 * is done with the bytes is in weir/buf.h, number.h, search.h and text.h, in four ways:
 *
 *      get_x(buf, index, &x)    looks anywhere between 0 and write
 *      set_x(buf, index, x)     overwrites there
 *      read_x(buf, &x)          takes from the readable bytes
 *      write_x(buf, x)          appends, and grows
 *
 * Every access is checked: it fails with WEIR_EBOUNDS and nothing changes. A read-only buffer
 * refuses to be changed with -EROFS. A buffer belongs to one thread at a time; its count may be
 * changed by any holder.
 */
#ifndef WEIR_BUF_H
#define WEIR_BUF_H

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

#include <weir/error.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that a buffer can hold. */
#define WEIR_BUF_MAX ((size_t)UINT32_MAX - 4096)

/* Private: a bit of msg.flags; the others are in src/buffer/buf.h. */
#define WEIR_BUF_FLAG_READ_ONLY (1u << 4)

/* Private, as all of it: use the functions below. 64 bytes, so that the memory behind it begins on
 * a cache line. */
typedef struct weir_buf {
    weir_msg msg;
    uint8_t *data;
    uint32_t read;
    uint32_t write;
    uint32_t capacity;
    uint32_t max;
    void *owner;            /* the pool's */
    struct weir_buf *block; /* whose memory it uses, if not that behind this header */
    void *slab;             /* the pool's */
} weir_buf;

/* A piece of memory that somebody else keeps alive. */
typedef struct weir_span {
    const uint8_t *data;
    size_t length;
} weir_span;

typedef void weir_buf_free_fn(void *data, void *user_data);

/*
 * What a message's type is if it is a buffer: weir_buf_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_buf_type;

/* ---- life ---- */

/*
 * Creates an empty buffer from the thread's pool, with room for at least `capacity` bytes, that
 * grows to at most `max` (0 = WEIR_BUF_MAX).
 * Thread: any.  Gives: buf.  Fails: -ENOMEM, -EINVAL (capacity > max, max > WEIR_BUF_MAX).
 */
WEIR_API int weir_buf_create(size_t capacity, size_t max, weir_buf **ret_buf);

/*
 * Creates a buffer that holds a copy of these bytes, and can grow.
 * Thread: any.  Gives: buf.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_buf_create_from(const void *bytes, size_t length, weir_buf **ret_buf);

/*
 * Makes a buffer of memory that exists: all of it readable, not growable. `free_data(data,
 * user_data)` is called once, on any thread, when the last reference has gone, or before this
 * returns an error; NULL = nobody needs to hear of it.
 * Thread: any.  Takes: data.  Gives: buf.  Fails: -ENOMEM, -EINVAL (length > WEIR_BUF_MAX, or data
 * is NULL and length > 0).
 */
WEIR_API int weir_buf_wrap(void *data, size_t length, weir_buf_free_fn *free_data, void *user_data,
                           weir_buf **ret_buf);

/*
 * Makes a read-only buffer of memory that never goes: literals, tables.
 * Thread: any.  Gives: buf.  Fails: -ENOMEM, -EINVAL (length > WEIR_BUF_MAX, or data is NULL and
 * length > 0).
 */
WEIR_API int weir_buf_wrap_static(const void *data, size_t length, weir_buf **ret_buf);

/*
 * The buffer that a message is, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_buf *weir_buf_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_buf_type) ? (weir_buf *)(void *)msg : NULL;
}

/*
 * The buffer as the message that it is.
 * Thread: any.
 */
static inline weir_msg *weir_buf_msg(weir_buf *buf)
{
    return &buf->msg;
}

/*
 * Takes one more reference.
 * Thread: any.
 */
static inline weir_buf *weir_buf_retain(weir_buf *buf)
{
    weir_msg_retain(&buf->msg);
    return buf;
}

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: buf.
 */
static inline void weir_buf_release(weir_buf *buf)
{
    if (buf != NULL)
        weir_msg_release(&buf->msg);
}

/*
 * ---- views ----
 *
 * A view shares the memory of the buffer that it was made of, and keeps it alive: what is set in
 * one is seen in the other. That ends when the buffer grows, which moves it to other memory: views
 * made before stay with the bytes of then. A view does not grow. A view of a view is one of the
 * buffer behind it.
 */

/*
 * A view of `length` bytes from `offset` on, counted from 0: all of them readable.
 * Thread: its holder's.  Keeps: buf.  Gives: slice.  Fails: WEIR_EBOUNDS, -ENOMEM.
 */
WEIR_API int weir_buf_slice(weir_buf *buf, size_t offset, size_t length, weir_buf **ret_slice);

/*
 * A view of the next `length` readable bytes, which are skipped.
 * Thread: its holder's.  Keeps: buf.  Gives: slice.  Fails: WEIR_EBOUNDS, -ENOMEM.
 */
WEIR_API int weir_buf_read_slice(weir_buf *buf, size_t length, weir_buf **ret_slice);

/*
 * A view of the whole buffer with indices of its own.
 * Thread: its holder's.  Keeps: buf.  Gives: duplicate.  Fails: -ENOMEM.
 */
WEIR_API int weir_buf_duplicate(weir_buf *buf, weir_buf **ret_duplicate);

/*
 * A duplicate that cannot be written to.
 * Thread: its holder's.  Keeps: buf.  Gives: view.  Fails: -ENOMEM.
 */
WEIR_API int weir_buf_read_only(weir_buf *buf, weir_buf **ret_view);

/*
 * A buffer of its own with a copy of `length` bytes from `offset` on.
 * Thread: its holder's.  Gives: copy.  Fails: WEIR_EBOUNDS, -ENOMEM.
 */
WEIR_API int weir_buf_copy(const weir_buf *buf, size_t offset, size_t length, weir_buf **ret_copy);

/* ---- indices ---- */

/*
 * The index of the next byte to be read.
 * Thread: its holder's.
 */
static inline size_t weir_buf_read_index(const weir_buf *buf)
{
    return buf->read;
}

/*
 * The index of the next byte to be written.
 * Thread: its holder's.
 */
static inline size_t weir_buf_write_index(const weir_buf *buf)
{
    return buf->write;
}

/*
 * How many bytes it has room for without growing.
 * Thread: its holder's.
 */
static inline size_t weir_buf_capacity(const weir_buf *buf)
{
    return buf->capacity;
}

/*
 * How many bytes it can grow to.
 * Thread: its holder's.
 */
static inline size_t weir_buf_max(const weir_buf *buf)
{
    return buf->max;
}

/*
 * How many bytes can be read.
 * Thread: its holder's.
 */
static inline size_t weir_buf_readable(const weir_buf *buf)
{
    return (size_t)buf->write - buf->read;
}

/*
 * How many bytes can be written without growing.
 * Thread: its holder's.
 */
static inline size_t weir_buf_writable(const weir_buf *buf)
{
    return (size_t)buf->capacity - buf->write;
}

/*
 * Whether it refuses to be changed.
 * Thread: its holder's.
 */
static inline bool weir_buf_is_read_only(const weir_buf *buf)
{
    return (buf->msg.flags & WEIR_BUF_FLAG_READ_ONLY) != 0;
}

/*
 * Whether there are `length` bytes at `index`, between 0 and the write index.
 * Thread: its holder's.
 */
static inline bool weir_buf_in_bounds(const weir_buf *buf, size_t index, size_t length)
{
    return index <= buf->write && length <= buf->write - index;
}

/*
 * The readable bytes themselves, weir_buf_readable of them.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 */
static inline const uint8_t *weir_buf_bytes(const weir_buf *buf)
{
    return buf->data + buf->read;
}

/*
 * Where the next bytes are written to, weir_buf_writable of them; then weir_buf_advance says how
 * many were.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 */
static inline uint8_t *weir_buf_space(weir_buf *buf)
{
    return buf->data + buf->write;
}

/*
 * Moves the read index anywhere between 0 and the write index.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
static inline int weir_buf_set_read_index(weir_buf *buf, size_t index)
{
    if (index > buf->write)
        return WEIR_EBOUNDS;
    buf->read = (uint32_t)index;
    return 0;
}

/*
 * Moves the write index anywhere between the read index and the capacity.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
static inline int weir_buf_set_write_index(weir_buf *buf, size_t index)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (index < buf->read || index > buf->capacity)
        return WEIR_EBOUNDS;
    buf->write = (uint32_t)index;
    return 0;
}

/*
 * Skips readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
static inline int weir_buf_skip(weir_buf *buf, size_t length)
{
    if (length > weir_buf_readable(buf))
        return WEIR_EBOUNDS;
    buf->read += (uint32_t)length;
    return 0;
}

/*
 * Bytes have been put into weir_buf_space.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
static inline int weir_buf_advance(weir_buf *buf, size_t length)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (length > weir_buf_writable(buf))
        return WEIR_EBOUNDS;
    buf->write += (uint32_t)length;
    return 0;
}

/*
 * Forgets all bytes: both indices are 0. Of a read-only buffer, all are skipped.
 * Thread: its holder's.
 */
static inline void weir_buf_clear(weir_buf *buf)
{
    if (weir_buf_is_read_only(buf))
        buf->read = buf->write;
    else
        buf->read = buf->write = 0;
}

/* ---- memory ---- */

/*
 * Makes room for at least `length` more bytes; nothing if there is, else in larger memory: a power
 * of two from 64 up to 4 MiB, from there on a multiple of it.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_reserve(weir_buf *buf, size_t length);

/*
 * Changes the capacity to at least `capacity`, and no more than that needs: grows, or gives memory
 * back. All bytes stay. What cannot get smaller, such as a view, remains as it is.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max, below the write index), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_set_capacity(weir_buf *buf, size_t capacity);

/*
 * Moves the readable bytes to the front: what was read makes room. The caller must be the only
 * holder, and without views.
 * Thread: its holder's.  Fails: -EROFS, -EBUSY (the memory is shared).
 */
WEIR_API int weir_buf_discard(weir_buf *buf);

/*
 * Discards what was read and gives memory back that the readable bytes do not need.
 * Thread: its holder's.  Fails: -EROFS, -EBUSY (the memory is shared), -ENOMEM.
 */
WEIR_API int weir_buf_compact(weir_buf *buf);

/* --- bytes ------------------------------------------------------------------------------------ */

/*
 * Runs of bytes in and out of a buffer, copied or lent.
 *
 * get and set work at an index, anywhere between 0 and the write index; peek and read at the read
 * index, and read moves it; write appends and grows. A span is lent: it is good until the buffer
 * changes or goes. For a piece that stays, take a weir_buf_slice.
 */

/*
 * These bytes as a span.
 * Thread: any.  Lends until they go: the bytes.
 */
static inline weir_span weir_span_of(const void *bytes, size_t length)
{
    weir_span span = {(const uint8_t *)bytes, length};

    return span;
}

/*
 * The characters of a text as a span, without the NUL.
 * Thread: any.  Lends until it goes: the text.
 */
static inline weir_span weir_span_of_text(const char *text)
{
    return weir_span_of(text, strlen(text));
}

/*
 * The readable bytes as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 */
static inline weir_span weir_buf_span(const weir_buf *buf)
{
    return weir_span_of(weir_buf_bytes(buf), weir_buf_readable(buf));
}

/*
 * The bytes at `index` as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_get_span(const weir_buf *buf, size_t index, size_t length,
                               weir_span *ret_span);

/*
 * The next readable bytes as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_peek_span(const weir_buf *buf, size_t length, weir_span *ret_span);

/*
 * The next readable bytes as a span; they are skipped.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_read_span(weir_buf *buf, size_t length, weir_span *ret_span);

/*
 * Copies the bytes at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_get_bytes(const weir_buf *buf, size_t index, void *ret_bytes, size_t length);

/*
 * Copies the next readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_peek_bytes(const weir_buf *buf, void *ret_bytes, size_t length);

/*
 * Copies the next readable bytes and skips them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_read_bytes(weir_buf *buf, void *ret_bytes, size_t length);

/*
 * Overwrites the bytes at `index`. `bytes` may lie in the buffer itself.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
WEIR_API int weir_buf_set_bytes(weir_buf *buf, size_t index, const void *bytes, size_t length);

/*
 * Appends these bytes, which do not lie in the buffer itself.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_bytes(weir_buf *buf, const void *bytes, size_t length);

/*
 * Appends a byte `length` times.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_fill(weir_buf *buf, uint8_t byte, size_t length);

/*
 * Appends the next `length` readable bytes of another buffer, where they are skipped.
 * Thread: the holder's of both.  Fails: WEIR_EBOUNDS (beyond max, or `from` has fewer), -ENOMEM,
 * -EROFS, -EINVAL (both are one).
 */
WEIR_API int weir_buf_write_buf(weir_buf *buf, weir_buf *from, size_t length);

/* --- number ----------------------------------------------------------------------------------- */

/*
 * Numbers in and out of a buffer.
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
        if (!weir_buf_in_bounds(buf, index, sizeof(type)))                                    \
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
        if (!weir_buf_in_bounds(buf, index, sizeof(type)))                         \
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

/* --- text ------------------------------------------------------------------------------------- */

/*
 * Text in and out of a buffer: strings, formatted output, hex dumps, UTF-8.
 *
 *      err = weir_buf_printf(buf, "HTTP/1.1 %d %s\r\n", status, reason);
 *
 * A buffer has a length and no NUL: none is written, and one that is read is a byte like others.
 */

/*
 * Appends a text, without its NUL.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_string(weir_buf *buf, const char *text);

/*
 * Copies `length` bytes at `index` as a text with a NUL, into an array of `size` characters.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -ENOSPC (size <= length).
 */
WEIR_API int weir_buf_get_string(const weir_buf *buf, size_t index, size_t length, char *ret_text,
                                 size_t size);

/*
 * Copies the next `length` readable bytes as a text with a NUL, into an array of `size` characters,
 * and skips them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -ENOSPC (size <= length).
 */
WEIR_API int weir_buf_read_string(weir_buf *buf, size_t length, char *ret_text, size_t size);

/*
 * Appends what printf would print.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS, -EINVAL (the format).
 */
WEIR_API int weir_buf_printf(weir_buf *buf, const char *format, ...) WEIR_PRINTF(2, 3);

/*
 * Appends what vprintf would print; the arguments are left as they were.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (beyond max), -ENOMEM, -EROFS, -EINVAL (the format).
 */
WEIR_API int weir_buf_vprintf(weir_buf *buf, const char *format, va_list arguments)
    WEIR_PRINTF(2, 0);

/*
 * Prints bytes for people, 16 a line, as `hexdump -C` does: offset, values, characters. As snprintf
 * it cuts off what is too long for `size`, ends with a NUL, and returns the length of the whole.
 * Thread: any.
 */
WEIR_API size_t weir_span_hex_dump(weir_span span, char *text, size_t size);

/*
 * weir_span_hex_dump of the readable bytes.
 * Thread: its holder's.
 */
static inline size_t weir_buf_hex_dump(const weir_buf *buf, char *text, size_t size)
{
    return weir_span_hex_dump(weir_buf_span(buf), text, size);
}

/* ---- UTF-8 ---- */

/* A check that goes on from piece to piece; zero is its beginning, the fields are private. */
typedef struct weir_utf8 {
    uint8_t missing; /* so many bytes until the character ends */
    uint8_t low;     /* between which the next of them lies */
    uint8_t high;
} weir_utf8;

/*
 * Looks at the next piece of a text. Characters may be cut anywhere. Once it has failed it fails.
 * Thread: any.  Fails: -EILSEQ (not UTF-8: overlong, a surrogate, beyond U+10FFFF, no such bytes).
 */
WEIR_API int weir_utf8_check(weir_utf8 *utf8, weir_span span);

/*
 * Whether the text may end here: no character is cut, and nothing has failed.
 * Thread: any.
 */
static inline bool weir_utf8_is_complete(const weir_utf8 *utf8)
{
    return utf8->missing == 0;
}

/*
 * Whether it is a whole text in UTF-8.
 * Thread: any.
 */
WEIR_API bool weir_span_is_utf8(weir_span span);

/*
 * Whether the readable bytes are a whole text in UTF-8.
 * Thread: its holder's.
 */
static inline bool weir_buf_is_utf8(const weir_buf *buf)
{
    return weir_span_is_utf8(weir_buf_span(buf));
}

/* --- search ----------------------------------------------------------------------------------- */

/*
 * Finding, comparing and hashing bytes.
 *
 * weir_span_* work on any memory and answer with an offset into it; weir_buf_find* search from an
 * index to the write index and answer with an index. What is not there is -ENOENT.
 */

/* Up to so many different bytes a set is searched for by vector instructions. */
#define WEIR_BYTE_SET_SMALL 8

/* A set of bytes to look for, such as delimiters; the fields are private. */
typedef struct weir_byte_set {
    uint64_t bits[4];
    uint8_t count; /* WEIR_BYTE_SET_SMALL + 1 = more than `few` holds */
    uint8_t small[WEIR_BYTE_SET_SMALL];
} weir_byte_set;

/*
 * Makes a set of these bytes; the same one may come twice.
 * Thread: any.
 */
WEIR_API void weir_byte_set_init(weir_byte_set *set, const void *bytes, size_t count);

/*
 * Whether the byte is in the set.
 * Thread: any.
 */
static inline bool weir_byte_set_has(const weir_byte_set *set, uint8_t byte)
{
    return (set->bits[byte / 64] >> byte % 64 & 1) != 0;
}

/* ---- in a span ---- */

/*
 * The offset of the first such byte.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find(weir_span span, uint8_t byte);

/*
 * The offset of the first byte that is in the set.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find_any(weir_span span, const weir_byte_set *set);

/*
 * The offset where the sequence first begins; an empty one begins everywhere.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find_sequence(weir_span span, weir_span sequence);

/*
 * Less than, equal to or greater than 0, by the first byte that differs, else by length.
 * Thread: any.
 */
WEIR_API int weir_span_compare(weir_span a, weir_span b);

/*
 * Whether both have the same bytes.
 * Thread: any.
 */
WEIR_API bool weir_span_equal(weir_span a, weir_span b);

/*
 * A number that is the same for the same bytes and seed: for tables. It may differ between versions
 * and machines, and does not withstand who wants collisions.
 * Thread: any.
 */
WEIR_API uint64_t weir_span_hash(weir_span span, uint64_t seed);

/* ---- in a buffer ---- */

/*
 * The index of the first such byte between `from` and the write index.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find(const weir_buf *buf, size_t from, uint8_t byte);

/*
 * The index of the first byte between `from` and the write index that is in the set.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find_any(const weir_buf *buf, size_t from, const weir_byte_set *set);

/*
 * The index where the sequence first begins, between `from` and the write index.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find_sequence(const weir_buf *buf, size_t from, weir_span sequence);

/*
 * weir_span_compare of the readable bytes of both.
 * Thread: the holder's of both.
 */
static inline int weir_buf_compare(const weir_buf *a, const weir_buf *b)
{
    return weir_span_compare(weir_buf_span(a), weir_buf_span(b));
}

/*
 * Whether both have the same readable bytes.
 * Thread: the holder's of both.
 */
static inline bool weir_buf_equal(const weir_buf *a, const weir_buf *b)
{
    return weir_span_equal(weir_buf_span(a), weir_buf_span(b));
}

/*
 * weir_span_hash of the readable bytes.
 * Thread: its holder's.
 */
static inline uint64_t weir_buf_hash(const weir_buf *buf, uint64_t seed)
{
    return weir_span_hash(weir_buf_span(buf), seed);
}

#ifdef __cplusplus
}
#endif

#endif
