/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the whole process, counted without a locked instruction: each writer has an account of
 * its own, and who reads a figure sums all of them up.
 *
 * An account has one writer at a time, and an account that is closed leaves what it has counted to
 * the rest, which everybody may add to. Opening, closing and summing take a lock; counting does
 * not. So a sum never misses an account that is being closed and never has it twice: it only grows.
 *
 * What the figures are is for those above to say.
 */
#ifndef WEIR_BASE_SHARDED_COUNTERS_H
#define WEIR_BASE_SHARDED_COUNTERS_H

#include <stdatomic.h>

#include "base/list.h"

#define WEIR__SHARD_COUNTERS 192

typedef struct weir__counter_shard {
    weir__list link;
    _Atomic uint64_t counters[WEIR__SHARD_COUNTERS];
} weir__counter_shard;

/* Adds to a figure that only this thread writes. Relaxed: it orders nothing but itself. */
#define weir__counter_add(counter, n)                                                   \
    atomic_store_explicit(&(counter),                                                   \
                          atomic_load_explicit(&(counter), memory_order_relaxed) + (n), \
                          memory_order_relaxed)

/* `account` is zero. It does not move until it is closed. */
void weir__counter_shard_open(weir__counter_shard *shard);

/* Nobody writes it any more. */
void weir__counter_shard_close(weir__counter_shard *shard);

/*
 * Adds to a figure of the account, whose writer the caller is; of the rest, if that is NULL. Who
 * sees the addition in a sum sees all that came before it in the sums that it takes then. Where
 * that does not matter weir__counter_add is cheaper.
 */
void weir__counter_shard_add(weir__counter_shard *shard, unsigned counter, uint64_t n);

/* What all accounts and the rest have of a figure. Never blocks for long. */
uint64_t weir__counter_shard_sum(unsigned counter);

#endif
