/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks that run after each turn of an executor, before it waits, on its thread. For layers that
 * executors do not know.
 */
#ifndef WEIR_BASE_TURN_HOOKS_H
#define WEIR_BASE_TURN_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

#define WEIR__TURN_HOOKS_MAX 4

/*
 * `now_ns` is the time of the executor's clock; `sleeps` is true if it is about to sleep. Returns
 * the time at which the hook wants to be called again; WEIR_NEVER = none.
 */
typedef int64_t weir__turn_hook_fn(bool sleeps, int64_t now_ns);

/* Adds a hook permanently. A hook that was added before is ignored. */
void weir__turn_hook_add(weir__turn_hook_fn *fn);

extern _Atomic(weir__turn_hook_fn *) weir__turn_hooks[WEIR__TURN_HOOKS_MAX];

/* Calls the hooks and returns the earliest of their times. */
static inline int64_t weir__turn_hooks_run(bool sleeps, int64_t now_ns)
{
    int64_t until_ns = WEIR_NEVER, wanted_ns;
    weir__turn_hook_fn *fn;

    for (int i = 0; i < WEIR__TURN_HOOKS_MAX; i++) {
        /* Acquire: pairs with the release in weir__turn_hook_add. */
        fn = atomic_load_explicit(&weir__turn_hooks[i], memory_order_acquire);
        if (fn == NULL)
            break;
        wanted_ns = fn(sleeps, now_ns);
        until_ns = wanted_ns < until_ns ? wanted_ns : until_ns;
    }
    return until_ns;
}

#endif
