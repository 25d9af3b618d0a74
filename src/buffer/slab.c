/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps slabs within the limit.
 */
#include "buffer/slab.h"

#include "os/pages.h"

#define SLAB_SIZE_MIN ((size_t)64 << 10)
#define SLAB_SIZE_MAX ((size_t)1 << 20)
#define BLOCKS_WANTED 16 /* per slab, if the size allows */

weir__mapped weir__mapped_now;

static void add(_Atomic int64_t *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void raise_to(_Atomic int64_t *peak, int64_t bytes)
{
    int64_t before = atomic_load_explicit(peak, memory_order_relaxed);

    while (before < bytes && !atomic_compare_exchange_weak_explicit(
                                 peak, &before, bytes, memory_order_relaxed, memory_order_relaxed))
        continue;
}

static void count_in_class(unsigned size_class, size_t bytes)
{
    weir__mapped_class *mapped = &weir__mapped_now.classes[size_class];
    int64_t before =
        atomic_fetch_add_explicit(&mapped->bytes, (int64_t)bytes, memory_order_relaxed);

    raise_to(&mapped->peak_bytes, before + (int64_t)bytes);
}

/* Compare-and-exchange, so that the limit is never exceeded, not even temporarily. */
static bool reserve(size_t bytes, int64_t *ret_mapped)
{
    int64_t limit = atomic_load_explicit(&weir__mapped_now.limit_bytes, memory_order_relaxed);
    int64_t before = atomic_load_explicit(&weir__mapped_now.bytes, memory_order_relaxed);
    int64_t after;

    do {
        after = before + (int64_t)bytes;
        if (limit > 0 && after > limit)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&weir__mapped_now.bytes, &before, after,
                                                    memory_order_relaxed, memory_order_relaxed));
    *ret_mapped = after;
    return true;
}

static weir__slab *map(size_t bytes, unsigned size_class)
{
    weir__slab *slab;
    int64_t mapped;

    if (bytes == 0 || !reserve(bytes, &mapped))
        return NULL;
    slab = weir__pages_map(bytes);
    if (slab == NULL) {
        add(&weir__mapped_now.bytes, -(int64_t)bytes);
        return NULL;
    }
    raise_to(&weir__mapped_now.peak_bytes, mapped);
    count_in_class(size_class, bytes);
    slab->bytes = bytes;
    slab->size_class = size_class;
    weir__poison_chunk_add(slab + 1, bytes - sizeof(*slab));
    return slab;
}

static size_t stride_of(unsigned size_class)
{
    return weir__class_stride(size_class) + WEIR__REDZONE;
}

/* Slabs of small blocks have 64 KiB; of larger ones 16 blocks, up to 1 MiB; of the largest one
 * block. */
static uint32_t room_of(unsigned size_class)
{
    size_t stride = stride_of(size_class), bytes = sizeof(weir__slab) + BLOCKS_WANTED * stride;

    if (bytes < SLAB_SIZE_MIN)
        bytes = SLAB_SIZE_MIN;
    if (bytes > SLAB_SIZE_MAX)
        bytes = SLAB_SIZE_MAX;
    return bytes < sizeof(weir__slab) + stride ? 1
                                               : (uint32_t)((bytes - sizeof(weir__slab)) / stride);
}

size_t weir__slab_bytes(unsigned size_class)
{
    return weir__pages_round(sizeof(weir__slab) + room_of(size_class) * stride_of(size_class));
}

weir__slab *weir__slab_map(struct weir__heap *heap, unsigned size_class)
{
    weir__slab *slab = map(weir__slab_bytes(size_class), size_class);

    if (slab == NULL)
        return NULL;
    slab->heap = heap;
    slab->stride = (uint32_t)stride_of(size_class);
    slab->room = room_of(size_class);
    return slab;
}

static size_t huge_bytes(size_t payload)
{
    return weir__pages_round(sizeof(weir__slab) + sizeof(weir_buf) + payload);
}

size_t weir__slab_huge_size(size_t payload)
{
    return huge_bytes(payload) - sizeof(weir__slab) - sizeof(weir_buf);
}

weir__slab *weir__slab_map_huge(size_t payload)
{
    weir__slab *slab = payload <= WEIR_BUF_MAX ? map(huge_bytes(payload), WEIR__CLASS_HUGE) : NULL;

    if (slab == NULL)
        return NULL;
    slab->room = slab->carved = 1;
    add(&weir__mapped_now.huge_count, 1);
    return slab;
}

void weir__slab_unmap(weir__slab *slab)
{
    size_t bytes = slab->bytes;

    if (slab->heap == NULL)
        add(&weir__mapped_now.huge_count, -1);
    add(&weir__mapped_now.classes[slab->size_class].bytes, -(int64_t)bytes);
    weir__poison_chunk_remove(slab, bytes);
    weir__pages_unmap(slab, bytes);
    add(&weir__mapped_now.bytes, -(int64_t)bytes);
}
