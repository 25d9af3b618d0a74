/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool for tests: blocks, and what is counted of them.
 */
#ifndef WEIR_TEST_BUFFER_POOL_H
#define WEIR_TEST_BUFFER_POOL_H

#include <weir/pool.h>

#include "buffer/pool.h"

/* Of all classes together. */
struct blocks {
    uint64_t in_use;
    uint64_t cached;
    uint64_t in_transit;
};

struct blocks count_blocks(void);

/* Takes `count` blocks, or as many as there are; returns how many. */
size_t take_blocks(weir_buf **blocks, size_t count, size_t payload);
void give_blocks(weir_buf **blocks, size_t count);

/* Runs fn(arg) on a thread of its own, and waits for its end. */
void run_on_thread(void (*fn)(void *arg), void *arg);

#endif
