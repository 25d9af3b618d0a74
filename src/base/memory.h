/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to memory: everything goes through the hook of weir_memory_set. All but free return
 * NULL when there is none. Sizes are not 0.
 */
#ifndef WEIR_BASE_MEMORY_H
#define WEIR_BASE_MEMORY_H

#include <stddef.h>

#include <weir/memory.h>

void *weir__alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *weir__zalloc(size_t size) __attribute__((malloc, alloc_size(1)));

/* NULL as `memory` allocates. On failure the old block is untouched. */
void *weir__realloc(void *memory, size_t size) __attribute__((alloc_size(2)));

/* NULL is fine. */
void weir__free(void *memory);

char *weir__strdup(const char *text) __attribute__((malloc));

/*
 * Zeroed memory on a boundary of `alignment` bytes, a power of two: for structs whose parts belong
 * to different threads and must not share a cache line. Only weir__aligned_free takes it back.
 */
void *weir__aligned_zalloc(size_t alignment, size_t size)
    __attribute__((malloc, alloc_size(2), alloc_align(1)));
void weir__aligned_free(void *memory);

#endif
