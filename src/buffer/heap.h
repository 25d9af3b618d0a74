/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap: the slabs and free blocks that belong to one thread at a time.
 *
 *      bins[c]   free -> block -> block ...      last in, first out
 *                slabs -> slab -> slab ...       the first is the one that is being carved
 *      remote    -> block -> block ...           released by other threads, of all classes
 *      outboxes  [ ][ ][ ] ...                   of other heaps, released by this thread
 *
 * Only the heap's thread touches it, but for `remote`, which any thread pushes to, and the tallies,
 * which any thread reads. Where blocks are:
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
    WEIR__HEAP_METRIC_OUT, /* in use or in transit */
    WEIR__HEAP_METRIC_CACHED,
    WEIR__HEAP_METRIC_MAPPED,
    WEIR__HEAP_METRIC_COUNT,
};

typedef struct weir__bin {
    weir_buf *free;             /* linked by `block` */
    weir__owned_counter cached; /* how many there are */
    uint32_t size;              /* of a payload */
    weir__slab *slabs;
    weir__owned_counter slab_count;
    weir__owned_counter carved; /* blocks that its slabs were cut into */
    weir__owned_counter sent;   /* blocks of other heaps that this thread has released ... */
    weir__owned_counter
        received;        /* ... and of this one that came home: they count round and round */
    uint32_t after_trim; /* what weir__heap_trim has left of `cached` */
    bool was_empty;      /* since weir__heap_decay looked at it */
} weir__bin;

typedef struct weir__heap {
    weir__bin bins[WEIR__CLASS_COUNT];
    weir__outboxes outboxes;
    size_t slab_bytes;            /* what its slabs have mapped ... */
    _Atomic size_t peak_bytes;    /* ... and the most that it was */
    weir__owned_counter failures; /* times that its thread asked in vain, for blocks of any size */
    int64_t decay_at_ns;          /* on the clock of the thread's executor; 0 = not yet known */
    int64_t decay_wait_ns;
    int64_t trim_retry_ns; /* not before then it trims again because there was no memory */
    uint32_t trims_seen;
    struct {
        weir__list link;
        struct weir__heap *next_orphan;
        uint64_t number;
        pid_t thread; /* 0 = an orphan */
        char thread_name[16];
    } registry; /* guarded by the lock of heaps.c */
    weir_metric metrics[WEIR__HEAP_METRIC_COUNT];
    struct {
        alignas(64) _Atomic(weir_buf *) stack; /* linked by `block` */
        _Atomic uint32_t count;                /* no less than what is on the stack */
    } remote;
} weir__heap;

/* `heap` is zero. */
void weir__heap_init(weir__heap *heap);

/* A free block of a class of which the bin has none; NULL = no memory. */
weir_buf *weir__heap_refill(weir__heap *heap, unsigned size_class);

/* Brings free blocks home, from any thread; they are linked from `first` to `last`. */
void weir__heap_return(weir__heap *heap, weir_buf *first, weir_buf *last, uint32_t count);

/* Unmaps all slabs that are wholly free: how many bytes that was. */
size_t weir__heap_trim(weir__heap *heap);

/* Whether blocks were given since the last trim, so that another one may find more. */
bool weir__heap_may_trim(const weir__heap *heap);

/*
 * Unmaps half of them, of classes that were not short of blocks since the last time. Returns
 * whether another time would find more.
 */
bool weir__heap_decay(weir__heap *heap);

bool weir__heap_is_empty(const weir__heap *heap);

/* What the pool needs of a block while it is free: its last two fields. The rest is poisoned. */
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

/* Blocks that are in use or in transit; below zero if one of the tallies is old. */
static inline int64_t weir__bin_allocated(const weir__bin *bin)
{
    return (int32_t)(weir__owned_counter_read(&bin->carved) -
                     weir__owned_counter_read(&bin->cached));
}

static inline weir_buf *weir__bin_pop(weir__bin *bin)
{
    weir_buf *block = bin->free;

    if (block == NULL)
        return NULL;
    bin->free = block->block;
    __builtin_prefetch(bin->free, 1); /* the next to be taken: its header will be written */
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
