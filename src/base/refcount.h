/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference counts, and the argument of every shortcut in them.
 *
 * Only a holder of a reference may retain another. Several threads may act on behalf of one holder
 * at the same time: a message that a program holds once and several loops share, a channel whose
 * only reference is the program's. So a thread that reads 1 is not alone, and retaining is one
 * read-modify-write. Releasing uses the reference up: nobody acts on its behalf beside that, or
 * later. So the count is never less than the references, and a release that reads 1 is alone.
 *
 * A table or a list is a holder, if it has references. A lookup retains on its behalf, under the
 * lock under which entries leave it. From pointers that hold no reference nothing can be retained.
 *
 * Shortcuts, which are loads or stores instead of read-modify-writes. The comment at each names its
 * row; each retain and release has a litmus test (tests/support/litmus.h) and a mutant.
 *
 *  release   weir__refs_release, weir_msg_release, weir_promise_release, `unref` in channel/ctx.c:
 *            no subtraction if the count is 1. It is the caller's reference, see above. Earlier
 *            holders released with a fetch_sub in release order. The acquire load reads 1 from the
 *            last of them, or from a later read-modify-write, which continues its release sequence;
 *            so everything that they did happens before the destruction. A promise must have no
 *            weak references either, which are in the same word.
 *  new       weir__promise_retain_new: stores 2. The promise has just been created, and no other
 *            thread knows it. Likewise the stores of 1 into blocks of the pool.
 *  owned     weir__msg_retain_owned: stores 2 if the count is 1. The reference was passed to the
 *            caller, and no code that could run beside it knows the message. The store ends the
 *            release sequence, but what earlier holders did happens before it because of the
 *            acquire load, and before the destruction because the caller's own reference is
 *            released or passed on after it. For a codec's received bytes only; Debug asserts it.
 *  sole      weir__msg_is_sole, weir__buf_is_shared: a count of 1 allows to write in place, to move
 *            bytes, to give descriptors away. The caller is changing the message, which is allowed
 *            to one thread, beside which no other one reads it. Another may retain it at that time
 *            for the same holder, but has to be ordered with the change to use it. Acquire: earlier
 *            holders have finished reading.
 *  context   weir__ctx_set_out stores the flag, and a context is not moved to another loop, if the
 *            count is 1: the pipeline's own reference, on behalf of which only callbacks of the
 *            handler retain, on this executor.
 *  exchange  weir_http_exchange_release and weir__http_exchange_release_memory store while
 *            `is_shared` is false: until the handler retains it, on the loop, no other thread knows
 *            an exchange.
 *  executor  weir__executor_is_unreferenced: counts of 2 are the group's and the caller's, its own
 *            thread. Others get members of a growing group from its leases, whose lock is held, or
 *            hold members_lock.
 *  static    Messages with WEIR_MSG_STATIC are not counted.
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
    /* Not a load and a store, see above. Relaxed: passing the pointer to the new holder orders the
     * rest. */
    uint32_t before = atomic_fetch_add_explicit(&refs->count, 1, memory_order_relaxed);

    assert(before > 0 && before < UINT32_MAX);
    (void)before;
}

/* For assertions. */
static inline bool weir__refs_are_held(const weir__refs *refs)
{
    return atomic_load_explicit(&refs->count, memory_order_relaxed) > 0;
}

/* Releases a reference. True if it was the last: then the caller frees the object. "release" above
 * is the argument for the load. */
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
