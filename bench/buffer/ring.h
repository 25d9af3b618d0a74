/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer/ring.h - pointers from one thread to another. Each side remembers how far the other was
 * when it last looked, and looks again only when that is used up: so the indices' lines travel once
 * for many pointers.
 */
#ifndef BENCH_BUFFER_RING_H
#define BENCH_BUFFER_RING_H

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "support/bench.h"

enum { RING_SLOTS = 1024, RING_SPINS = 1000 };

/* Zero is empty. */
struct ring {
    alignas(BENCH_LINE) _Atomic size_t written; /* the writer's */
    size_t read_seen;
    alignas(BENCH_LINE) _Atomic size_t read; /* the reader's */
    size_t written_seen;
    alignas(BENCH_LINE) void *slots[RING_SLOTS];
};

/* A thread that has no CPU to itself must not keep the other from running. */
static inline void ring_wait(unsigned *spins)
{
    if (++*spins % RING_SPINS == 0)
        sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Acquire, against the other's release: a slot is free when it was read, full when written. */
static inline bool ring_is_full(struct ring *ring, size_t written)
{
    if (written - ring->read_seen < RING_SLOTS)
        return false;
    ring->read_seen = atomic_load_explicit(&ring->read, memory_order_acquire);
    return written - ring->read_seen == RING_SLOTS;
}

static inline bool ring_is_empty(struct ring *ring, size_t read)
{
    if (read != ring->written_seen)
        return false;
    ring->written_seen = atomic_load_explicit(&ring->written, memory_order_acquire);
    return read == ring->written_seen;
}

/* Whether there was room. */
static inline bool ring_try_put(struct ring *ring, void *pointer)
{
    size_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);

    if (ring_is_full(ring, written))
        return false;
    ring->slots[written % RING_SLOTS] = pointer;
    atomic_store_explicit(&ring->written, written + 1, memory_order_release);
    return true;
}

static inline void ring_put(struct ring *ring, void *pointer)
{
    for (unsigned spins = 0; !ring_try_put(ring, pointer);)
        ring_wait(&spins);
}

/* NULL = there is none. */
static inline void *ring_try_get(struct ring *ring)
{
    size_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    void *pointer;

    if (ring_is_empty(ring, read))
        return NULL;
    pointer = ring->slots[read % RING_SLOTS];
    atomic_store_explicit(&ring->read, read + 1, memory_order_release);
    return pointer;
}

static inline void *ring_get(struct ring *ring)
{
    void *pointer = ring_try_get(ring);

    for (unsigned spins = 0; pointer == NULL; pointer = ring_try_get(ring))
        ring_wait(&spins);
    return pointer;
}

#endif
