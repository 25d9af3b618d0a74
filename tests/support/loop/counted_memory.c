/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block's cookie is its header, which stands before it and knows whether the block is out.
 */
#include "support/loop/counted_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define OUT 0x6f757421u

struct header {
    struct supply *supply;
    unsigned state;
};

static int take(void *arg, size_t size, weir__io_block *ret_block)
{
    struct supply *supply = arg;
    struct header *header;

    if (supply->refuse > 0) {
        supply->refuse -= supply->refuse < SIZE_MAX;
        supply->refused++;
        return -ENOMEM;
    }
    header = malloc(sizeof(*header) + size + supply->extra);
    if (header == NULL)
        return -ENOMEM;
    *header = (struct header){supply, OUT};
    supply->live++;
    supply->taken++;
    *ret_block = (weir__io_block){header + 1, size + supply->extra, header};
    return 0;
}

static void give(void *arg, const weir__io_block *block)
{
    struct supply *supply = arg;
    struct header *header = block->cookie;

    if (header + 1 != block->base || header->supply != supply || header->state != OUT) {
        fprintf(stderr, "supply: %p is no block that is out\n", block->base);
        abort();
    }
    header->state = 0;
    supply->live--;
    free(header);
}

weir__io_memory supply_memory(struct supply *supply)
{
    return (weir__io_memory){.alloc = take, .free = give, .arg = supply};
}

void supply_give(struct supply *supply, const weir__io_block *block)
{
    give(supply, block);
}
