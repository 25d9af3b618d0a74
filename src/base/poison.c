/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client requests to valgrind, if its header was installed when the library was built.
 *
 * All blocks belong to one valgrind memory pool, so that its reports show where a block was
 * allocated and freed.
 */
#include "base/poison.h"

#include <string.h>

#include "os/environment.h"

bool weir__under_memcheck;

/*
 * Valgrind preloads this library with every tool. Its client request would work too, but only if
 * the library was built with valgrind's header.
 */
bool weir__runs_under_valgrind(void)
{
    const char *preloaded = weir__environment_get("LD_PRELOAD");

    return preloaded != NULL && strstr(preloaded, "vgpreload_core") != NULL;
}

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>

static const char pool;

__attribute__((constructor)) static void look_for_memcheck(void)
{
    /* Other tools, such as callgrind, do not answer this request. */
    weir__under_memcheck = VALGRIND_MAKE_MEM_DEFINED(&pool, sizeof(pool)) != 0;
    if (weir__under_memcheck)
        VALGRIND_CREATE_MEMPOOL(&pool, 0, 0);
}

void weir__valgrind_chunk(const void *memory, size_t size)
{
    (void)VALGRIND_MAKE_MEM_NOACCESS(memory, size);
}

void weir__valgrind_alloc(const void *block, size_t size)
{
    VALGRIND_MEMPOOL_ALLOC(&pool, block, size);
}

void weir__valgrind_free(const void *block, size_t size)
{
    (void)size;
    VALGRIND_MEMPOOL_FREE(&pool, block);
}

void weir__valgrind_exempt(const void *kept, size_t size)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(kept, size);
}
#else
void weir__valgrind_chunk(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

void weir__valgrind_alloc(const void *block, size_t size)
{
    (void)block;
    (void)size;
}

void weir__valgrind_free(const void *block, size_t size)
{
    (void)block;
    (void)size;
}

void weir__valgrind_exempt(const void *kept, size_t size)
{
    (void)kept;
    (void)size;
}
#endif
