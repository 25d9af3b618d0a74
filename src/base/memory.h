/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation through the hook of weir_memory_set. All functions return NULL without memory. Sizes
 * are not 0.
 */
#ifndef WEIR_BASE_MEMORY_H
#define WEIR_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/memory.h>

/* The allocator that is set. */
weir_memory weir__memory_get(void);

/* True unless weir_memory_set has set another allocator. */
bool weir__memory_is_system(void);

void *weir__alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *weir__zalloc(size_t size) __attribute__((malloc, alloc_size(1)));

/* Allocates if `memory` is NULL. On failure the old block is unchanged. */
void *weir__realloc(void *memory, size_t size) __attribute__((alloc_size(2)));

/* NULL is ignored. */
void weir__free(void *memory);

char *weir__strdup(const char *text) __attribute__((malloc));

/*
 * Allocates zeroed memory aligned to `alignment`, a power of two, for structs whose parts are used
 * by different threads and must not share a cache line. Free it with weir__aligned_free and the
 * same size.
 */
void *weir__aligned_zalloc(size_t alignment, size_t size)
    __attribute__((malloc, alloc_size(2), alloc_align(1)));
void weir__aligned_free(void *memory, size_t size);

#endif
