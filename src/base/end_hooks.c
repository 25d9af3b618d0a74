/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks are added in order and never removed.
 */
#include "base/end_hooks.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#define HOOKS_MAX 4

static _Atomic(weir__end_hook_fn *) hooks[HOOKS_MAX];

void weir__end_hook_add(weir__end_hook_fn *fn)
{
    for (int i = 0; i < HOOKS_MAX; i++) {
        weir__end_hook_fn *current = NULL;

        if (atomic_compare_exchange_strong_explicit(&hooks[i], &current, fn, memory_order_release,
                                                    memory_order_relaxed) ||
            current == fn)
            return;
    }
    assert(!"too many end hooks");
}

void weir__end_hooks_run(void)
{
    weir__end_hook_fn *fn;

    for (int i = 0; i < HOOKS_MAX; i++) {
        /* Acquire: pairs with the release in weir__end_hook_add. */
        fn = atomic_load_explicit(&hooks[i], memory_order_acquire);
        if (fn == NULL)
            return;
        fn();
    }
}
