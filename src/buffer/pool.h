/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: blocks of header and payload from the heap of the calling thread.
 *
 * The header of a block is that of an empty buffer, also while the block is free: allocating it
 * again sets only the indices and the reference count. A block whose header was changed otherwise
 * is reset before it is freed.
 *
 *      msg.flags    8-15    size class
 *                   16-31   offset of the bin in the heap that owns the block
 */
#ifndef WEIR_BUFFER_POOL_H
#define WEIR_BUFFER_POOL_H

#include <assert.h>

#include <weir/buf.h>
#include <weir/pool.h>

#include "buffer/heap.h"
#include "buffer/pool_thread.h"

#define WEIR__POOL_CLASS_SHIFT 8
#define WEIR__POOL_BIN_SHIFT 16
#define WEIR__POOL_FLAGS 0xffffff00u

weir_buf *weir__pool_alloc_slow(size_t payload);
void weir__pool_free_slow(weir_buf *block);

static inline weir_buf *weir__pool_pop_from(weir__bin *bin)
{
    weir_buf *block = weir__bin_pop(bin);

    if (block == NULL)
        return NULL;
    assert(block->data == (uint8_t *)(block + 1) && block->capacity == bin->size);
    __atomic_store_n(&block->msg.refs, 1u, __ATOMIC_RELAXED);
    block->read = block->write = 0;
    return block;
}

/* As weir__pool_alloc, but NULL if the thread has no free block of that size at hand. */
static inline weir_buf *weir__pool_pop(size_t payload)
{
    weir__heap *heap = weir__pool_thread_now.heap;

    if (__builtin_expect(payload <= WEIR__SMALL_SIZE_MAX, true))
        return weir__pool_pop_from(
            weir__heap_bin_at(heap, heap->small_bins[(payload + WEIR__LINE - 1) / WEIR__LINE]));
    return payload <= WEIR__CLASS_SIZE_MAX
               ? weir__pool_pop_from(&heap->bins[weir__class_of(payload)])
               : NULL;
}

/* As weir__pool_pop(0). */
static inline weir_buf *weir__pool_pop_header(void)
{
    return weir__pool_pop_from(&weir__pool_thread_now.heap->bins[0]);
}

/*
 * Allocates a block: an empty buffer with one reference, followed by its `capacity` of at least
 * `payload` bytes (0 = a header only, for views and wrappers). `block` is undefined. NULL without
 * memory, and above WEIR_BUF_MAX.
 */
static inline weir_buf *weir__pool_alloc(size_t payload)
{
    weir_buf *block = weir__pool_pop(payload);

    return block != NULL ? block : weir__pool_alloc_slow(payload);
}

/*
 * Frees a block, from any thread. Only its indices, its reference count and `block` may differ from
 * what weir__pool_alloc has set. Other resources of the buffer are up to the caller.
 */
static inline void weir__pool_free(weir_buf *block)
{
    weir__heap *heap = weir__pool_thread_now.heap;

    if (__builtin_expect(block->owner != heap, false)) {
        weir__pool_free_slow(block);
        return;
    }
    assert((block->msg.flags >> WEIR__POOL_BIN_SHIFT) / sizeof(weir__bin) ==
           weir__slab_of(block)->size_class);
    weir__bin_push(weir__heap_bin_at(heap, block->msg.flags >> WEIR__POOL_BIN_SHIFT), block);
}

static inline unsigned weir__pool_class_of(const weir_buf *block)
{
    return (block->msg.flags >> WEIR__POOL_CLASS_SHIFT) & 0xff;
}

/* Resets the header of a block of this class, whose `owner` and bits of the pool are unchanged. */
static inline void weir__pool_reset(weir_buf *block, unsigned size_class)
{
    assert(size_class == weir__pool_class_of(block));
    block->msg.flags &= WEIR__POOL_FLAGS;
    block->data = (uint8_t *)(block + 1);
    block->capacity = (uint32_t)weir__class_size(size_class);
    block->max = (uint32_t)WEIR_BUF_MAX;
}

/* The capacity of weir__pool_alloc(payload); `payload` is at most WEIR_BUF_MAX. */
size_t weir__pool_capacity_for(size_t payload);

#endif
