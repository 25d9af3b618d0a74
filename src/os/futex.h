/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping on a word of memory, within this process.
 */
#ifndef WEIR_OS_FUTEX_H
#define WEIR_OS_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Sleeps while *word == expected, until a wake-up or the deadline (CLOCK_MONOTONIC; WEIR_NEVER =
 * none; the past returns at once). It may return for no reason: the caller looks again, and loops.
 */
void weir__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);

/* Wakes up to `count` sleepers. Change the word first. The word need not exist any more. */
void weir__futex_wake(_Atomic uint32_t *word, int count);

#endif
