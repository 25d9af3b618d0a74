/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference counts. Only a holder of a reference may retain another.
 *
 * The release of a sole owner executes no locked instruction, because it reads before it subtracts:
 * - A holder that reads 1 holds the only reference. Only a holder may retain, so no other thread
 * can
 *     be changing the count.
 * - Earlier holders released with a fetch_sub in release order. The acquire load reads 1 from the
 *     last of them, or from a later read-modify-write, which continues its release sequence; so
 *     everything that they did to the object happens before the destruction.
 * Therefore a lookup that retains without holding a reference (a table, a weak pointer) is
 * forbidden: it could retain between the read and the free.
 *
 * In Debug builds the last release stores a count of 0, so that a further release fails an
 * assertion if the memory is still accessible. WEIR__ASSERT_HELD names the public function in that
 * assertion.
 */
#ifndef WEIR_BASE_REFCOUNT_H
#define WEIR_BASE_REFCOUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* `held` is false if no references are left; `text` names the function and the object. */
#ifdef NDEBUG
#define WEIR__ASSERT_HELD(held, text) ((void)(false && (held)))
#else
#define WEIR__ASSERT_HELD(held, text) assert((held) && text)
#endif

typedef struct weir__refs {
    _Atomic uint32_t count;
} weir__refs;

/* Initializes the count to one reference, the creator's. */
static inline void weir__refs_init(weir__refs *refs)
{
    atomic_init(&refs->count, 1);
}

static inline void weir__refs_retain(weir__refs *refs)
{
    /* Relaxed: passing the pointer to the new holder orders the rest. */
    uint32_t before = atomic_fetch_add_explicit(&refs->count, 1, memory_order_relaxed);

    assert(before > 0 && before < UINT32_MAX);
    (void)before;
}

/* For assertions. */
static inline bool weir__refs_are_held(const weir__refs *refs)
{
    return atomic_load_explicit(&refs->count, memory_order_relaxed) > 0;
}

/* Releases a reference. True if it was the last: then the caller frees the object. */
static inline bool weir__refs_release(weir__refs *refs)
{
    WEIR__ASSERT_HELD(weir__refs_are_held(refs), "an object was released more often than retained");
    if (atomic_load_explicit(&refs->count, memory_order_acquire) == 1) {
#ifndef NDEBUG
        atomic_store_explicit(&refs->count, 0, memory_order_relaxed); /* for the assertions */
#endif
        return true;
    }
    /* There was another holder, which may have released meanwhile: then this is the last one. */
    return atomic_fetch_sub_explicit(&refs->count, 1, memory_order_acq_rel) == 1;
}

#endif
