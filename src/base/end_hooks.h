/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done when a group of threads has ended, before anybody who waits for it hears of it.
 * Layers that groups do not know of add a hook; it runs on the last of the group's threads, whose
 * thread-locals are gone, or on the one that ended the group if it had none.
 */
#ifndef WEIR_BASE_END_HOOKS_H
#define WEIR_BASE_END_HOOKS_H

typedef void weir__end_hook_fn(void);

/* Adds a hook for as long as the process runs; one that is there already is not added again. */
void weir__end_hook_add(weir__end_hook_fn *fn);

/* Calls the hooks, in the order added. */
void weir__end_hooks_run(void);

#endif
