/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference count: who holds a reference may retain another or release its own.
 *
 * A sole owner's release costs no locked instruction, because it looks before it subtracts:
 *   - A count of 1 seen by a holder is the holder's own reference. Only a holder may retain, so
 *     nobody else can be changing the count.
 *   - Earlier holders left by fetch_sub with release order. The acquire load reads 1 from the last
 *     of them, or from a later read-modify-write, which continues its release sequence; so all that
 *     they did to the object happens before what the last owner does.
 * Therefore a look-up that retains without holding a reference (a table, a weak pointer) is
 * forbidden: it could retain between the look and the free.
 *
 * In Debug builds the last release leaves a count of 0, so that a further one fails an assertion if
 * the memory is still there. WEIR__ASSERT_HELD says so in the words of the public function.
 */
#ifndef WEIR_BASE_REFCOUNT_H
#define WEIR_BASE_REFCOUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* `held` is false if the object has no references left; `text` names the function and the object.
 */
#ifdef NDEBUG
#define WEIR__ASSERT_HELD(held, text) ((void)(false && (held)))
#else
#define WEIR__ASSERT_HELD(held, text) assert((held) && text)
#endif

typedef struct weir__refs {
    _Atomic uint32_t count;
} weir__refs;

/* One reference, the maker's. */
static inline void weir__refs_init(weir__refs *refs)
{
    atomic_init(&refs->count, 1);
}

static inline void weir__refs_retain(weir__refs *refs)
{
    /* Relaxed: the new holder gets the pointer from the old one, by a way that orders the rest. */
    uint32_t before = atomic_fetch_add_explicit(&refs->count, 1, memory_order_relaxed);

    assert(before > 0 && before < UINT32_MAX);
    (void)before;
}

/* For assertions. */
static inline bool weir__refs_are_held(const weir__refs *refs)
{
    return atomic_load_explicit(&refs->count, memory_order_relaxed) > 0;
}

/* Whether that was the last reference: if so, the caller frees the object. */
static inline bool weir__refs_release(weir__refs *refs)
{
    WEIR__ASSERT_HELD(weir__refs_are_held(refs), "an object was released more often than retained");
    if (atomic_load_explicit(&refs->count, memory_order_acquire) == 1) {
#ifndef NDEBUG
        atomic_store_explicit(&refs->count, 0, memory_order_relaxed); /* for the assertions */
#endif
        return true;
    }
    /* Somebody else held one a moment ago, but may have left meanwhile: then we are the last. */
    return atomic_fetch_sub_explicit(&refs->count, 1, memory_order_acq_rel) == 1;
}

#endif
