/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of a weir_local, for static variables of the library.
 */
#ifndef WEIR_BASE_LOCAL_H
#define WEIR_BASE_LOCAL_H

#include <stdint.h>

#include <weir/thread.h>

struct weir_local {
    uint32_t index;
    weir_local_remove_fn *on_remove;
};

/* Index of the exit hooks of a thread; removed after all other variables. */
#define WEIR__LOCAL_EXIT_HOOKS 0

#endif
