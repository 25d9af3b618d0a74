/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps: returned blocks, carving, and trimming.
 *
 * The remote stack is pushed to by compare-and-exchange and taken as a whole by exchange, so that
 * the ABA problem does not arise. Push has release and take has acquire order: what the releasing
 * thread did to a block, and its links, happens before what the thread of the heap does with it.
 * The take reads from the last push; each earlier push was continued by a read-modify-write, so all
 * are in its release sequence.
 *
 * A thread that pushes holds blocks of the heap until it has pushed them, and a heap is freed only
 * when all of its blocks were returned. So the heap exists until the push, and is not accessed
 * after it.
 */
#include "buffer/heap.h"

void weir__heap_init(weir__heap *heap)
{
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        heap->bins[i].size = (uint32_t)weir__class_size(i);
    for (size_t size = 0; size <= WEIR__SMALL_SIZE_MAX; size += WEIR__LINE)
        heap->small_bins[size / WEIR__LINE] =
            (uint16_t)(weir__class_of(size) * sizeof(heap->bins[0]));
}

bool weir__heap_is_empty(const weir__heap *heap)
{
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        if (heap->bins[i].slabs != NULL)
            return false;
    return true;
}

/* ---- returned blocks ---- */

void weir__heap_return(weir__heap *heap, weir_buf *first, weir_buf *last, uint32_t count)
{
    weir_buf *top = atomic_load_explicit(&heap->remote.stack, memory_order_relaxed);

    /* Added before the push and subtracted after the take, so that it is never negative. */
    atomic_fetch_add_explicit(&heap->remote.count, count, memory_order_relaxed);
    do {
        last->block = top;
    } while (!atomic_compare_exchange_weak_explicit(&heap->remote.stack, &top, first,
                                                    memory_order_release, memory_order_relaxed));
}

static void collect(weir__heap *heap)
{
    weir_buf *block, *next;
    uint32_t count = 0;

    if (atomic_load_explicit(&heap->remote.stack, memory_order_relaxed) == NULL)
        return;
    block = atomic_exchange_explicit(&heap->remote.stack, NULL, memory_order_acquire);
    for (; block != NULL; block = next, count++) {
        weir__bin *bin = &heap->bins[weir__slab_of(block)->size_class];

        next = block->block;
        __builtin_prefetch(next, 1);
        weir__bin_push(bin, block);
        weir__owned_counter_add(&bin->received, 1);
    }
    atomic_fetch_sub_explicit(&heap->remote.count, count, memory_order_relaxed);
}

/* ---- carving ---- */

static weir__slab *add_slab(weir__heap *heap, unsigned size_class)
{
    weir__bin *bin = &heap->bins[size_class];
    weir__slab *slab = weir__slab_map(heap, size_class);

    if (slab == NULL)
        return NULL;
    slab->next = bin->slabs;
    bin->slabs = slab;
    weir__owned_counter_add(&bin->slab_count, 1);
    heap->slab_bytes += slab->bytes;
    /* Written by the thread of the heap only. Relaxed, as a counter. */
    if (heap->slab_bytes > atomic_load_explicit(&heap->peak_bytes, memory_order_relaxed))
        atomic_store_explicit(&heap->peak_bytes, heap->slab_bytes, memory_order_relaxed);
    heap->decay_at_ns = 0; /* the new slab may soon be idle: decay without a long wait */
    return slab;
}

static weir_buf *carve(weir__bin *bin, weir__slab *slab)
{
    weir_buf *block = weir__slab_block(slab, slab->carved++);

    weir__owned_counter_add(&bin->carved, 1);
    weir__block_unpoison_links(block);
    block->slab = slab;
    return block;
}

weir_buf *weir__heap_refill(weir__heap *heap, unsigned size_class)
{
    weir__bin *bin = &heap->bins[size_class];
    weir__slab *slab;
    weir_buf *block;

    bin->was_empty = true;
    collect(heap);
    block = weir__bin_pop(bin);
    if (block != NULL)
        return block;
    slab = bin->slabs;
    if (slab == NULL || slab->carved == slab->room)
        slab = add_slab(heap, size_class);
    return slab != NULL ? carve(bin, slab) : NULL;
}

/* ---- trimming ---- */

/* No slab is idle if the bin has fewer free blocks than the slab that is being carved, which has
 * the fewest blocks. */
static bool may_have_idle_slabs(const weir__bin *bin)
{
    return bin->slabs != NULL && weir__owned_counter_read(&bin->cached) >= bin->slabs->carved;
}

/* Counts the free blocks of each slab. Returns the number of slabs without allocated blocks. */
static uint32_t count_idle_slabs(weir__bin *bin)
{
    uint32_t count = 0;

    if (!may_have_idle_slabs(bin))
        return 0;
    for (weir__slab *slab = bin->slabs; slab != NULL; slab = slab->next)
        slab->idle = 0;
    for (weir_buf *block = bin->free; block != NULL; block = block->block)
        weir__slab_of(block)->idle++;
    for (weir__slab *slab = bin->slabs; slab != NULL; slab = slab->next)
        count += slab->idle == slab->carved;
    return count;
}

/* Unmaps `count` slabs whose blocks are all free, as count_idle_slabs has found them. */
static size_t unmap_idle_slabs(weir__bin *bin, uint32_t count)
{
    weir__slab **slab_link = &bin->slabs;
    weir_buf **link = &bin->free;
    size_t bytes = 0;

    if (count == 0)
        return 0;
    for (weir__slab *slab = bin->slabs; slab != NULL && count > 0; slab = slab->next) {
        slab->to_unmap = slab->idle == slab->carved;
        count -= slab->to_unmap;
    }
    while (*link != NULL) {
        if (!weir__slab_of(*link)->to_unmap) {
            link = &(*link)->block;
            continue;
        }
        *link = (*link)->block;
        weir__owned_counter_add(&bin->cached, (uint32_t)-1);
    }
    while (*slab_link != NULL) {
        weir__slab *slab = *slab_link;

        if (!slab->to_unmap) {
            slab_link = &slab->next;
            continue;
        }
        *slab_link = slab->next;
        bytes += slab->bytes;
        weir__owned_counter_add(&bin->slab_count, (uint32_t)-1);
        weir__owned_counter_add(&bin->carved, -slab->carved);
        weir__slab_unmap(slab);
    }
    return bytes;
}

size_t weir__heap_trim(weir__heap *heap)
{
    size_t bytes = 0;

    collect(heap);
    for (weir__bin *bin = heap->bins; bin < heap->bins + WEIR__CLASS_COUNT; bin++) {
        bytes += unmap_idle_slabs(bin, count_idle_slabs(bin));
        bin->after_trim = weir__owned_counter_read(&bin->cached);
    }
    heap->slab_bytes -= bytes;
    return bytes;
}

bool weir__heap_may_trim(const weir__heap *heap)
{
    for (const weir__bin *bin = heap->bins; bin < heap->bins + WEIR__CLASS_COUNT; bin++)
        if (weir__owned_counter_read(&bin->cached) > bin->after_trim && may_have_idle_slabs(bin))
            return true;
    return atomic_load_explicit(&heap->remote.stack, memory_order_relaxed) != NULL;
}

bool weir__heap_decay(weir__heap *heap)
{
    bool more = false;

    collect(heap);
    for (weir__bin *bin = heap->bins; bin < heap->bins + WEIR__CLASS_COUNT; bin++) {
        uint32_t idle = count_idle_slabs(bin), count = bin->was_empty ? 0 : (idle + 1) / 2;

        bin->was_empty = false;
        heap->slab_bytes -= unmap_idle_slabs(bin, count);
        more |= idle > count;
    }
    return more;
}
