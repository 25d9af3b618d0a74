/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills and flushes outboxes. A thread uses only its own; weir__heap_return passes blocks on.
 */
#include "buffer/outbox.h"

#include "buffer/heap.h"

#define NOINLINE __attribute__((noinline))

#define BLOCKS_MAX 32u
#define BYTES_MAX (256u << 10)

/* Heaps are at least a few KiB apart, so the low bits carry no information. */
static unsigned index_of(const struct weir__heap *owner)
{
    return (unsigned)(((uintptr_t)owner >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 60);
}

static NOINLINE void flush_one(weir__outboxes *outboxes, unsigned index)
{
    weir__outbox *box = &outboxes->boxes[index];

    weir__heap_return(atomic_load_explicit(&box->owner, memory_order_relaxed), box->first,
                      box->last, weir__owned_counter_read(&box->count));
    box->first = NULL;
    box->bytes = 0;
    atomic_store_explicit(&box->count, 0, memory_order_relaxed);
    outboxes->filled &= ~(1u << index);
}

/* Adds the first block to an outbox, after flushing the blocks of another heap. */
static NOINLINE void put_first(weir__outboxes *outboxes, unsigned index, struct weir__heap *owner,
                               weir_buf *block, uint32_t bytes)
{
    weir__outbox *box = &outboxes->boxes[index];

    if (box->first != NULL)
        flush_one(outboxes, index);
    atomic_store_explicit(&box->owner, owner, memory_order_relaxed);
    atomic_store_explicit(&box->count, 1, memory_order_relaxed);
    box->bytes = bytes;
    box->first = box->last = block;
    outboxes->filled |= 1u << index;
    if (bytes >= BYTES_MAX)
        flush_one(outboxes, index);
}

void weir__outbox_put(weir__outboxes *outboxes, struct weir__heap *owner, weir_buf *block,
                      uint32_t bytes)
{
    unsigned index = index_of(owner);
    weir__outbox *box = &outboxes->boxes[index];
    uint32_t count = weir__owned_counter_read(&box->count) + 1;

    if (box->first == NULL || atomic_load_explicit(&box->owner, memory_order_relaxed) != owner) {
        put_first(outboxes, index, owner, block, bytes);
        return;
    }
    block->block = box->first;
    box->first = block;
    box->bytes += bytes;
    atomic_store_explicit(&box->count, count, memory_order_relaxed);
    if (count >= BLOCKS_MAX || box->bytes >= BYTES_MAX)
        flush_one(outboxes, index);
}

void weir__outbox_flush(weir__outboxes *outboxes)
{
    while (outboxes->filled != 0)
        flush_one(outboxes, (unsigned)__builtin_ctz(outboxes->filled));
}
