/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator hook, and functions built on it.
 *
 * The hook is a plain variable: it is set before other threads use weir.
 */
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *system_alloc(void *user_data, size_t size)
{
    (void)user_data;
    return malloc(size);
}

static void *system_realloc(void *user_data, void *memory, size_t size)
{
    (void)user_data;
    return realloc(memory, size);
}

static void system_free(void *user_data, void *memory)
{
    (void)user_data;
    free(memory);
}

static const weir_memory system_memory = {
    .alloc = system_alloc,
    .realloc = system_realloc,
    .free = system_free,
};

static weir_memory hook = {
    .alloc = system_alloc,
    .realloc = system_realloc,
    .free = system_free,
};

int weir_memory_set(const weir_memory *memory)
{
    if (memory == NULL)
        memory = &system_memory;
    if (memory->alloc == NULL || memory->realloc == NULL || memory->free == NULL)
        return -EINVAL;
    hook = *memory;
    return 0;
}

weir_memory weir__memory_get(void)
{
    return hook;
}

bool weir__memory_is_system(void)
{
    return hook.alloc == system_alloc;
}

void *weir__alloc(size_t size)
{
    assert(size > 0);
    return hook.alloc(hook.user_data, size);
}

void *weir__zalloc(size_t size)
{
    void *memory = weir__alloc(size);

    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

void *weir__realloc(void *memory, size_t size)
{
    assert(size > 0);
    if (memory == NULL)
        return weir__alloc(size);
    return hook.realloc(hook.user_data, memory, size);
}

void weir__free(void *memory)
{
    if (memory != NULL)
        hook.free(hook.user_data, memory);
}

char *weir__strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir__alloc(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

/*
 * The address of the block is stored behind the memory, where weir__aligned_free finds it whatever
 * allocator is set by then. malloc's own blocks are aligned ones: valgrind calls a block possibly
 * lost if nothing points to its beginning.
 */
static void **block_of(void *memory, size_t size)
{
    size_t word = alignof(void *);

    return (void **)((char *)memory + (size + word - 1) / word * word);
}

void *weir__aligned_zalloc(size_t alignment, size_t size)
{
    size_t extra = alignment - 1 + 2 * sizeof(void *);
    void *block, *memory;

    assert(alignment >= sizeof(void *) && (alignment & (alignment - 1)) == 0);
    if (size > SIZE_MAX - extra)
        return NULL;
    if (weir__memory_is_system())
        block = aligned_alloc(alignment, (size + extra) & ~(alignment - 1));
    else
        block = weir__alloc(size + extra);
    if (block == NULL)
        return NULL;

    memory = (void *)(((uintptr_t)block + alignment - 1) & ~(uintptr_t)(alignment - 1));
    *block_of(memory, size) = block;
    return memset(memory, 0, size);
}

void weir__aligned_free(void *memory, size_t size)
{
    if (memory != NULL)
        weir__free(*block_of(memory, size));
}

/* ---- public functions ---- */

void *weir_memory_alloc(size_t size)
{
    return weir__alloc(size);
}

void *weir_memory_realloc(void *memory, size_t size)
{
    return weir__realloc(memory, size);
}

void weir_memory_free(void *memory)
{
    weir__free(memory);
}
