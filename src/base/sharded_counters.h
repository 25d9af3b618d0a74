/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process-wide counters without locked instructions: each writer counts in its own shard, and a
 * reader sums up all shards.
 *
 * A shard has one writer at a time. Closing a shard adds its counts to the shared counters, which
 * any thread may add to. Opening, closing and summing take a lock; counting does not. So a sum
 * never misses a shard that is being closed and never counts it twice: sums never decrease.
 *
 * The meaning of the counters is defined by the layers above.
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

/* Adds to a counter that only this thread writes. Relaxed: it publishes no other data. */
#define weir__counter_add(counter, n)                                                   \
    atomic_store_explicit(&(counter),                                                   \
                          atomic_load_explicit(&(counter), memory_order_relaxed) + (n), \
                          memory_order_relaxed)

/* The shard is zeroed, and must not move until it is closed. */
void weir__counter_shard_open(weir__counter_shard *shard);

/* The shard has no writer any more. */
void weir__counter_shard_close(weir__counter_shard *shard);

/*
 * Adds to a counter of the shard, whose writer is the caller, or to the shared counter if `shard`
 * is NULL. Release order: a thread that sees the addition in a sum sees all earlier additions in
 * later sums. Where that does not matter weir__counter_add is cheaper.
 */
void weir__counter_shard_add(weir__counter_shard *shard, unsigned counter, uint64_t n);

/* The sum of a counter over all shards and the shared counter. */
uint64_t weir__counter_shard_sum(unsigned counter);

#endif
