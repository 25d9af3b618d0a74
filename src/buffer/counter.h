/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A count that one thread writes and every thread reads. Relaxed, and an addition is not one step:
 * there is one writer, and the count orders nothing but itself.
 */
#ifndef WEIR_BUFFER_COUNTER_H
#define WEIR_BUFFER_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t weir__tally;

static inline uint32_t weir__tally_read(const weir__tally *tally)
{
    return atomic_load_explicit(tally, memory_order_relaxed);
}

static inline void weir__tally_add(weir__tally *tally, uint32_t n)
{
    atomic_store_explicit(tally, weir__tally_read(tally) + n, memory_order_relaxed);
}

#endif
