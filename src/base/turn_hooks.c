/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks are added in order and never removed, so that without hooks an executor reads one slot.
 */
#include "base/turn_hooks.h"

#include <assert.h>

_Atomic(weir__turn_hook_fn *) weir__turn_hooks[WEIR__TURN_HOOKS_MAX];

void weir__turn_hook_add(weir__turn_hook_fn *fn)
{
    for (int i = 0; i < WEIR__TURN_HOOKS_MAX; i++) {
        weir__turn_hook_fn *current = NULL;

        if (atomic_compare_exchange_strong_explicit(&weir__turn_hooks[i], &current, fn,
                                                    memory_order_release, memory_order_relaxed) ||
            current == fn)
            return;
    }
    assert(!"too many turn hooks");
}
