/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks free memory of the pool for ASan, LSan and valgrind. Without these tools it costs at most a
 * branch.
 *
 *     chunk   [.......................................]    not accessible
 *     alloc   [..[block....................]..........]    the block is accessible
 *     free    [..[.....[links].............]..........]    only the pool's links are accessible
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

/* Gap between blocks, to detect overruns. */
#define WEIR__REDZONE 64

static inline void weir__asan_poison(const void *memory, size_t size)
{
    __asan_poison_memory_region(memory, size);
}

static inline void weir__asan_unpoison(const void *memory, size_t size)
{
    __asan_unpoison_memory_region(memory, size);
}

/* Memory that is reachable through this region is not leaked. */
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

/* Set by a constructor; constant afterwards. */
extern bool weir__under_memcheck;

/* True under any tool of valgrind. The environment must not be changed concurrently. */
bool weir__runs_under_valgrind(void);

/* True if ASan or memcheck is active. If not, fast paths may skip the calls below. */
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

/* Called before the chunk is unmapped, because its addresses may be reused. */
static inline void weir__poison_chunk_remove(const void *memory, size_t size)
{
    weir__asan_unpoison(memory, size);
}

/* Makes a part of a free block accessible to the pool. */
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
