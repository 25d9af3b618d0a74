/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling ASan, LSan and valgrind which part of memory of our own making is free, so that they see
 * through a pool. Without one of them none of this costs more than a branch.
 *
 *     chunk   [.......................................]    nobody may touch it
 *     taken   [..[block....................]..........]    this part is somebody's
 *     given   [..[.....[kept]..............]..........]    and free again, but for what the pool
 *                                                          itself keeps in a free block
 */
#ifndef WEIR_BASE_POISON_H
#define WEIR_BASE_POISON_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define WEIR__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR__ASAN 1
#endif
#endif

#ifdef WEIR__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>

/* Left between blocks, so that running over the end of one does not lead into the next. */
#define WEIR__REDZONE 64

static inline void weir__asan_poison(const void *memory, size_t size)
{
    __asan_poison_memory_region(memory, size);
}

static inline void weir__asan_unpoison(const void *memory, size_t size)
{
    __asan_unpoison_memory_region(memory, size);
}

/* What is only reachable through this memory is not leaked. */
static inline void weir__poison_root_add(const void *memory, size_t size)
{
    __lsan_register_root_region(memory, size);
}

static inline void weir__poison_root_remove(const void *memory, size_t size)
{
    __lsan_unregister_root_region(memory, size);
}
#else
#define WEIR__REDZONE 0

static inline void weir__asan_poison(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

static inline void weir__asan_unpoison(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

static inline void weir__poison_root_add(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

static inline void weir__poison_root_remove(const void *memory, size_t size)
{
    (void)memory;
    (void)size;
}
#endif

/* Does not change while the program runs. */
extern bool weir__under_memcheck;

/* True under every tool of valgrind, memcheck or another one. Nobody may change the environment
 * meanwhile. */
bool weir__runs_under_valgrind(void);

/* Whether somebody is to be told. Who asks first may leave the calls out of the quick way. */
static inline bool weir__poison_enabled(void)
{
#ifdef WEIR__ASAN
    return true;
#else
    return weir__under_memcheck;
#endif
}

void weir__valgrind_chunk(const void *memory, size_t size);
void weir__valgrind_alloc(const void *block, size_t size);
void weir__valgrind_free(const void *block, size_t size);
void weir__valgrind_exempt(const void *kept, size_t size);

static inline void weir__poison_chunk_add(const void *memory, size_t size)
{
    weir__asan_poison(memory, size);
    if (__builtin_expect(weir__under_memcheck, false))
        weir__valgrind_chunk(memory, size);
}

/* Before the chunk is unmapped: the addresses will be something else. */
static inline void weir__poison_chunk_remove(const void *memory, size_t size)
{
    weir__asan_unpoison(memory, size);
}

/* Part of a free block that the pool itself uses. */
static inline void weir__poison_exempt(const void *kept, size_t size)
{
    weir__asan_unpoison(kept, size);
    if (__builtin_expect(weir__under_memcheck, false))
        weir__valgrind_exempt(kept, size);
}

static inline void weir__poison_alloc(const void *block, size_t size)
{
    weir__asan_unpoison(block, size);
    if (__builtin_expect(weir__under_memcheck, false))
        weir__valgrind_alloc(block, size);
}

static inline void weir__poison_free(const void *block, size_t size)
{
    weir__asan_poison(block, size);
    if (__builtin_expect(weir__under_memcheck, false))
        weir__valgrind_free(block, size);
}

#endif
