/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done for a thread at the end of each turn of its executor, and before it sleeps. Layers
 * that executors do not know of add a hook; it runs on every executor's thread, for that thread.
 */
#ifndef WEIR_BASE_TURN_HOOKS_H
#define WEIR_BASE_TURN_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

#define WEIR__TURN_HOOKS_MAX 4

/*
 * `now_ns` is the time of the executor's clock, `sleeps` says that it is about to wait. Returns
 * until when it may: then the hook is called again. WEIR_NEVER = as long as it likes.
 */
typedef int64_t weir__turn_hook_fn(bool sleeps, int64_t now_ns);

/* Adds a hook for as long as the process runs; one that is there already is not added again. */
void weir__turn_hook_add(weir__turn_hook_fn *fn);

extern _Atomic(weir__turn_hook_fn *) weir__turn_hooks[WEIR__TURN_HOOKS_MAX];

/* Calls the hooks: the earliest of what they return. */
static inline int64_t weir__turn_hooks_run(bool sleeps, int64_t now_ns)
{
    int64_t until_ns = WEIR_NEVER, wanted_ns;
    weir__turn_hook_fn *fn;

    for (int i = 0; i < WEIR__TURN_HOOKS_MAX; i++) {
        /* Acquire: what the hook relies on was made before it was added. */
        fn = atomic_load_explicit(&weir__turn_hooks[i], memory_order_acquire);
        if (fn == NULL)
            break;
        wanted_ns = fn(sleeps, now_ns);
        until_ns = wanted_ns < until_ns ? wanted_ns : until_ns;
    }
    return until_ns;
}

#endif
