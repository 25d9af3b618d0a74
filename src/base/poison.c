/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests to valgrind, where its header was there when the library was built.
 *
 * All blocks belong to one memory pool in valgrind's sense, whatever chunk they are part of: its
 * reports then say where a block was taken and where it was given back.
 */
#include "base/poison.h"

#include <string.h>

#include "os/environment.h"

bool weir__under_memcheck;

/*
 * Valgrind preloads this library into every program, whatever the tool is. Its client request would
 * answer, too, but only if the library was built where valgrind's header was installed.
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
    /* Valgrind's other tools, such as callgrind, do not answer: they do not want to know. */
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
