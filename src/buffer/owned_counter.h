/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter that one thread writes and every thread reads. Relaxed, and additions are not atomic:
 * there is one writer, and the counter publishes no other data.
 */
#ifndef WEIR_BUFFER_OWNED_COUNTER_H
#define WEIR_BUFFER_OWNED_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t weir__owned_counter;

static inline uint32_t weir__owned_counter_read(const weir__owned_counter *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void weir__owned_counter_add(weir__owned_counter *counter, uint32_t n)
{
    atomic_store_explicit(counter, weir__owned_counter_read(counter) + n, memory_order_relaxed);
}

#endif
