/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of the buffer suite: what one would write by hand for these cases and no other.
 *
 * Memory: a free list for each power of two. What another thread has done with comes back through a
 * ring, so that it need not write to it.
 *
 * Buffers: a struct with a count, a list of free ones, and arrays.
 */
struct item {
    struct item *next;
};

typedef struct item item;
typedef struct bytes bytes;
#include "buffer/competitor.h"
#include "buffer/ring.h"

#include <stdlib.h>

/* ---- taking and giving ---- */

enum { LISTS = 32 };

static item *lists[LISTS]; /* of the thread that takes */

/* From the thread that gives to the one that takes. */
static struct ring home;

static inline item **list_of(size_t size)
{
    return &lists[32 - __builtin_clz((unsigned)size - 1)];
}

static item *take_slowly(size_t size)
{
    item *it = ring_try_get(&home);

    if (it == NULL)
        it = malloc((size_t)1 << (list_of(size) - lists));
    require(it != NULL, "malloc");
    return it;
}

static inline item *item_take(size_t size)
{
    item **list = list_of(size);
    item *it = *list;

    if (it == NULL)
        return take_slowly(size);
    *list = it->next;
    return it;
}

static inline uint8_t *item_bytes(item *it)
{
    return (uint8_t *)it;
}

static inline void item_give(item *it, size_t size)
{
    item **list = list_of(size);

    it->next = *list;
    *list = it;
}

static inline void item_give_far(item *it, size_t size)
{
    (void)size;
    if (!ring_try_put(&home, it))
        free(it);
}

static void items_trim(void)
{
    item *it;

    for (int i = 0; i < LISTS; i++)
        while ((it = lists[i]) != NULL) {
            lists[i] = it->next;
            free(it);
        }
    while ((it = ring_try_get(&home)) != NULL)
        free(it);
}

#include "buffer/cases.h"

/* ---- buffers ---- */

#include "buffer/bytes_cases.h"

#include <endian.h>
#include <string.h>

struct bytes {
    _Atomic uint32_t refs;
    uint32_t length;
    uint8_t *data;
    bytes *root; /* of a view */
};

struct joined {
    size_t count;
    bytes *parts[JOINED];
};

static bytes *bytes_create(void)
{
    bytes *self = (bytes *)(void *)item_take(sizeof(*self));

    atomic_init(&self->refs, 1);
    self->length = BYTES_SIZE;
    self->data = (uint8_t *)item_take(BYTES_SIZE);
    self->root = NULL;
    memset(self->data, 0, BYTES_SIZE);
    return self;
}

static inline bytes *bytes_retain(bytes *self)
{
    atomic_fetch_add_explicit(&self->refs, 1, memory_order_relaxed);
    return self;
}

/* A count of 1 is the caller's own: nobody else can change it. */
static inline bool bytes_drop(bytes *self)
{
    return atomic_load_explicit(&self->refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&self->refs, 1, memory_order_acq_rel) == 1;
}

static void root_release(bytes *root)
{
    if (!bytes_drop(root))
        return;
    item_give((item *)(void *)root->data, BYTES_SIZE);
    item_give((item *)(void *)root, sizeof(*root));
}

static inline void bytes_release(bytes *self)
{
    bytes *root = self->root;

    if (root == NULL) {
        root_release(self);
    } else if (bytes_drop(self)) {
        item_give((item *)(void *)self, sizeof(*self));
        root_release(root);
    }
}

static inline bytes *bytes_slice(bytes *self, size_t offset, size_t length)
{
    bytes *slice = (bytes *)(void *)item_take(sizeof(*slice));

    atomic_init(&slice->refs, 1);
    slice->length = (uint32_t)length;
    slice->data = self->data + offset;
    slice->root = bytes_retain(self);
    return slice;
}

static inline size_t joined_gather(const struct joined *joined, struct iovec *vectors)
{
    for (size_t i = 0; i < joined->count; i++) {
        vectors[i].iov_base = joined->parts[i]->data;
        vectors[i].iov_len = joined->parts[i]->length;
    }
    return joined->count;
}

static inline size_t bytes_join(bytes *const *parts, struct iovec *vectors)
{
    struct joined *joined = (struct joined *)(void *)item_take(sizeof(*joined));
    size_t count;

    joined->count = 0;
    for (int i = 0; i < JOINED; i++)
        joined->parts[joined->count++] = bytes_retain(parts[i]);
    count = joined_gather(joined, vectors);
    made((uintptr_t)vectors);
    for (size_t i = 0; i < count; i++)
        root_release(joined->parts[i]);
    item_give((item *)(void *)joined, sizeof(*joined));
    return count;
}

static inline void bytes_read_numbers(bytes *self)
{
    const uint8_t *at = self->data, *end = at + self->length;
    uint32_t number;

    for (; end - at >= (ptrdiff_t)sizeof(number); at += sizeof(number)) {
        memcpy(&number, at, sizeof(number));
        made(be32toh(number));
    }
}

static inline void bytes_write_numbers(bytes *self)
{
    uint8_t *at = self->data, *end = at + self->length;

    for (uint32_t i = 0; end - at >= (ptrdiff_t)sizeof(i); at += sizeof(i), i++) {
        uint32_t number = htobe32(i);

        memcpy(at, &number, sizeof(number));
        made(0);
    }
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        {"now", now_case},   {"live", live_case},   {"far", far_case},
        {"ring", ring_case}, {"slice", slice_case}, {"retain", retain_case},
        {"join", join_case}, {"read", read_case},   {"write", write_case},
        {NULL, NULL},
    };

    return bench_main(argc, argv, cases);
}
