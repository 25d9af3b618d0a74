/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Futexes, within this process.
 */
#ifndef WEIR_OS_FUTEX_H
#define WEIR_OS_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Sleeps while *word == expected, until a wake-up or the deadline (CLOCK_MONOTONIC; WEIR_NEVER =
 * none). Returns immediately if the deadline has passed. May return spuriously: call it in a loop
 * that checks the condition.
 */
void weir__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);

/* Wakes up to `count` sleepers. Change the word first. The word may already be freed. */
void weir__futex_wake(_Atomic uint32_t *word, int count);

#endif
