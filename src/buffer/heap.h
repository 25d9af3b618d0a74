/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap: the slabs and free blocks of one thread at a time.
 *
 *      bins[c]   free -> block -> block ...      last in, first out
 *                slabs -> slab -> slab ...       the first one is being carved
 *      remote    -> block -> block ...           released by other threads, of all classes
 *      outboxes  [ ][ ][ ] ...                   blocks of other heaps, released by this thread
 *
 * Only its thread uses a heap, except `remote`, which any thread pushes to, and the counters, which
 * any thread reads. Blocks are in one of these states:
 *
 *      carved = cached (in bins) + in transit (in outboxes, on `remote`) + in use
 */
#ifndef WEIR_BUFFER_HEAP_H
#define WEIR_BUFFER_HEAP_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/buf.h>

#include "base/list.h"
#include "base/metric.h"
#include "base/poison.h"
#include "buffer/outbox.h"
#include "buffer/owned_counter.h"
#include "buffer/size_class.h"
#include "buffer/slab.h"

enum {
    WEIR__HEAP_METRIC_OUT, /* bytes in use or in transit */
    WEIR__HEAP_METRIC_CACHED,
    WEIR__HEAP_METRIC_MAPPED,
    WEIR__HEAP_METRIC_COUNT,
};

typedef struct weir__bin {
    weir_buf *free;             /* linked by `block` */
    weir__owned_counter cached; /* number of free blocks */
    uint32_t size;              /* payload of a block */
    weir__slab *slabs;
    weir__owned_counter slab_count;
    weir__owned_counter carved; /* blocks carved from its slabs */
    weir__owned_counter sent;   /* blocks of other heaps released by this thread ... */
    weir__owned_counter
        received;        /* ... and blocks of this heap returned by others; both wrap around */
    uint32_t after_trim; /* `cached` after the last weir__heap_trim */
    bool was_empty;      /* a refill was needed since the last weir__heap_decay */
} weir__bin;

_Static_assert(WEIR__CLASS_COUNT * sizeof(weir__bin) <= UINT16_MAX, "offsets of bins have 16 bits");

typedef struct weir__heap {
    weir__bin bins[WEIR__CLASS_COUNT];
    /* The offset in `bins` of the bin for a payload of this many cache lines. */
    uint16_t small_bins[WEIR__SMALL_SIZE_MAX / WEIR__LINE + 1];
    weir__outboxes outboxes;
    size_t slab_bytes;            /* size of its slabs ... */
    _Atomic size_t peak_bytes;    /* ... and its peak */
    weir__owned_counter failures; /* failed allocations of its thread, of any size */
    int64_t decay_at_ns;          /* time of the executor's clock; 0 = not yet known */
    int64_t decay_wait_ns;
    int64_t trim_retry_ns; /* the earliest time of another trim for lack of memory */
    uint32_t trims_seen;
    struct {
        weir__list link;
        struct weir__heap *next_orphan;
        uint64_t number;
        pid_t thread; /* 0 = orphaned */
        char thread_name[16];
    } registry; /* guarded by the lock in heaps.c */
    weir_metric metrics[WEIR__HEAP_METRIC_COUNT];
    char labels[32]; /* of its metrics */
    struct {
        alignas(64) _Atomic(weir_buf *) stack; /* linked by `block` */
        _Atomic uint32_t count;                /* at least the number of blocks on the stack */
    } remote;
} weir__heap;

/* The heap is zeroed. */
void weir__heap_init(weir__heap *heap);

/* Returns a block of a class whose bin is empty; NULL without memory. */
weir_buf *weir__heap_refill(weir__heap *heap, unsigned size_class);

/* Returns free blocks to their heap, from any thread; they are linked from `first` to `last`. */
void weir__heap_return(weir__heap *heap, weir_buf *first, weir_buf *last, uint32_t count);

/* Unmaps all slabs without allocated blocks. Returns the number of bytes. */
size_t weir__heap_trim(weir__heap *heap);

/* True if blocks were freed since the last trim, so that another one may unmap more. */
bool weir__heap_may_trim(const weir__heap *heap);

/*
 * Unmaps half of the slabs without allocated blocks, of classes that needed no refill since the
 * last call. Returns true if another call would unmap more.
 */
bool weir__heap_decay(weir__heap *heap);

bool weir__heap_is_empty(const weir__heap *heap);

/* Makes the last two members of a free block accessible, which the pool uses. The rest is poisoned.
 */
static inline void weir__block_unpoison_links(weir_buf *block)
{
    _Static_assert(offsetof(weir_buf, slab) == offsetof(weir_buf, block) + sizeof(void *),
                   "the two stand side by side");
    weir__poison_exempt(&block->block, 2 * sizeof(void *));
}

static inline void weir__block_unpoison(weir_buf *block, size_t size)
{
    weir__poison_alloc(block, sizeof(*block) + size);
    weir__block_unpoison_links(block);
}

static inline void weir__block_poison(weir_buf *block, size_t size)
{
    weir__poison_free(block, sizeof(*block) + size);
    weir__block_unpoison_links(block);
}

/* Blocks in use or in transit; negative if one of the counters was read earlier. */
static inline int64_t weir__bin_allocated(const weir__bin *bin)
{
    return (int32_t)(weir__owned_counter_read(&bin->carved) -
                     weir__owned_counter_read(&bin->cached));
}

static inline weir__bin *weir__heap_bin_at(weir__heap *heap, uint32_t offset)
{
    return (weir__bin *)(void *)((char *)heap->bins + offset);
}

static inline weir_buf *weir__bin_pop(weir__bin *bin)
{
    weir_buf *block = bin->free;

    if (block == NULL)
        return NULL;
    bin->free = block->block;
    __builtin_prefetch(bin->free, 1); /* the next block to be allocated */
    weir__owned_counter_add(&bin->cached, (uint32_t)-1);
    return block;
}

static inline void weir__bin_push(weir__bin *bin, weir_buf *block)
{
    block->block = bin->free;
    bin->free = block;
    weir__owned_counter_add(&bin->cached, 1);
}

#endif
