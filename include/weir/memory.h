/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/memory.h - where the library's memory comes from.
 *
 * Every allocation of weir passes through these three functions; without a hook they are malloc,
 * realloc and free. Running out of memory is an error like any other, returned as -ENOMEM.
 */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are called from any thread, several at once. `size` is never 0 and `memory` never
 * NULL. Blocks are aligned as malloc's are; NULL means that there is no memory, and then realloc
 * has left the old block as it was.
 */
typedef struct weir_memory {
    void *(*alloc)(void *user_data, size_t size);
    void *(*realloc)(void *user_data, void *memory, size_t size);
    void (*free)(void *user_data, void *memory);
    void *user_data;
} weir_memory;

/*
 * Takes all memory through `memory`, which is copied, from now on; NULL brings back malloc. A block
 * is freed through the functions in force at that time, so change them only while weir holds none.
 * Thread: setup, before any other call of weir.  Fails: -EINVAL if a function is missing.
 */
WEIR_API int weir_memory_set(const weir_memory *memory);

/*
 * Memory from there, for handlers and libraries that want to be counted with weir; NULL if there is
 * none. `size` is not 0.
 * Thread: any.  Gives: the block, to weir_memory_free.
 */
WEIR_API void *weir_memory_alloc(size_t size);

/*
 * Makes a block larger or smaller; NULL as `memory` allocates. If it returns NULL the old block is
 * as it was.
 * Thread: any.  Takes: memory, if it succeeds.  Gives: the block.
 */
WEIR_API void *weir_memory_realloc(void *memory, size_t size);

/*
 * Gives a block back; NULL is fine.
 * Thread: any.  Takes: memory.
 */
WEIR_API void weir_memory_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
