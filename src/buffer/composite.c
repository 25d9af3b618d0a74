/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence of buffers.
 *
 *      index    0         10              26     31                  50
 *               +---------+---------------+------+-------------------+
 *      end               10              26     31                  50
 *      buf           |          |           |            |
 *      start         4          0           7            0               index in the buffer
 *
 * Invariants: - the ends do not decrease; the last one is the length. read <= length. - the byte at
 * an index is in the first component whose end is greater, because components may be
 *     empty: found by binary search, after checking the component found last and the next one.
 * - the buffer of a component is only retained and read: it may be shared. A composite may be read
 *     by several threads: only `last_found`, a hint, is changed by reading.
 *
 * Insertion, consolidation and slicing allocate before they change anything, so that a failure has
 * no effect.
 */
#include <weir/composite.h>

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/no_stack_protector.h"
#include "buffer/leak.h"
#include "buffer/msg.h"
#include "buffer/pool.h"

struct component {
    weir_buf *buf;
    size_t end;     /* index in the composite behind its last byte */
    uint32_t start; /* index in the buffer of its first byte */
};

/* The payload of a block of the pool. */
struct weir_composite {
    weir_msg msg;
    size_t read;
    struct component *components;
    size_t count;
    size_t capacity;
    size_t max_components;
    _Atomic size_t last_found; /* a hint: the component found last; relaxed */
    struct component
        first_components[WEIR_COMPOSITE_DEFAULT_MAX + 1]; /* one more, to consolidate */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- lifecycle ---- */

int weir_composite_create(size_t max_components, weir_composite **ret_composite)
{
    weir_buf *block = weir__pool_alloc(sizeof(weir_composite));
    weir_composite *composite;

    if (block == NULL)
        return -ENOMEM;
    composite = (weir_composite *)(void *)block->data;
    weir_msg_init(&composite->msg, &weir_composite_type);
    composite->read = 0;
    composite->components = composite->first_components;
    composite->count = 0;
    composite->capacity = WEIR_COMPOSITE_DEFAULT_MAX + 1;
    composite->max_components = max_components > 0 ? max_components : WEIR_COMPOSITE_DEFAULT_MAX;
    atomic_init(&composite->last_found, 0);
    weir__leak_msg_created(&composite->msg);
    *ret_composite = composite;
    return 0;
}

static void release_components(weir_composite *composite, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weir_buf_release(composite->components[i].buf);
}

static void free_components(weir_composite *composite)
{
    if (composite->components != composite->first_components)
        weir__free(composite->components);
}

static void destroy(weir_msg *msg)
{
    weir_composite *composite = weir_composite_of(msg);

    weir__leak_msg_destroyed(msg);
    release_components(composite, composite->count);
    free_components(composite);
    weir__pool_free((weir_buf *)(void *)composite - 1);
}

/* ---- lookup ---- */

static size_t start_of(const weir_composite *composite, size_t i)
{
    return i > 0 ? composite->components[i - 1].end : 0;
}

static size_t length_of(const weir_composite *composite, size_t i)
{
    return composite->components[i].end - start_of(composite, i);
}

/* The bytes of component `i` from `index` on, which is in it. */
static weir_span span_from(const weir_composite *composite, size_t i, size_t index)
{
    const struct component *component = &composite->components[i];
    const uint8_t *first = component->buf->data + component->start;

    return weir_span_of(first + (index - start_of(composite, i)), component->end - index);
}

static bool component_has(const weir_composite *composite, size_t i, size_t index)
{
    return i < composite->count && index >= start_of(composite, i) &&
           index < composite->components[i].end;
}

static size_t search_component(const weir_composite *composite, size_t index)
{
    size_t low = 0, high = composite->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (composite->components[middle].end > index)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The component with the byte at `index`; the count if there is none. */
static size_t find_component(weir_composite *composite, size_t index)
{
    size_t i = atomic_load_explicit(&composite->last_found, memory_order_relaxed);

    if (component_has(composite, i, index))
        return i;
    i = component_has(composite, i + 1, index) ? i + 1 : search_component(composite, index);
    atomic_store_explicit(&composite->last_found, i, memory_order_relaxed);
    return i;
}

size_t weir_composite_count(const weir_composite *composite)
{
    return composite->count;
}

int weir_composite_component(const weir_composite *composite, size_t component, weir_span *ret_span)
{
    if (component >= composite->count)
        return WEIR_EBOUNDS;
    *ret_span = span_from(composite, component, start_of(composite, component));
    return 0;
}

size_t weir_composite_length(const weir_composite *composite)
{
    return start_of(composite, composite->count);
}

size_t weir_composite_read_index(const weir_composite *composite)
{
    return composite->read;
}

size_t weir_composite_readable(const weir_composite *composite)
{
    return weir_composite_length(composite) - composite->read;
}

int weir_composite_set_read_index(weir_composite *composite, size_t index)
{
    if (index > weir_composite_length(composite))
        return WEIR_EBOUNDS;
    composite->read = index;
    return 0;
}

int weir_composite_skip(weir_composite *composite, size_t length)
{
    if (length > weir_composite_readable(composite))
        return WEIR_EBOUNDS;
    composite->read += length;
    return 0;
}

/* True if there are `length` bytes at `index`. */
static bool has(const weir_composite *composite, size_t index, size_t length)
{
    size_t all = weir_composite_length(composite);

    return index <= all && length <= all - index;
}

/* ---- components ---- */

static int make_room(weir_composite *composite, size_t more)
{
    size_t needed = composite->count + more;
    size_t capacity = composite->capacity;
    struct component *components;

    if (needed <= capacity)
        return 0;
    while (capacity < needed)
        capacity *= 2;
    components = weir__alloc(capacity * sizeof(*components));
    if (components == NULL)
        return -ENOMEM;
    memcpy(components, composite->components, composite->count * sizeof(*components));
    free_components(composite);
    composite->components = components;
    composite->capacity = capacity;
    return 0;
}

/* Inserts `count` uninitialized components for `length` bytes at `at`. */
static void open_gap(weir_composite *composite, size_t at, size_t count, size_t length)
{
    struct component *gap = composite->components + at;
    size_t begin = start_of(composite, at);

    memmove(gap + count, gap, (composite->count - at) * sizeof(*gap));
    composite->count += count;
    for (size_t i = at + count; i < composite->count; i++)
        composite->components[i].end += length;
    if (composite->read > begin)
        composite->read += length;
}

/* Removes `count` components at `at` from the array, and adjusts the read index. */
static void close_gap(weir_composite *composite, size_t at, size_t count)
{
    struct component *gap = composite->components + at;
    size_t begin = start_of(composite, at);
    size_t length = start_of(composite, at + count) - begin;

    if (composite->read > begin)
        composite->read -= smaller(composite->read - begin, length);
    memmove(gap, gap + count, (composite->count - at - count) * sizeof(*gap));
    composite->count -= count;
    for (size_t i = at; i < composite->count; i++)
        composite->components[i].end -= length;
}

/*
 * Replaces a buffer that has other holders, which may change or move it, by a view of its readable
 * bytes. Takes the reference of the caller.
 */
static int own_or_view(weir_buf *buf, weir_buf **ret_buf)
{
    int err;

    if (weir__msg_is_sole(&buf->msg)) {
        *ret_buf = buf;
        return 0;
    }
    err = weir_buf_slice(buf, buf->read, weir_buf_readable(buf), ret_buf);
    if (err == 0)
        weir_buf_release(buf);
    return err;
}

static void set_component(weir_composite *composite, size_t at, weir_buf *buf)
{
    composite->components[at] = (struct component){
        .buf = buf,
        .end = start_of(composite, at) + weir_buf_readable(buf),
        .start = buf->read,
    };
}

static int insert_buf(weir_composite *composite, size_t at, weir_buf *buf)
{
    int err = make_room(composite, 1);

    if (err == 0)
        err = own_or_view(buf, &buf);
    if (err < 0)
        return err;
    open_gap(composite, at, 1, weir_buf_readable(buf));
    set_component(composite, at, buf);
    return 0;
}

/* Inserts the readable part; the buffers are retained, because `nested` may have other holders. */
static int insert_composite(weir_composite *composite, size_t at, weir_composite *nested)
{
    size_t first = search_component(nested, nested->read);
    size_t count = nested->count - first;
    size_t begin = start_of(composite, at);
    int err = nested != composite ? make_room(composite, count) : -EINVAL;

    if (err < 0)
        return err;
    open_gap(composite, at, count, weir_composite_readable(nested));
    for (size_t i = 0; i < count; i++) {
        const struct component *from = &nested->components[first + i];
        size_t skipped = i == 0 ? nested->read - start_of(nested, first) : 0;

        composite->components[at + i] = (struct component){
            .buf = weir_buf_retain(from->buf),
            .end = begin + (from->end - nested->read),
            .start = from->start + (uint32_t)skipped,
        };
    }
    weir_composite_release(nested);
    return 0;
}

WEIR__NO_STACK_PROTECTOR int weir_composite_insert(weir_composite *composite, size_t component,
                                                   weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    weir_composite *nested = weir_composite_of(msg);
    int err = -EINVAL;

    if (component > composite->count)
        err = WEIR_EBOUNDS;
    else if (buf != NULL)
        err = insert_buf(composite, component, buf);
    else if (nested != NULL)
        err = insert_composite(composite, component, nested);
    if (err < 0) {
        weir_msg_release(msg);
        return err;
    }
    if (composite->count > composite->max_components)
        (void)weir_composite_consolidate(composite); /* harmless if it fails */
    return 0;
}

int weir_composite_add(weir_composite *composite, weir_msg *msg)
{
    size_t count = composite->count;
    weir_buf *buf = weir_buf_of(msg);

    if (buf == NULL || !weir__msg_is_sole(&buf->msg) || count >= composite->capacity ||
        count >= composite->max_components)
        return weir_composite_insert(composite, count, msg);
    set_component(composite, count, buf);
    composite->count = count + 1;
    return 0;
}

/* Makes a buffer of a component, and takes the reference of the component. */
static int make_buf(const struct component *component, size_t length, weir_buf **ret_buf)
{
    weir_buf *buf = component->buf;
    int err;

    if (weir__msg_is_sole(&buf->msg)) {
        buf->read = component->start;
        buf->write = component->start + (uint32_t)length;
        *ret_buf = buf;
        return 0;
    }
    err = weir_buf_slice(buf, component->start, length, ret_buf);
    if (err == 0)
        weir_buf_release(buf);
    return err;
}

int weir_composite_remove(weir_composite *composite, size_t component, weir_buf **ret_buf)
{
    size_t begin, length, was_read;
    weir_buf *buf;
    int err;

    if (component >= composite->count)
        return WEIR_EBOUNDS;
    begin = start_of(composite, component);
    length = length_of(composite, component);
    was_read = composite->read > begin ? smaller(composite->read - begin, length) : 0;
    err = make_buf(&composite->components[component], length, &buf);
    if (err < 0)
        return err;
    buf->read += (uint32_t)was_read;
    close_gap(composite, component, 1);
    *ret_buf = buf;
    return 0;
}

int weir_composite_consolidate(weir_composite *composite)
{
    size_t length = weir_composite_length(composite);
    weir_buf *buf;
    int err;

    if (composite->count <= 1)
        return 0;
    err = weir_composite_copy(composite, 0, length, &buf);
    if (err < 0)
        return err == -EINVAL ? WEIR_EBOUNDS : err;
    release_components(composite, composite->count);
    composite->components[0] = (struct component){.buf = buf, .end = length};
    composite->count = 1;
    return 0;
}

void weir_composite_discard(weir_composite *composite)
{
    size_t count = search_component(composite, composite->read);

    release_components(composite, count);
    close_gap(composite, 0, count);
}

/* ---- bytes ---- */

static void copy_bytes(weir_composite *composite, size_t index, uint8_t *to, size_t length)
{
    for (size_t i = find_component(composite, index); length > 0; i++) {
        weir_span span = span_from(composite, i, index);
        size_t part = smaller(span.length, length);

        memcpy(to, span.data, part);
        to += part;
        index += part;
        length -= part;
    }
}

/* The bytes at `index`, if all are in the component found last; otherwise NULL. */
static inline const uint8_t *find_cached(const weir_composite *composite, size_t index,
                                         size_t length)
{
    size_t i = atomic_load_explicit(&composite->last_found, memory_order_relaxed);
    const struct component *component = &composite->components[i];
    size_t begin;

    if (i >= composite->count)
        return NULL;
    begin = start_of(composite, i);
    if (index < begin || index > component->end || length > component->end - index)
        return NULL;
    return component->buf->data + component->start + (index - begin);
}

static int get_slow(weir_composite *composite, size_t index, void *ret_bytes, size_t length)
{
    if (!has(composite, index, length))
        return WEIR_EBOUNDS;
    copy_bytes(composite, index, ret_bytes, length);
    return 0;
}

/* Shared by the public functions: calls of exported functions are not inlined. */
static inline int get(weir_composite *composite, size_t index, void *ret_bytes, size_t length)
{
    const uint8_t *bytes = find_cached(composite, index, length);

    if (bytes == NULL || length == 0) /* ret_bytes may be NULL if length is 0 */
        return get_slow(composite, index, ret_bytes, length);
    memcpy(ret_bytes, bytes, length);
    return 0;
}

int weir_composite_get_bytes(weir_composite *composite, size_t index, void *ret_bytes,
                             size_t length)
{
    return get(composite, index, ret_bytes, length);
}

int weir_composite_peek_bytes(weir_composite *composite, void *ret_bytes, size_t length)
{
    return get(composite, composite->read, ret_bytes, length);
}

int weir_composite_read_bytes(weir_composite *composite, void *ret_bytes, size_t length)
{
    int err = get(composite, composite->read, ret_bytes, length);

    if (err == 0)
        composite->read += length;
    return err;
}

/* ---- parts ---- */

/* A view of those of the `length` bytes at `index` that are in component `i`. */
static int slice_component(weir_composite *composite, size_t i, size_t index, size_t length,
                           weir_buf **ret_view)
{
    const struct component *component = &composite->components[i];
    size_t offset = component->start + (index - start_of(composite, i));

    return weir_buf_slice(component->buf, offset, smaller(length, component->end - index),
                          ret_view);
}

/* Adds views of the `length` bytes at `index`, beginning in component `i`. */
static int add_slices(weir_composite *slice, weir_composite *composite, size_t i, size_t index,
                      size_t length)
{
    for (size_t end = index + length; index < end; i++) {
        weir_buf *view;
        int err;

        if (composite->components[i].end == index)
            continue; /* empty */
        err = slice_component(composite, i, index, end - index, &view);
        if (err < 0)
            return err;
        index += weir_buf_readable(view);
        err = weir_composite_add(slice, weir_buf_msg(view));
        if (err < 0)
            return err;
    }
    return 0;
}

static int slice_components(weir_composite *composite, size_t i, size_t index, size_t length,
                            weir_composite **ret_slice)
{
    weir_composite *slice;
    int err = weir_composite_create(SIZE_MAX, &slice); /* do not consolidate views */

    if (err < 0)
        return err;
    err = add_slices(slice, composite, i, index, length);
    if (err < 0) {
        weir_composite_release(slice);
        return err;
    }
    slice->max_components = composite->max_components;
    *ret_slice = slice;
    return 0;
}

int weir_composite_slice(weir_composite *composite, size_t index, size_t length,
                         weir_msg **ret_slice)
{
    weir_composite *several;
    weir_buf *one;
    size_t i;
    int err;

    if (!has(composite, index, length))
        return WEIR_EBOUNDS;
    i = find_component(composite, index);
    if (length > 0 && length > composite->components[i].end - index) {
        err = slice_components(composite, i, index, length, &several);
        if (err == 0)
            *ret_slice = weir_composite_msg(several);
        return err;
    }
    err = length > 0 ? slice_component(composite, i, index, length, &one)
                     : weir_buf_wrap_static(NULL, 0, &one);
    if (err == 0)
        *ret_slice = weir_buf_msg(one);
    return err;
}

int weir_composite_read_slice(weir_composite *composite, size_t length, weir_msg **ret_slice)
{
    int err = weir_composite_slice(composite, composite->read, length, ret_slice);

    if (err == 0)
        composite->read += length;
    return err;
}

int weir_composite_copy(weir_composite *composite, size_t index, size_t length, weir_buf **ret_copy)
{
    weir_buf *copy;
    int err;

    if (!has(composite, index, length))
        return WEIR_EBOUNDS;
    err = weir_buf_create(length, 0, &copy);
    if (err < 0)
        return err;
    copy_bytes(composite, index, weir_buf_space(copy), length);
    copy->write += (uint32_t)length;
    *ret_copy = copy;
    return 0;
}

size_t weir_composite_iovecs(weir_composite *composite, struct iovec *ret_vectors, size_t count)
{
    size_t index = composite->read;
    size_t filled = 0;

    count = smaller(count, IOV_MAX);
    for (size_t i = find_component(composite, index); i < composite->count && filled < count; i++) {
        weir_span span = span_from(composite, i, index);

        index += span.length;
        if (span.length > 0) /* not const in POSIX; writev only reads */
            ret_vectors[filled++] = (struct iovec){(uint8_t *)(uintptr_t)span.data, span.length};
    }
    return filled;
}

/* ---- finding ---- */

typedef ssize_t find_fn(weir_span span, const void *what);

static ssize_t find_in_each(weir_composite *composite, size_t from, find_fn *find, const void *what)
{
    if (from > weir_composite_length(composite))
        return WEIR_EBOUNDS;
    for (size_t i = find_component(composite, from); i < composite->count; i++) {
        weir_span span = span_from(composite, i, from);
        ssize_t offset = find(span, what);

        if (offset >= 0)
            return (ssize_t)from + offset;
        from += span.length;
    }
    return -ENOENT;
}

static ssize_t find_byte(weir_span span, const void *byte)
{
    return weir_span_find(span, *(const uint8_t *)byte);
}

ssize_t weir_composite_find(weir_composite *composite, size_t from, uint8_t byte)
{
    return find_in_each(composite, from, find_byte, &byte);
}

static ssize_t find_any(weir_span span, const void *set)
{
    return weir_span_find_any(span, set);
}

ssize_t weir_composite_find_any(weir_composite *composite, size_t from, const weir_byte_set *set)
{
    return find_in_each(composite, from, find_any, set);
}

/* True if the sequence is at `index`, which is in component `i`. */
static bool starts_at(const weir_composite *composite, size_t i, size_t index, weir_span sequence)
{
    if (!has(composite, index, sequence.length))
        return false;
    for (; sequence.length > 0; i++) {
        weir_span span = span_from(composite, i, index);
        size_t part = smaller(span.length, sequence.length);

        if (memcmp(span.data, sequence.data, part) != 0)
            return false;
        index += part;
        sequence.data += part;
        sequence.length -= part;
    }
    return true;
}

/* Finds the sequence in component `i` from `index` on: inside, or near its end and continued in the
 * following components. */
static ssize_t find_start(const weir_composite *composite, size_t i, size_t index,
                          weir_span sequence)
{
    weir_span span = span_from(composite, i, index);
    ssize_t offset = weir_span_find_sequence(span, sequence);
    size_t at = span.length >= sequence.length ? span.length - sequence.length + 1 : 0;

    if (offset >= 0)
        return (ssize_t)index + offset;
    for (; at < span.length; at++)
        if (span.data[at] == sequence.data[0] && starts_at(composite, i, index + at, sequence))
            return (ssize_t)(index + at);
    return -ENOENT;
}

ssize_t weir_composite_find_sequence(weir_composite *composite, size_t from, weir_span sequence)
{
    if (from > weir_composite_length(composite))
        return WEIR_EBOUNDS;
    if (sequence.length == 0)
        return (ssize_t)from;
    for (size_t i = find_component(composite, from); i < composite->count; i++) {
        ssize_t last_found = find_start(composite, i, from, sequence);

        if (last_found >= 0)
            return last_found;
        from = composite->components[i].end;
    }
    return -ENOENT;
}

/* ---- as a message ---- */

static size_t size(const weir_msg *msg)
{
    return weir_composite_readable((const weir_composite *)(const void *)msg);
}

static void touch(weir_msg *msg, const char *where)
{
    const weir_composite *composite = weir_composite_of(msg);

    weir__leak_msg_touch(msg, where);
    for (size_t i = 0; i < composite->count; i++)
        weir_msg_touch(weir_buf_msg(composite->components[i].buf), where);
}

/* A single component is shared as a buffer: made read-only. */
static int share(weir_msg *msg, weir_msg **ret_share)
{
    weir_composite *composite = weir_composite_of(msg);
    int err = weir_composite_slice(composite, composite->read, weir_composite_readable(composite),
                                   ret_share);

    if (err == 0 && weir_buf_of(*ret_share) != NULL)
        (*ret_share)->flags |= WEIR_BUF_FLAG_READ_ONLY;
    return err;
}

const weir_msg_type weir_composite_type = {
    .name = "composite",
    .destroy = destroy,
    .size = size,
    .touch = touch,
    .share = share,
};
