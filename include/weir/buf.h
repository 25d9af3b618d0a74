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
 * is done with the bytes is in weir/bytes.h, number.h, search.h and text.h, in four ways:
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
static inline bool weir_buf_holds(const weir_buf *buf, size_t index, size_t length)
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

#ifdef __cplusplus
}
#endif

#endif
