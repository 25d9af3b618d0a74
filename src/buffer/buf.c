/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: lifecycle, views, and growth.
 *
 *      [header|payload]             new: a block of the pool, the payload behind its header
 *
 *      [header|  home ]             grown: the header stays, because users point to it;
 *         `-block-> [header|payload]       the bytes have moved to a second block
 *                      `-block-> ...       older blocks, which views still use
 *
 *      [header] -block-> root       view: a block without a payload, and a reference to its root
 *
 * Invariants: - read <= write <= capacity <= max. - capacity is all that the block has room for, up
 * to max; so a buffer never grows within a block. - the root of a view is not a view; only the
 * memory of a root moves. - in the header of a second block only the members of the pool and `max`
 * are used: `max` is the capacity of the home. - a pooled buffer whose header differs from that of
 * a new block has WEIR__BUF_CHANGED: only such a buffer, and the other kinds, are reset when they
 * are destroyed (buffer/pool.h).
 */
#include "buffer/buf.h"

#include <string.h>

#include "base/no_stack_protector.h"
#include "buffer/leak.h"
#include "buffer/pool.h"

#define NOINLINE __attribute__((noinline))

/* After the last call of a function: leak reports show its frame. Slow paths are functions of their
 * own, so that the public functions save no registers. */
#define KEEP_FRAME() __asm__ volatile("")

#define GROWTH_MIN ((size_t)64)
#define GROWTH_STEP ((size_t)4 << 20)

_Static_assert(sizeof(weir_buf) == 64, "the payload behind a header begins on a cache line");

/* Stored behind the header of a wrapping buffer. */
struct wrapped {
    weir_buf_free_fn *free_data;
    void *data;
    void *user_data;
};

static struct wrapped *wrapped_of(weir_buf *buf)
{
    return (struct wrapped *)(void *)weir__buf_payload(buf);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- lifecycle ---- */

static int create_limited(size_t capacity, size_t max, weir_buf **ret_buf)
{
    weir_buf *buf;

    if (max == 0)
        max = WEIR_BUF_MAX;
    if (capacity > max || max > WEIR_BUF_MAX)
        return -EINVAL;
    buf = weir__pool_alloc(capacity);
    if (buf == NULL)
        return -ENOMEM;
    buf->capacity = (uint32_t)smaller(buf->capacity, max); /* a huge block may exceed the maximum */
    if (max < WEIR_BUF_MAX) {
        buf->msg.flags |= WEIR__BUF_CHANGED;
        buf->max = (uint32_t)max;
        buf->block = NULL;
    }
    *ret_buf = buf;
    weir__leak_created(buf);
    return 0;
}

/* Creates a candidate for leak detection from `buf`; or, if `buf` is NULL, a buffer with a limit or
 * one for which the thread has no free block. */
static NOINLINE int create_slow(size_t capacity, size_t max, weir_buf **ret_buf, weir_buf *buf)
{
    if (buf == NULL)
        return create_limited(capacity, max, ret_buf);
    *ret_buf = buf;
    weir__leak_sample(&buf->msg);
    return 0;
}

int weir_buf_create(size_t capacity, size_t max, weir_buf **ret_buf)
{
    weir_buf *buf = max == 0 ? weir__pool_pop(capacity) : NULL;

    if (buf == NULL || weir__leak_is_candidate()) {
        int err = create_slow(capacity, max, ret_buf, buf);

        KEEP_FRAME();
        return err;
    }
    *ret_buf = buf;
    return 0;
}

WEIR__NO_STACK_PROTECTOR int weir_buf_create_from(const void *bytes, size_t length,
                                                  weir_buf **ret_buf)
{
    weir_buf *buf;
    int err = weir_buf_create(length, 0, &buf);

    if (err < 0)
        return err;
    if (length > 0)
        memcpy(buf->data, bytes, length);
    buf->write = (uint32_t)length;
    *ret_buf = buf;
    return 0;
}

/* Makes a new buffer one of `length` bytes: all readable, not growable. */
static inline void set_fixed(weir_buf *buf, uint32_t flags, size_t length)
{
    buf->msg.flags |= flags;
    buf->write = buf->capacity = buf->max = (uint32_t)length;
}

int weir_buf_wrap(void *data, size_t length, weir_buf_free_fn *free_data, void *user_data,
                  weir_buf **ret_buf)
{
    weir_buf *buf = NULL;
    int err = length <= WEIR_BUF_MAX && (data != NULL || length == 0) ? 0 : -EINVAL;

    if (err == 0) {
        buf = weir__pool_alloc(sizeof(struct wrapped));
        err = buf != NULL ? 0 : -ENOMEM;
    }
    if (err < 0) {
        if (free_data != NULL)
            free_data(data, user_data);
        return err;
    }
    *wrapped_of(buf) = (struct wrapped){free_data, data, user_data};
    set_fixed(buf, WEIR__BUF_WRAPPED, length);
    if (data != NULL)
        buf->data = data;
    *ret_buf = buf;
    weir__leak_created(buf);
    return 0;
}

int weir_buf_wrap_static(const void *data, size_t length, weir_buf **ret_buf)
{
    weir_buf *buf;

    if (length > WEIR_BUF_MAX || (data == NULL && length > 0))
        return -EINVAL;
    buf = weir__pool_alloc(0);
    if (buf == NULL)
        return -ENOMEM;
    set_fixed(buf, WEIR__BUF_STATIC | WEIR_BUF_FLAG_READ_ONLY, length);
    if (data != NULL)
        buf->data = (uint8_t *)(uintptr_t)data; /* const is cast away: it is read-only */
    *ret_buf = buf;
    weir__leak_created(buf);
    return 0;
}

/* The second block of a pooled buffer; NULL if it has not grown. */
static weir_buf *second_block(const weir_buf *buf)
{
    return (buf->msg.flags & WEIR__BUF_CHANGED) != 0 ? buf->block : NULL;
}

/* Frees a second block and the older ones behind it. */
static void free_blocks(weir_buf *block)
{
    weir_buf *older;

    for (; block != NULL; block = older) {
        older = block->block;
        block->max = (uint32_t)WEIR_BUF_MAX; /* as in a new block */
        weir__pool_free(block);
    }
}

static void destroy_view(weir_buf *view)
{
    weir_buf *root = view->block;

    weir__pool_reset(view, 0);
    weir__pool_free(view);
    weir_msg_release(&root->msg);
}

/* Destroys buffers of any kind, also watched ones. */
static NOINLINE void destroy_uncommon(weir_buf *buf)
{
    const struct wrapped *wrapped = wrapped_of(buf);

    weir__leak_destroyed(buf);
    switch (weir__buf_kind(buf)) {
    case WEIR__BUF_VIEW:
        destroy_view(buf);
        return;
    case WEIR__BUF_POOLED:
        free_blocks(second_block(buf));
        break;
    case WEIR__BUF_WRAPPED:
        if (wrapped->free_data != NULL)
            wrapped->free_data(wrapped->data, wrapped->user_data);
        break;
    case WEIR__BUF_STATIC:
        break;
    }
    weir__pool_reset(buf, weir__pool_class_of(buf));
    weir__pool_free(buf);
}

static void destroy(weir_msg *msg)
{
    weir_buf *buf = WEIR_CONTAINER_OF(msg, weir_buf, msg);

    if ((msg->flags & (WEIR__BUF_KIND_MASK | WEIR__LEAK_WATCHED | WEIR__BUF_CHANGED)) == 0)
        weir__pool_free(buf);
    else if ((msg->flags & (WEIR__BUF_KIND_MASK | WEIR__LEAK_WATCHED)) == WEIR__BUF_VIEW)
        destroy_view(buf);
    else
        destroy_uncommon(buf);
}

/* ---- views ---- */

/* Makes a block without a payload a view. */
static inline void init_view(weir_buf *view, weir_buf *buf, size_t offset, size_t length,
                             uint32_t flags)
{
    weir_buf *root = weir__buf_kind(buf) == WEIR__BUF_VIEW ? buf->block : buf;

    flags |= WEIR__BUF_VIEW | (buf->msg.flags & WEIR_BUF_FLAG_READ_ONLY);
    set_fixed(view, flags, length);
    view->data = buf->data + offset;
    view->block = weir_buf_retain(root);
}

/* Creates a candidate for leak detection from `view`; or, if `view` is NULL, one for which the
 * thread has no free block. */
static NOINLINE int create_view_slow(weir_buf *buf, size_t offset, size_t length, uint32_t flags,
                                     weir_buf **ret_view, weir_buf *view)
{
    bool is_candidate = view != NULL;

    if (view == NULL)
        view = weir__pool_alloc_slow(0);
    if (view == NULL)
        return -ENOMEM;
    init_view(view, buf, offset, length, flags);
    *ret_view = view;
    if (is_candidate || weir__leak_is_candidate())
        weir__leak_sample(&view->msg);
    return 0;
}

static inline int create_view(weir_buf *buf, size_t offset, size_t length, uint32_t flags,
                              weir_buf **ret_view)
{
    weir_buf *view = weir__pool_pop_header();

    if (view == NULL || weir__leak_is_candidate()) {
        int err = create_view_slow(buf, offset, length, flags, ret_view, view);

        KEEP_FRAME();
        return err;
    }
    init_view(view, buf, offset, length, flags);
    *ret_view = view;
    return 0;
}

int weir_buf_slice(weir_buf *buf, size_t offset, size_t length, weir_buf **ret_slice)
{
    if (!weir_buf_in_bounds(buf, offset, length))
        return WEIR_EBOUNDS;
    return create_view(buf, offset, length, 0, ret_slice);
}

int weir_buf_read_slice(weir_buf *buf, size_t length, weir_buf **ret_slice)
{
    int err = weir_buf_slice(buf, buf->read, length, ret_slice);

    if (err == 0)
        buf->read += (uint32_t)length;
    return err;
}

static int create_duplicate(weir_buf *buf, uint32_t flags, weir_buf **ret_view)
{
    weir_buf *view;
    int err = create_view(buf, 0, buf->capacity, flags, &view);

    if (err < 0)
        return err;
    view->read = buf->read;
    view->write = buf->write;
    *ret_view = view;
    return 0;
}

int weir_buf_duplicate(weir_buf *buf, weir_buf **ret_duplicate)
{
    return create_duplicate(buf, 0, ret_duplicate);
}

int weir_buf_read_only(weir_buf *buf, weir_buf **ret_view)
{
    return create_duplicate(buf, WEIR_BUF_FLAG_READ_ONLY, ret_view);
}

int weir_buf_copy(const weir_buf *buf, size_t offset, size_t length, weir_buf **ret_copy)
{
    if (!weir_buf_in_bounds(buf, offset, length))
        return WEIR_EBOUNDS;
    return weir_buf_create_from(buf->data + offset, length, ret_copy);
}

/* ---- memory ---- */

/* True if its memory is from the pool; views and wrapped memory cannot move. */
static bool is_movable(const weir_buf *buf)
{
    return weir__buf_kind(buf) == WEIR__BUF_POOLED;
}

/* Moves the bytes from `first` on to `data`. */
static void move_bytes(weir_buf *buf, size_t first, uint8_t *data, size_t capacity)
{
    if (data != buf->data + first)
        memmove(data, buf->data + first, buf->write - first);
    buf->data = data;
    buf->read -= (uint32_t)first;
    buf->write -= (uint32_t)first;
    buf->capacity = (uint32_t)smaller(capacity, buf->max);
}

/* Moves to another block. The old one is kept behind it while views may use it. */
static int move_to_block(weir_buf *buf, size_t first, size_t capacity)
{
    weir_buf *old = second_block(buf);
    weir_buf *block = weir__pool_alloc(capacity);

    if (block == NULL)
        return -ENOMEM;
    block->max = old != NULL ? old->max : buf->capacity;
    block->block = NULL;
    move_bytes(buf, first, block->data, block->capacity);
    buf->block = block;
    buf->msg.flags |= WEIR__BUF_CHANGED;
    if (weir__buf_is_shared(buf))
        block->block = old;
    else
        free_blocks(old);
    return 0;
}

/* Moves back to the memory behind the header. The buffer is not shared. */
static void move_home(weir_buf *buf, size_t first)
{
    weir_buf *old = buf->block;

    move_bytes(buf, first, weir__buf_payload(buf), old->max);
    buf->block = NULL;
    free_blocks(old);
}

/* Shrinks the memory to `capacity` bytes if possible. The buffer is not shared. The home cannot
 * shrink, because it contains the header. */
static int shrink(weir_buf *buf, size_t first, size_t capacity)
{
    const weir_buf *block = is_movable(buf) ? second_block(buf) : NULL;

    if (block != NULL && capacity <= block->max)
        move_home(buf, first);
    else if (block != NULL && weir__pool_capacity_for(capacity) < buf->capacity)
        return move_to_block(buf, first, capacity);
    else
        move_bytes(buf, first, buf->data, buf->capacity);
    return 0;
}

/* The capacity to grow to for `needed` bytes. */
static size_t growth_for(size_t needed, size_t max)
{
    size_t capacity = GROWTH_MIN;

    if (needed > GROWTH_STEP)
        capacity = (needed + GROWTH_STEP - 1) / GROWTH_STEP * GROWTH_STEP;
    while (capacity < needed)
        capacity *= 2;
    return smaller(capacity, max);
}

int weir_buf_reserve(weir_buf *buf, size_t length)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (length <= weir_buf_writable(buf))
        return 0;
    if (length > (size_t)buf->max - buf->write)
        return WEIR_EBOUNDS;
    return move_to_block(buf, 0, growth_for(buf->write + length, buf->max));
}

int weir_buf_set_capacity(weir_buf *buf, size_t capacity)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (capacity < buf->write || capacity > buf->max)
        return WEIR_EBOUNDS;
    if (capacity > buf->capacity)
        return move_to_block(buf, 0, capacity);
    /* If it is shared the old memory would have to be kept: nothing is gained. */
    return weir__buf_is_shared(buf) ? 0 : shrink(buf, 0, capacity);
}

static int check_exclusive(const weir_buf *buf)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    return weir__buf_is_shared(buf) ? -EBUSY : 0;
}

int weir_buf_discard(weir_buf *buf)
{
    int err = check_exclusive(buf);

    if (err == 0)
        move_bytes(buf, buf->read, buf->data, buf->capacity);
    return err;
}

int weir_buf_compact(weir_buf *buf)
{
    int err = check_exclusive(buf);

    return err == 0 ? shrink(buf, buf->read, weir_buf_readable(buf)) : err;
}

/* ---- as a message ---- */

static size_t size(const weir_msg *msg)
{
    return weir_buf_readable((const weir_buf *)(const void *)msg);
}

static void touch(weir_msg *msg, const char *where)
{
    weir__leak_touch(WEIR_CONTAINER_OF(msg, weir_buf, msg), where);
}

static int share(weir_msg *msg, weir_msg **ret_share)
{
    weir_buf *view;
    int err = weir_buf_read_only(weir_buf_of(msg), &view);

    if (err == 0)
        *ret_share = weir_buf_msg(view);
    return err;
}

const weir_msg_type weir_buf_type = {
    .name = "buf",
    .destroy = destroy,
    .size = size,
    .touch = touch,
    .share = share,
};
