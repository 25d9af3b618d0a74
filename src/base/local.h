/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a weir_local, for the variables of the library's own that need no allocation.
 */
#ifndef WEIR_BASE_LOCAL_H
#define WEIR_BASE_LOCAL_H

#include <stdint.h>

#include <weir/thread.h>

struct weir_local {
    uint32_t index;
    weir_local_remove_fn *on_remove;
};

/* Index of the variable that holds a thread's exit hooks; the only one removed after the others. */
#define WEIR__LOCAL_EXIT_HOOKS 0

#endif
