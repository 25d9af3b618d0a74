/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer/competitor.h - what a competitor of the buffer suite defines.
 *
 *      typedef ... item;
 *      #include "buffer/competitor.h"
 *      ... and the functions below
 *      #include "buffer/cases.h"
 *
 * Everything is static and comes before the cases in one file, so that the compiler can inline a
 * competitor's operations into cases that are the same for all. What fails ends the program.
 */
#ifndef BENCH_BUFFER_COMPETITOR_H
#define BENCH_BUFFER_COMPETITOR_H

#include "support/bench.h"

/* Memory for `size` bytes; one thread at a time takes some. */
static item *item_take(size_t size);
static uint8_t *item_bytes(item *it);

/* Gives it back, on the thread that took it or on another one. */
static void item_give(item *it, size_t size);
static void item_give_far(item *it, size_t size);

/* After a round, when nothing is taken: all memory goes back to where it came from. */
static void items_trim(void);

/* As bench_require, without a call unless it has failed: one is much of what is measured here. */
static inline void require(bool ok, const char *what)
{
    if (__builtin_expect(!ok, false))
        bench_require(false, what);
}

/* Nothing can be left out in front of this, or moved behind it: the value might be looked at. */
static inline void made(uintptr_t value)
{
    __asm__ volatile("" : : "r"(value) : "memory");
}

#endif
