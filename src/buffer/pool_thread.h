/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of the calling thread that are needed to create and destroy a buffer. One variable holds
 * them all, so its address is computed once.
 */
#ifndef WEIR_BUFFER_POOL_THREAD_H
#define WEIR_BUFFER_POOL_THREAD_H

#include <stdint.h>

struct weir__heap;

typedef struct weir__pool_thread {
    /* Its heap; weir__heap_none without one, and if ASan or memcheck must see each block. So a fast
     * path finds no block, or a block that is not its own, and needs no other check. */
    struct weir__heap *heap;
    int32_t leak_countdown; /* messages that it creates before the next candidate (leak.c) */
} weir__pool_thread;

extern _Thread_local weir__pool_thread weir__pool_thread_now
    __attribute__((tls_model("initial-exec")));

#endif
