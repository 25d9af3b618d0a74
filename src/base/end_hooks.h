/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks that run when a group of threads has ended, before its waiters are notified. For layers
 * that groups do not know. They run on the last thread of the group, after its thread-locals were
 * removed, or on the thread that ended the group if it had no threads.
 */
#ifndef WEIR_BASE_END_HOOKS_H
#define WEIR_BASE_END_HOOKS_H

typedef void weir__end_hook_fn(void);

/* Adds a hook permanently. A hook that was added before is ignored. */
void weir__end_hook_add(weir__end_hook_fn *fn);

/* Calls the hooks in the order in which they were added. */
void weir__end_hooks_run(void);

#endif
