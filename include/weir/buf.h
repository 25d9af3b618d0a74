/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/buf.h - byte buffers with a read and a write index.
 *
 *      0        read        write       capacity         max
 *      +--------+-----------+-----------+ - - - - - - - - +
 *      |  read  | readable  | writable  |  growth         |
 *      +--------+-----------+-----------+ - - - - - - - - +
 *
 * A buffer is a message (weir/msg.h): reference-counted, passed on or released once. Its memory
 * comes from the pool (weir/pool.h), from the user (weir_buf_wrap), or from another buffer of which
 * it is a view. Bytes, numbers and text are accessed in four ways:
 *
 *      get_x(buf, index, &x)    reads at an index below the write index
 *      set_x(buf, index, x)     overwrites there
 *      read_x(buf, &x)          reads and consumes the next readable bytes
 *      write_x(buf, x)          appends, growing the buffer
 *
 * Every access is checked: out of bounds it fails with WEIR_EBOUNDS and changes nothing. Changes of
 * a read-only buffer fail with -EROFS. A buffer belongs to one thread at a time; its reference
 * count may be changed by any holder.
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

/* The maximum size of a buffer. */
#define WEIR_BUF_MAX ((size_t)UINT32_MAX - 4096)

/* Private: a bit of msg.flags; the others are in src/buffer/buf.h. */
#define WEIR_BUF_FLAG_READ_ONLY (1u << 4)

/* All members are private. 64 bytes, so that the payload behind the header begins on a cache line.
 */
typedef struct weir_buf {
    weir_msg msg;
    uint8_t *data;
    uint32_t read;
    uint32_t write;
    uint32_t capacity;
    uint32_t max;
    void *owner;            /* for the pool */
    struct weir_buf *block; /* the buffer whose memory it uses, if not that behind this header */
    void *slab;             /* for the pool */
} weir_buf;

/* A range of memory that it does not own. */
typedef struct weir_span {
    const uint8_t *data;
    size_t length;
} weir_span;

typedef void weir_buf_free_fn(void *data, void *user_data);

/*
 * Type tag of buffers; see weir_buf_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_buf_type;

/* ---- lifecycle ---- */

/*
 * Creates an empty buffer from the pool, with room for at least `capacity` bytes, that grows to at
 * most `max` (0 = WEIR_BUF_MAX).
 * Thread: any.  Gives: buf.  Fails: -ENOMEM, -EINVAL (capacity > max, max > WEIR_BUF_MAX).
 */
WEIR_API WEIR_MUST_USE int weir_buf_create(size_t capacity, size_t max, weir_buf **ret_buf);

/*
 * Creates a buffer with a copy of `length` bytes. It can grow.
 * Thread: any.  Gives: buf.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_buf_create_from(const void *bytes, size_t length,
                                                weir_buf **ret_buf);

/*
 * Creates a buffer of existing memory: all of it readable, not growable. `free_data(data,
 * user_data)` is called once, on any thread, when the last reference is released, or before this
 * function returns an error. It may be NULL.
 * Thread: any.  Takes: data.  Gives: buf.  Fails: -ENOMEM, -EINVAL (length > WEIR_BUF_MAX, or data
 * is NULL and length > 0).
 */
WEIR_API WEIR_MUST_USE int weir_buf_wrap(void *data, size_t length, weir_buf_free_fn *free_data,
                                         void *user_data, weir_buf **ret_buf);

/*
 * Creates a read-only buffer of memory that is never freed, such as literals and tables.
 * Thread: any.  Gives: buf.  Fails: -ENOMEM, -EINVAL (length > WEIR_BUF_MAX, or data is NULL and
 * length > 0).
 */
WEIR_API WEIR_MUST_USE int weir_buf_wrap_static(const void *data, size_t length,
                                                weir_buf **ret_buf);

/*
 * The message as a buffer; NULL if it has another type.
 * Thread: any.
 */
static inline weir_buf *weir_buf_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_buf_type) ? (weir_buf *)(void *)msg : NULL;
}

/*
 * The buffer as a message.
 * Thread: any.
 */
static inline weir_msg *weir_buf_msg(weir_buf *buf)
{
    return &buf->msg;
}

/*
 * Retains a reference.
 * Thread: any.
 */
static inline weir_buf *weir_buf_retain(weir_buf *buf)
{
    weir_msg_retain(&buf->msg);
    return buf;
}

/*
 * Releases a reference. NULL is ignored.
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
 * A view shares the memory of its buffer and keeps it alive: changes of one are visible in the
 * other, until the buffer grows and moves to other memory; views created before keep the old bytes.
 * A view does not grow. A view of a view is a view of the underlying buffer.
 */

/*
 * A view of `length` bytes at the index `offset`, all of them readable.
 * Thread: its holder's.  Keeps: buf.  Gives: slice.  Fails: WEIR_EBOUNDS, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_buf_slice(weir_buf *buf, size_t offset, size_t length,
                                          weir_buf **ret_slice);

/*
 * A view of the next `length` readable bytes, which are consumed.
 * Thread: its holder's.  Keeps: buf.  Gives: slice.  Fails: WEIR_EBOUNDS, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_buf_read_slice(weir_buf *buf, size_t length, weir_buf **ret_slice);

/*
 * A view of the whole buffer with its own indices.
 * Thread: its holder's.  Keeps: buf.  Gives: duplicate.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_buf_duplicate(weir_buf *buf, weir_buf **ret_duplicate);

/*
 * A duplicate that is read-only.
 * Thread: its holder's.  Keeps: buf.  Gives: view.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_buf_read_only(weir_buf *buf, weir_buf **ret_view);

/*
 * Creates a buffer with a copy of `length` bytes at the index `offset`.
 * Thread: its holder's.  Gives: copy.  Fails: WEIR_EBOUNDS, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_buf_copy(const weir_buf *buf, size_t offset, size_t length,
                                         weir_buf **ret_copy);

/* ---- indices ---- */

/*
 * The index of the next byte to read.
 * Thread: its holder's.
 */
static inline size_t weir_buf_read_index(const weir_buf *buf)
{
    return buf->read;
}

/*
 * The index of the next byte to write.
 * Thread: its holder's.
 */
static inline size_t weir_buf_write_index(const weir_buf *buf)
{
    return buf->write;
}

/*
 * The number of bytes that fit without growing.
 * Thread: its holder's.
 */
static inline size_t weir_buf_capacity(const weir_buf *buf)
{
    return buf->capacity;
}

/*
 * The size to which it can grow.
 * Thread: its holder's.
 */
static inline size_t weir_buf_max(const weir_buf *buf)
{
    return buf->max;
}

/*
 * The number of readable bytes.
 * Thread: its holder's.
 */
static inline size_t weir_buf_readable(const weir_buf *buf)
{
    return (size_t)buf->write - buf->read;
}

/*
 * The number of bytes that can be written without growing.
 * Thread: its holder's.
 */
static inline size_t weir_buf_writable(const weir_buf *buf)
{
    return (size_t)buf->capacity - buf->write;
}

/*
 * True if the buffer cannot be changed.
 * Thread: its holder's.
 */
static inline bool weir_buf_is_read_only(const weir_buf *buf)
{
    return (buf->msg.flags & WEIR_BUF_FLAG_READ_ONLY) != 0;
}

/*
 * True if `length` bytes at `index` lie between 0 and the write index.
 * Thread: its holder's.
 */
static inline bool weir_buf_in_bounds(const weir_buf *buf, size_t index, size_t length)
{
    return index <= buf->write && length <= buf->write - index;
}

/*
 * The first of the weir_buf_readable readable bytes.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 */
static inline const uint8_t *weir_buf_bytes(const weir_buf *buf)
{
    return buf->data + buf->read;
}

/*
 * The first of the weir_buf_writable bytes to write next; weir_buf_advance commits them.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.
 */
static inline uint8_t *weir_buf_space(weir_buf *buf)
{
    return buf->data + buf->write;
}

/*
 * Sets the read index, between 0 and the write index.
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
 * Sets the write index, between the read index and the capacity.
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
 * Consumes `length` readable bytes.
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
 * Removes the readable bytes behind the first `length`, which may be all of them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
static inline int weir_buf_truncate(weir_buf *buf, size_t length)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (length > weir_buf_readable(buf))
        return WEIR_EBOUNDS;
    buf->write = buf->read + (uint32_t)length;
    return 0;
}

/*
 * Commits `length` bytes that were written to weir_buf_space.
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
 * Sets both indices to 0. In a read-only buffer, consumes all readable bytes instead.
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
 * Ensures that `length` more bytes can be written. If there is no room the bytes move to larger
 * memory: a power of two from 64 bytes to 4 MiB, above that a multiple of 4 MiB.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_reserve(weir_buf *buf, size_t length);

/*
 * Sets the capacity to at least `capacity`, growing or shrinking as needed. All bytes are kept.
 * Memory that cannot shrink, such as that of a view, is left as it is.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max, below the write index), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_set_capacity(weir_buf *buf, size_t capacity);

/*
 * Moves the readable bytes to index 0, so that the space of consumed bytes can be reused. The
 * caller must be the only holder, without views.
 * Thread: its holder's.  Fails: -EROFS, -EBUSY (the memory is shared).
 */
WEIR_API int weir_buf_discard(weir_buf *buf);

/*
 * Discards consumed bytes and shrinks the memory to what the readable bytes need.
 * Thread: its holder's.  Fails: -EROFS, -EBUSY (the memory is shared), -ENOMEM.
 */
WEIR_API int weir_buf_compact(weir_buf *buf);

/* --- bytes ------------------------------------------------------------------------------------ */

/*
 * Reading and writing bytes, copied or borrowed.
 *
 * get and set work at an index below the write index, peek and read at the read index; read
 * consumes. write appends. A span borrows memory: it is valid until the buffer is changed or
 * released. To keep a part for longer, use weir_buf_slice.
 */

/*
 * A span of `length` bytes.
 * Thread: any.  Lends until they are freed: the bytes.
 */
static inline weir_span weir_span_of(const void *bytes, size_t length)
{
    weir_span span = {(const uint8_t *)bytes, length};

    return span;
}

/*
 * The characters of a string as a span, without the NUL.
 * Thread: any.  Lends until it is freed: the text.
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
 * Consumes the next readable bytes and returns them as a span.
 * Thread: its holder's.  Lends until the buffer is changed or released: the bytes.  Fails:
 * WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_read_span(weir_buf *buf, size_t length, weir_span *ret_span);

/*
 * Copies the bytes at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_get_bytes(const weir_buf *buf, size_t index, void *ret_bytes, size_t length);

/*
 * Copies the next readable bytes without consuming them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_peek_bytes(const weir_buf *buf, void *ret_bytes, size_t length);

/*
 * Copies and consumes the next readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_buf_read_bytes(weir_buf *buf, void *ret_bytes, size_t length);

/*
 * Overwrites the bytes at `index`. `bytes` may overlap the buffer.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS.
 */
WEIR_API int weir_buf_set_bytes(weir_buf *buf, size_t index, const void *bytes, size_t length);

/*
 * Appends `length` bytes, which must not overlap the buffer.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_bytes(weir_buf *buf, const void *bytes, size_t length);

/*
 * Appends `byte` `length` times.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_fill(weir_buf *buf, uint8_t byte, size_t length);

/*
 * Appends the next `length` readable bytes of `from`, where they are consumed.
 * Thread: the holder's of both.  Fails: WEIR_EBOUNDS (above max, or `from` has fewer), -ENOMEM,
 * -EROFS, -EINVAL (`from` is `buf`).
 */
WEIR_API int weir_buf_write_buf(weir_buf *buf, weir_buf *from, size_t length);

/* --- number ----------------------------------------------------------------------------------- */

/*
 * Reading and writing numbers.
 *
 *      u8 u16 u32 u64   i8 i16 i32 i64   f32 f64      in network order (big-endian)
 *         u16_le ...       i16_le ...    f32_le ...   little-endian
 *
 * Each type has the functions documented below as NAME:
 *
 *      uint32_t length;
 *      err = weir_buf_read_u32(buf, &length);
 *      err = weir_buf_write_u16_le(buf, 80);
 *
 * In addition there are unsigned integers of 1 to 8 bytes and integers of variable length.
 */

/* XX(NAME, C type, bits, byte order). */
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

/* Private: converts between the byte order of the machine and the given one. */
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
 * Loads a number from `bytes`, which need not be aligned. Not bounds-checked; for memory outside of
 * buffers.
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
 * Stores a number at `bytes`, which need not be aligned. Not bounds-checked.
 * Thread: any.
 */
#define WEIR_NUMBER_STORE(NAME, type, width, order)               \
    static inline void weir_store_##NAME(void *bytes, type value) \
    {                                                             \
        uint##width##_t bits;                                     \
                                                                  \
        memcpy(&bits, &value, sizeof(bits));                      \
        bits = WEIR_NUMBER_##order(width, bits);                  \
        memcpy(bytes, &bits, sizeof(bits));                       \
    }
WEIR_NUMBER_MAP(WEIR_NUMBER_STORE)

/*
 * Reads the number at `index`.
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
 * Overwrites the bytes at `index` with a number.
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
 * Reads the next number without consuming it.
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
 * Reads and consumes the next number.
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
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
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
 * Reads the integer of `size` bytes at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EINVAL (size).
 */
WEIR_API int weir_buf_get_uint(const weir_buf *buf, size_t index, size_t size,
                               enum weir_byte_order order, uint64_t *ret_value);

/*
 * Overwrites the bytes at `index` with an integer of `size` bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EROFS, -EINVAL (size), -EOVERFLOW (value too large).
 */
WEIR_API int weir_buf_set_uint(weir_buf *buf, size_t index, size_t size, enum weir_byte_order order,
                               uint64_t value);

/*
 * Reads and consumes the next integer of `size` bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -EINVAL (size).
 */
WEIR_API int weir_buf_read_uint(weir_buf *buf, size_t size, enum weir_byte_order order,
                                uint64_t *ret_value);

/*
 * Appends an integer of `size` bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS, -EINVAL (size),
 * -EOVERFLOW (value too large).
 */
WEIR_API int weir_buf_write_uint(weir_buf *buf, size_t size, enum weir_byte_order order,
                                 uint64_t value);

/*
 * ---- integers of variable length ----
 *
 * As in Protocol Buffers (uint64, sint64): 7 bits per byte, the lowest first; bit 7 is set in all
 * but the last byte (unsigned LEB128). Signed integers use zig-zag encoding, so that small ones are
 * short: 0, -1, 1, -2 become 0, 1, 2, 3. (This is not the signed LEB128 of DWARF and WebAssembly.)
 * Padding with zeroes, which Protocol Buffers allow, is rejected with -EBADMSG, so that each number
 * has one encoding. At most 10 bytes and 64 bits are read.
 */

/* The maximum length in bytes. */
#define WEIR_VARINT_MAX 10

/*
 * The encoded length of a number in bytes.
 * Thread: any.
 */
static inline size_t weir_varint_length(uint64_t value)
{
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

/*
 * Reads the number at `index` and its length in bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (it is incomplete), -EOVERFLOW (more than 64 bits),
 * -EBADMSG (not the shortest form).
 */
WEIR_API int weir_buf_get_varint(const weir_buf *buf, size_t index, uint64_t *ret_value,
                                 size_t *ret_length);

/*
 * Reads the signed number at `index` and its length in bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (it is incomplete), -EOVERFLOW (more than 64 bits),
 * -EBADMSG (not the shortest form).
 */
WEIR_API int weir_buf_get_varint_signed(const weir_buf *buf, size_t index, int64_t *ret_value,
                                        size_t *ret_length);

/*
 * Reads and consumes the next number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (it is incomplete), -EOVERFLOW, -EBADMSG.
 */
WEIR_API int weir_buf_read_varint(weir_buf *buf, uint64_t *ret_value);

/*
 * Reads and consumes the next signed number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (it is incomplete), -EOVERFLOW, -EBADMSG.
 */
WEIR_API int weir_buf_read_varint_signed(weir_buf *buf, int64_t *ret_value);

/*
 * Appends a number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_varint(weir_buf *buf, uint64_t value);

/*
 * Appends a signed number.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_varint_signed(weir_buf *buf, int64_t value);

/* --- text ------------------------------------------------------------------------------------- */

/*
 * Strings, formatted output, hex dumps and UTF-8.
 *
 *      err = weir_buf_printf(buf, "HTTP/1.1 %d %s\r\n", status, reason);
 *
 * Buffers have a length and no terminating NUL: none is written, and a NUL that is read is an
 * ordinary byte.
 */

/*
 * Appends a string, without its NUL.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS.
 */
WEIR_API int weir_buf_write_string(weir_buf *buf, const char *text);

/*
 * Copies `length` bytes at `index` and a NUL into an array of `size` characters.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -ENOSPC (size <= length).
 */
WEIR_API int weir_buf_get_string(const weir_buf *buf, size_t index, size_t length, char *ret_text,
                                 size_t size);

/*
 * Copies the next `length` readable bytes and a NUL into an array of `size` characters, and
 * consumes them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS, -ENOSPC (size <= length).
 */
WEIR_API int weir_buf_read_string(weir_buf *buf, size_t length, char *ret_text, size_t size);

/*
 * Appends formatted text, as printf.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS, -EINVAL (the format).
 */
WEIR_API int weir_buf_printf(weir_buf *buf, const char *format, ...) WEIR_PRINTF(2, 3);

/*
 * Appends formatted text, as vprintf; `arguments` can be used again.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS (above max), -ENOMEM, -EROFS, -EINVAL (the format).
 */
WEIR_API int weir_buf_vprintf(weir_buf *buf, const char *format, va_list arguments)
    WEIR_PRINTF(2, 0);

/*
 * Formats bytes as `hexdump -C` does: offset, values and characters of 16 bytes per line. As
 * snprintf it truncates to `size`, terminates with a NUL, and returns the length of the whole.
 * Thread: any.
 */
WEIR_API size_t weir_span_hex_dump(weir_span span, char *text, size_t size);

/*
 * Formats the readable bytes as weir_span_hex_dump.
 * Thread: its holder's.
 */
static inline size_t weir_buf_hex_dump(const weir_buf *buf, char *text, size_t size)
{
    return weir_span_hex_dump(weir_buf_span(buf), text, size);
}

/* ---- UTF-8 ---- */

/* State of an incremental UTF-8 check, initialized to zeroes. All members are private. */
typedef struct weir_utf8 {
    uint8_t missing; /* bytes until the end of the character */
    uint8_t low;     /* range of the next byte */
    uint8_t high;
} weir_utf8;

/*
 * Checks the next part of a text. Parts may end within a character. After a failure every call
 * fails.
 * Thread: any.  Fails: -EILSEQ (not UTF-8: overlong, a surrogate, above U+10FFFF, an invalid byte).
 */
WEIR_API int weir_utf8_check(weir_utf8 *utf8, weir_span span);

/*
 * True if the text may end here: no character is incomplete, and no check has failed.
 * Thread: any.
 */
static inline bool weir_utf8_is_complete(const weir_utf8 *utf8)
{
    return utf8->missing == 0;
}

/*
 * True if the span is valid UTF-8.
 * Thread: any.
 */
WEIR_API bool weir_span_is_utf8(weir_span span);

/*
 * True if the readable bytes are valid UTF-8.
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
 * weir_span_* search memory and return an offset into it; weir_buf_find* search from an index to
 * the write index and return an index. They return -ENOENT if nothing is found.
 */

/* Sets of up to this many bytes are searched with vector instructions. */
#define WEIR_BYTE_SET_SMALL 8

/* A set of bytes to search for, such as delimiters. All members are private. */
typedef struct weir_byte_set {
    uint64_t bits[4];
    uint8_t count; /* WEIR_BYTE_SET_SMALL + 1 = more than fit in `small` */
    uint8_t small[WEIR_BYTE_SET_SMALL];
} weir_byte_set;

/*
 * Initializes a set of bytes; duplicates are ignored.
 * Thread: any.
 */
WEIR_API void weir_byte_set_init(weir_byte_set *set, const void *bytes, size_t count);

/*
 * True if the byte is in the set.
 * Thread: any.
 */
static inline bool weir_byte_set_has(const weir_byte_set *set, uint8_t byte)
{
    return (set->bits[byte / 64] >> byte % 64 & 1) != 0;
}

/* ---- in a span ---- */

/*
 * The offset of the first `byte`.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find(weir_span span, uint8_t byte);

/*
 * The offset of the first byte that is in the set.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find_any(weir_span span, const weir_byte_set *set);

/*
 * The offset of the first occurrence of a sequence; 0 if the sequence is empty.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find_sequence(weir_span span, weir_span sequence);

/*
 * Compares bytes, then lengths: less than, equal to or greater than 0.
 * Thread: any.
 */
WEIR_API int weir_span_compare(weir_span a, weir_span b);

/*
 * True if both have the same bytes.
 * Thread: any.
 */
WEIR_API bool weir_span_equal(weir_span a, weir_span b);

/*
 * A hash for in-memory tables, the same for the same bytes and seed. It may differ between versions
 * and machines. Not collision-resistant.
 * Thread: any.
 */
WEIR_API uint64_t weir_span_hash(weir_span span, uint64_t seed);

/* ---- in a buffer ---- */

/*
 * The index of the first `byte` between `from` and the write index.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find(const weir_buf *buf, size_t from, uint8_t byte);

/*
 * The index of the first byte between `from` and the write index that is in the set.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find_any(const weir_buf *buf, size_t from, const weir_byte_set *set);

/*
 * The index of the first occurrence of a sequence between `from` and the write index.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find_sequence(const weir_buf *buf, size_t from, weir_span sequence);

/*
 * Compares the readable bytes of both, as weir_span_compare.
 * Thread: the holder's of both.
 */
static inline int weir_buf_compare(const weir_buf *a, const weir_buf *b)
{
    return weir_span_compare(weir_buf_span(a), weir_buf_span(b));
}

/*
 * True if both have the same readable bytes.
 * Thread: the holder's of both.
 */
static inline bool weir_buf_equal(const weir_buf *a, const weir_buf *b)
{
    return weir_span_equal(weir_buf_span(a), weir_buf_span(b));
}

/*
 * The hash of the readable bytes; see weir_span_hash.
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
