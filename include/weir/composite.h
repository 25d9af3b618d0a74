/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/composite.h - many buffers as one run of bytes, without copying them together.
 *
 *      0             read                                length
 *      +-------------+--------------------------------------+
 *      | read        |  readable                            |
 *      +---------+---------------+------+-------------------+
 *      | first   |  second       | 3rd  |  fourth component |
 *      +---------+---------------+------+-------------------+
 *
 * A composite is a message of its own type (weir/msg.h). It is read like a buffer: get_x(composite,
 * index, &x) looks anywhere between 0 and length, peek_x and read_x at the read index, across the
 * borders of components; WEIR_EBOUNDS, and nothing changes, beyond the bytes that are there. It is
 * not written to: bytes come by adding a buffer.
 *
 * A component is what a buffer had readable when it was added. The buffer itself is not touched any
 * more, its indices neither, so that one buffer may be in several composites.
 */
#ifndef WEIR_COMPOSITE_H
#define WEIR_COMPOSITE_H

#include <sys/types.h>
#include <sys/uio.h>

#include <weir/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many components there may be before they are copied together, unless told otherwise. */
#define WEIR_COMPOSITE_DEFAULT_MAX 16

typedef struct weir_composite weir_composite;

/*
 * What a message's type is if it is a composite: weir_composite_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_composite_type;

/* ---- life ---- */

/*
 * Creates an empty composite. When more than `max_components` have been added they are copied into
 * one; 0 means WEIR_COMPOSITE_DEFAULT_MAX, SIZE_MAX never.
 * Thread: any.  Gives: ret_composite.  Fails: -ENOMEM.
 */
WEIR_API int weir_composite_create(size_t max_components, weir_composite **ret_composite);

/*
 * The composite that a message is, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_composite *weir_composite_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_composite_type) ? (weir_composite *)(void *)msg
                                                                 : NULL;
}

/*
 * The composite as the message that it is.
 * Thread: any.
 */
static inline weir_msg *weir_composite_msg(weir_composite *composite)
{
    return (weir_msg *)(void *)composite; /* it begins with one */
}

/*
 * Takes one more reference.
 * Thread: any.
 */
static inline weir_composite *weir_composite_retain(weir_composite *composite)
{
    weir_msg_retain(weir_composite_msg(composite));
    return composite;
}

/*
 * Gives a reference back; the last one releases the components. NULL is fine.
 * Thread: any.  Takes: composite.
 */
static inline void weir_composite_release(weir_composite *composite)
{
    if (composite != NULL)
        weir_msg_release(weir_composite_msg(composite));
}

/* ---- components ---- */

/*
 * Adds the readable bytes of a buffer at the end; of another composite, each of its components.
 * Thread: its holder's.  Takes: msg.  Fails: -ENOMEM, -EINVAL (neither a buffer nor another
 * composite).
 */
WEIR_API int weir_composite_add(weir_composite *composite, weir_msg *msg);

/*
 * The same before the component `component`, or at the end. What comes to lie before the read index
 * counts as read: the readable bytes stay the same.
 * Thread: its holder's.  Takes: msg.  Fails: WEIR_EBOUNDS (no such place), -ENOMEM, -EINVAL.
 */
WEIR_API int weir_composite_insert(weir_composite *composite, size_t component, weir_msg *msg);

/*
 * Takes a component out, without copying: the buffer that was added, or a view of it if somebody
 * else has it too. What was read of the component is read in the buffer.
 * Thread: its holder's.  Gives: ret_buf.  Fails: WEIR_EBOUNDS (no such component), -ENOMEM.
 */
WEIR_API int weir_composite_remove(weir_composite *composite, size_t component, weir_buf **ret_buf);

/*
 * How many components there are, empty ones too.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_count(const weir_composite *composite);

/*
 * The bytes of a component, read or not.
 * Thread: its holder's.  Lends until the composite is changed or released: the bytes.
 * Fails: WEIR_EBOUNDS (no such component).
 */
WEIR_API int weir_composite_component(const weir_composite *composite, size_t component,
                                      weir_span *ret_span);

/*
 * Copies all components into one; the indices stay.
 * Thread: its holder's.  Fails: -ENOMEM, WEIR_EBOUNDS (more than WEIR_BUF_MAX bytes).
 */
WEIR_API int weir_composite_consolidate(weir_composite *composite);

/*
 * Releases the components that have been read to their end; the indices are then less by their
 * length.
 * Thread: its holder's.
 */
WEIR_API void weir_composite_discard(weir_composite *composite);

/* ---- indices ---- */

/*
 * How many bytes there are, read or not: indices end here.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_length(const weir_composite *composite);

/*
 * The index of the next byte to be read.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_read_index(const weir_composite *composite);

/*
 * How many bytes can be read. This is also its size against water marks.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_readable(const weir_composite *composite);

/*
 * Moves the read index anywhere between 0 and the length.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_set_read_index(weir_composite *composite, size_t index);

/*
 * Skips readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_skip(weir_composite *composite, size_t length);

/* ---- bytes ---- */

/*
 * Copies the bytes at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_get_bytes(weir_composite *composite, size_t index, void *ret_bytes,
                                      size_t length);

/*
 * Copies the next readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_peek_bytes(weir_composite *composite, void *ret_bytes, size_t length);

/*
 * Copies the next readable bytes and skips them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_read_bytes(weir_composite *composite, void *ret_bytes, size_t length);

/* ---- numbers: those of weir/buf.h ---- */

/*
 * Looks at the number at `index`.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
#define WEIR_COMPOSITE_GET(NAME, type, width, order)                                     \
    static inline int weir_composite_get_##NAME(weir_composite *composite, size_t index, \
                                                type *ret_value)                         \
    {                                                                                    \
        uint8_t bytes[sizeof(type)];                                                     \
        int err = weir_composite_get_bytes(composite, index, bytes, sizeof(type));       \
                                                                                         \
        if (err == 0)                                                                    \
            *ret_value = weir_load_##NAME(bytes);                                        \
        return err;                                                                      \
    }
WEIR_NUMBER_MAP(WEIR_COMPOSITE_GET)

/*
 * Looks at the number that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
#define WEIR_COMPOSITE_PEEK(NAME, type, width, order)                                        \
    static inline int weir_composite_peek_##NAME(weir_composite *composite, type *ret_value) \
    {                                                                                        \
        uint8_t bytes[sizeof(type)];                                                         \
        int err = weir_composite_peek_bytes(composite, bytes, sizeof(type));                 \
                                                                                             \
        if (err == 0)                                                                        \
            *ret_value = weir_load_##NAME(bytes);                                            \
        return err;                                                                          \
    }
WEIR_NUMBER_MAP(WEIR_COMPOSITE_PEEK)

/*
 * Takes the number that the readable bytes begin with.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
#define WEIR_COMPOSITE_READ(NAME, type, width, order)                                        \
    static inline int weir_composite_read_##NAME(weir_composite *composite, type *ret_value) \
    {                                                                                        \
        uint8_t bytes[sizeof(type)];                                                         \
        int err = weir_composite_read_bytes(composite, bytes, sizeof(type));                 \
                                                                                             \
        if (err == 0)                                                                        \
            *ret_value = weir_load_##NAME(bytes);                                            \
        return err;                                                                          \
    }
WEIR_NUMBER_MAP(WEIR_COMPOSITE_READ)

/* ---- parts ---- */

/*
 * A view of `length` bytes from `index` on, without copying: a buffer if they lie in one component,
 * else a composite of views.
 * Thread: its holder's.  Keeps: what the bytes lie in.  Gives: ret_slice.  Fails: WEIR_EBOUNDS,
 * -ENOMEM.
 */
WEIR_API int weir_composite_slice(weir_composite *composite, size_t index, size_t length,
                                  weir_msg **ret_slice);

/*
 * The same of the next `length` readable bytes, which are skipped.
 * Thread: its holder's.  Keeps: what the bytes lie in.  Gives: ret_slice.  Fails: WEIR_EBOUNDS,
 * -ENOMEM.
 */
WEIR_API int weir_composite_read_slice(weir_composite *composite, size_t length,
                                       weir_msg **ret_slice);

/*
 * One buffer with a copy of `length` bytes from `index` on.
 * Thread: its holder's.  Gives: ret_copy.  Fails: WEIR_EBOUNDS, -ENOMEM, -EINVAL (more than
 * WEIR_BUF_MAX).
 */
WEIR_API int weir_composite_copy(weir_composite *composite, size_t index, size_t length,
                                 weir_buf **ret_copy);

/*
 * The readable bytes as vectors for writev and sendmsg, empty ones left out: at most `count`, and
 * at most the 1024 that the system takes at once. Returns how many.
 * Thread: its holder's.  Lends until the composite is changed or released: the bytes.
 */
WEIR_API size_t weir_composite_iovecs(weir_composite *composite, struct iovec *ret_vectors,
                                      size_t count);

/* ---- finding: the index of what was found, or what weir/buf.h says ---- */

/*
 * The index of the first such byte between `from` and the length.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the length).
 */
WEIR_API ssize_t weir_composite_find(weir_composite *composite, size_t from, uint8_t byte);

/*
 * The index of the first byte between `from` and the length that is in the set.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the length).
 */
WEIR_API ssize_t weir_composite_find_any(weir_composite *composite, size_t from,
                                         const weir_byte_set *set);

/*
 * The index where the sequence first begins, between `from` and the length, across borders too.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the length).
 */
WEIR_API ssize_t weir_composite_find_sequence(weir_composite *composite, size_t from,
                                              weir_span sequence);

#ifdef __cplusplus
}
#endif

#endif
