/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks of memory that are allocated and freed often, such as promises. Each thread keeps
 * free ones, so that the steady state calls no allocator. Blocks that are allocated on one thread
 * and freed on another collect there up to a limit, and are then freed.
 *
 * An allocator set by weir_memory_set sees every block. Under ASan nothing is kept either, so that
 * it detects the use of freed blocks.
 */
#ifndef WEIR_BASE_BLOCK_CACHE_H
#define WEIR_BASE_BLOCK_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#define WEIR__BLOCK_UNIT 64
#define WEIR__BLOCK_SIZES 6   /* multiples of the unit; larger blocks are not kept */
#define WEIR__BLOCKS_MAX 1024 /* blocks of each size that a thread keeps */

typedef struct weir__block {
    struct weir__block *next;
} weir__block;

/* The free blocks of one size. */
typedef struct weir__blocks {
    weir__block *first;
    unsigned room; /* blocks that may still be kept; 0 also before the first is freed */
} weir__blocks;

extern _Thread_local weir__blocks weir__blocks_kept[WEIR__BLOCK_SIZES]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Slow paths: nothing is kept; there is no room. */
void *weir__block_alloc_slow(size_t size) __attribute__((malloc));
void weir__block_free_slow(void *memory, size_t size);

/* `size` bytes, not zeroed, aligned for any type; NULL without memory. */
static inline void *weir__block_alloc(size_t size)
{
    size_t index = (size - 1) / WEIR__BLOCK_UNIT;
    weir__block *block = index < WEIR__BLOCK_SIZES ? weir__blocks_kept[index].first : NULL;

    if (block == NULL)
        return weir__block_alloc_slow(size);
    weir__blocks_kept[index].first = block->next;
    weir__blocks_kept[index].room++;
    return block;
}

/* Any thread. `size` is that of the allocation. */
static inline void weir__block_free(void *memory, size_t size)
{
    size_t index = (size - 1) / WEIR__BLOCK_UNIT;
    weir__block *block = memory;

    if (index >= WEIR__BLOCK_SIZES || weir__blocks_kept[index].room == 0) {
        weir__block_free_slow(memory, size);
        return;
    }
    block->next = weir__blocks_kept[index].first;
    weir__blocks_kept[index].first = block;
    weir__blocks_kept[index].room--;
}

#endif
