/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/memory.h - the allocator of the library.
 *
 * Every allocation of weir goes through these three functions; by default they are malloc, realloc
 * and free. Functions that cannot allocate fail with -ENOMEM.
 */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are called concurrently from any thread. `size` is never 0 and `memory` never NULL.
 * Blocks are aligned as those of malloc. NULL means that there is no memory; a failed realloc
 * leaves the old block unchanged.
 */
typedef struct weir_memory {
    void *(*alloc)(void *user_data, size_t size);
    void *(*realloc)(void *user_data, void *memory, size_t size);
    void (*free)(void *user_data, void *memory);
    void *user_data;
} weir_memory;

/*
 * Installs an allocator; `memory` is copied. NULL restores malloc. A block is freed by the
 * allocator installed at that time, so change it only while weir holds no memory.
 * Thread: setup, before any other call of weir.  Fails: -EINVAL if a function is missing.
 */
WEIR_API WEIR_MUST_USE int weir_memory_set(const weir_memory *memory);

/*
 * Allocates memory, for handlers and libraries whose memory should be counted with that of weir.
 * NULL if there is none. `size` is not 0.
 * Thread: any.  Gives: the block, to weir_memory_free.
 */
WEIR_API WEIR_MUST_USE void *weir_memory_alloc(size_t size);

/*
 * Resizes a block; allocates one if `memory` is NULL. Returns NULL on failure and leaves the old
 * block unchanged.
 * Thread: any.  Takes: memory, if it succeeds.  Gives: the block.
 */
WEIR_API WEIR_MUST_USE void *weir_memory_realloc(void *memory, size_t size);

/*
 * Frees a block. NULL is ignored.
 * Thread: any.  Takes: memory.
 */
WEIR_API void weir_memory_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
