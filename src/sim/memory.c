/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of weir in a world: malloc, with failures and a count of blocks.
 *
 * With an allocator of its own weir keeps no small blocks for later, so each allocation is seen. A
 * block has no header: blocks from before the world may be freed in it, and the other way round.
 */
#include <stdlib.h>

#include <weir/memory.h>

#include "sim/world.h"

static weir_memory before; /* the allocator outside the world */

static void *sim_alloc(void *user_data, size_t size)
{
    void *memory;

    (void)user_data;
    if (weir__sim->fails_allocations && weir__sim_fault(WEIR_SIM_FAULT_ALLOC))
        return NULL;
    memory = malloc(size);
    if (memory != NULL)
        weir__sim->live_blocks++;
    return memory;
}

static void *sim_realloc(void *user_data, void *memory, size_t size)
{
    (void)user_data;
    if (weir__sim->fails_allocations && weir__sim_fault(WEIR_SIM_FAULT_ALLOC))
        return NULL;
    return realloc(memory, size);
}

static void sim_free(void *user_data, void *memory)
{
    (void)user_data;
    weir__sim->live_blocks--;
    free(memory);
}

int weir__sim_memory_begin(void)
{
    const weir_memory memory = {.alloc = sim_alloc, .realloc = sim_realloc, .free = sim_free};

    before = weir__sim->seams->memory();
    weir__sim->fails_allocations = true;
    return weir_memory_set(&memory);
}

void weir__sim_memory_end(void)
{
    int err = weir_memory_set(&before);

    (void)err; /* cannot fail */
}
