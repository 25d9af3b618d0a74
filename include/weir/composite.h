/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/composite.h - a sequence of buffers that is read as one, without copying.
 *
 *      0             read                                length
 *      +-------------+--------------------------------------+
 *      | read        |  readable                            |
 *      +---------+---------------+------+-------------------+
 *      | first   |  second       | 3rd  |  fourth component |
 *      +---------+---------------+------+-------------------+
 *
 * A composite is a message of its own type (weir/msg.h). It is read like a buffer: get_x(composite,
 * index, &x) reads at any index below the length, peek_x and read_x at the read index, across the
 * borders of components. An access out of bounds fails with WEIR_EBOUNDS and changes nothing. A
 * composite is not written to; bytes are added as buffers.
 *
 * A component consists of the bytes that were readable when its buffer was added. The buffer and
 * its indices are not changed, so one buffer may be in several composites.
 */
#ifndef WEIR_COMPOSITE_H
#define WEIR_COMPOSITE_H

#include <sys/types.h>
#include <sys/uio.h>

#include <weir/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The default of max_components: above it, components are copied into one. */
#define WEIR_COMPOSITE_DEFAULT_MAX 16

typedef struct weir_composite weir_composite;

/*
 * Type tag of composites; see weir_composite_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_composite_type;

/* ---- lifecycle ---- */

/*
 * Creates an empty composite. When it has more than `max_components` they are copied into one; 0 =
 * WEIR_COMPOSITE_DEFAULT_MAX, SIZE_MAX = never.
 * Thread: any.  Gives: ret_composite.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_composite_create(size_t max_components,
                                                 weir_composite **ret_composite);

/*
 * The message as a composite; NULL if it has another type.
 * Thread: any.
 */
static inline weir_composite *weir_composite_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_composite_type) ? (weir_composite *)(void *)msg
                                                                 : NULL;
}

/*
 * The composite as a message.
 * Thread: any.
 */
static inline weir_msg *weir_composite_msg(weir_composite *composite)
{
    return (weir_msg *)(void *)composite; /* its first member */
}

/*
 * Retains a reference.
 * Thread: any.
 */
static inline weir_composite *weir_composite_retain(weir_composite *composite)
{
    weir_msg_retain(weir_composite_msg(composite));
    return composite;
}

/*
 * Releases a reference; the last one releases the components. NULL is ignored.
 * Thread: any.  Takes: composite.
 */
static inline void weir_composite_release(weir_composite *composite)
{
    if (composite != NULL)
        weir_msg_release(weir_composite_msg(composite));
}

/* ---- components ---- */

/*
 * Appends the readable bytes of a buffer, or the components of another composite.
 * Thread: its holder's.  Takes: msg.  Fails: -ENOMEM, -EINVAL (neither a buffer nor another
 * composite).
 */
WEIR_API WEIR_MUST_USE int weir_composite_add(weir_composite *composite, weir_msg *msg);

/*
 * Inserts the readable bytes of a buffer, or the components of another composite, before
 * `component`, or at the end. Bytes inserted before the read index count as read: the readable
 * bytes are unchanged.
 * Thread: its holder's.  Takes: msg.  Fails: WEIR_EBOUNDS (component out of range), -ENOMEM,
 * -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_composite_insert(weir_composite *composite, size_t component,
                                                 weir_msg *msg);

/*
 * Removes a component and returns it without copying: the buffer that was added, or a view of it if
 * it has other holders. Bytes of the component that were read are read in the buffer.
 * Thread: its holder's.  Gives: ret_buf.  Fails: WEIR_EBOUNDS (no such component), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_composite_remove(weir_composite *composite, size_t component,
                                                 weir_buf **ret_buf);

/*
 * The number of components, including empty ones.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_count(const weir_composite *composite);

/*
 * The bytes of a component, read or not.
 * Thread: its holder's.  Lends until the composite is changed or released: the bytes.  Fails:
 * WEIR_EBOUNDS (no such component).
 */
WEIR_API int weir_composite_component(const weir_composite *composite, size_t component,
                                      weir_span *ret_span);

/*
 * Copies all components into one. Indices are unchanged.
 * Thread: its holder's.  Fails: -ENOMEM, WEIR_EBOUNDS (more than WEIR_BUF_MAX bytes).
 */
WEIR_API int weir_composite_consolidate(weir_composite *composite);

/*
 * Releases the components that were read completely. Indices decrease by their length.
 * Thread: its holder's.
 */
WEIR_API void weir_composite_discard(weir_composite *composite);

/* ---- indices ---- */

/*
 * The number of bytes, read or not.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_length(const weir_composite *composite);

/*
 * The index of the next byte to read.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_read_index(const weir_composite *composite);

/*
 * The number of readable bytes; also the size for high marks.
 * Thread: its holder's.
 */
WEIR_API size_t weir_composite_readable(const weir_composite *composite);

/*
 * Sets the read index, between 0 and the length.
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
 * Copies the next readable bytes without consuming them.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_peek_bytes(weir_composite *composite, void *ret_bytes, size_t length);

/*
 * Copies and consumes the next readable bytes.
 * Thread: its holder's.  Fails: WEIR_EBOUNDS.
 */
WEIR_API int weir_composite_read_bytes(weir_composite *composite, void *ret_bytes, size_t length);

/* ---- numbers: those of weir/buf.h ---- */

/*
 * Reads the number at `index`.
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
 * Reads the next number without consuming it.
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
 * Reads and consumes the next number.
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
 * A view of `length` bytes at `index`, without copying: a buffer if they lie in one component,
 * otherwise a composite of views.
 * Thread: its holder's.  Keeps: what the bytes lie in.  Gives: ret_slice.  Fails: WEIR_EBOUNDS,
 * -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_composite_slice(weir_composite *composite, size_t index,
                                                size_t length, weir_msg **ret_slice);

/*
 * A view of the next `length` readable bytes, which are consumed.
 * Thread: its holder's.  Keeps: what the bytes lie in.  Gives: ret_slice.  Fails: WEIR_EBOUNDS,
 * -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_composite_read_slice(weir_composite *composite, size_t length,
                                                     weir_msg **ret_slice);

/*
 * Creates a buffer with a copy of `length` bytes at `index`.
 * Thread: its holder's.  Gives: ret_copy.  Fails: WEIR_EBOUNDS, -ENOMEM, -EINVAL (more than
 * WEIR_BUF_MAX).
 */
WEIR_API WEIR_MUST_USE int weir_composite_copy(weir_composite *composite, size_t index,
                                               size_t length, weir_buf **ret_copy);

/*
 * The readable bytes as iovecs for writev and sendmsg, without empty ones: at most `count`, and at
 * most IOV_MAX (1024). Returns their number.
 * Thread: its holder's.  Lends until the composite is changed or released: the bytes.
 */
WEIR_API size_t weir_composite_iovecs(weir_composite *composite, struct iovec *ret_vectors,
                                      size_t count);

/* ---- finding: an index, or an error as for buffers ---- */

/*
 * The index of the first `byte` between `from` and the length.
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
 * The index of the first occurrence of a sequence between `from` and the length, across components.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the length).
 */
WEIR_API ssize_t weir_composite_find_sequence(weir_composite *composite, size_t from,
                                              weir_span sequence);

#ifdef __cplusplus
}
#endif

#endif
