/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cookie of a block is its header, which precedes it and records whether the block is in use.
 */
#include "support/loop/counted_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define OUT 0x6f757421u

struct header {
    struct counted_memory *memory;
    unsigned state;
};

static int alloc_block(void *arg, size_t size, weir__io_block *ret_block)
{
    struct counted_memory *memory = arg;
    struct header *header;

    if (memory->refuse > 0) {
        memory->refuse -= memory->refuse < SIZE_MAX;
        memory->refused++;
        return -ENOMEM;
    }
    header = malloc(sizeof(*header) + size + memory->extra);
    if (header == NULL)
        return -ENOMEM;
    *header = (struct header){memory, OUT};
    memory->live++;
    memory->taken++;
    *ret_block = (weir__io_block){header + 1, size + memory->extra, header};
    return 0;
}

static void free_block(void *arg, const weir__io_block *block)
{
    struct counted_memory *memory = arg;
    struct header *header = block->cookie;

    if (header + 1 != block->base || header->memory != memory || header->state != OUT) {
        fprintf(stderr, "memory: %p is no block that is out\n", block->base);
        abort();
    }
    header->state = 0;
    memory->live--;
    free(header);
}

weir__io_memory counted_memory_functions(struct counted_memory *memory)
{
    return (weir__io_memory){.alloc = alloc_block, .free = free_block, .arg = memory};
}

void counted_memory_free(struct counted_memory *memory, const weir__io_block *block)
{
    free_block(memory, block);
}
