/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks: slots that fill up from the front and are never emptied.
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
    assert(!"more ending hooks than there is room for");
}

void weir__end_hooks_run(void)
{
    weir__end_hook_fn *fn;

    for (int i = 0; i < HOOKS_MAX; i++) {
        /* Acquire: what the hook relies on was made before it was added. */
        fn = atomic_load_explicit(&hooks[i], memory_order_acquire);
        if (fn == NULL)
            return;
        fn();
    }
}
