/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory mapped from the system, in whole pages. All calls of mmap are here.
 */
#ifndef WEIR_OS_PAGES_H
#define WEIR_OS_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Rounds up to the page size; 0 on overflow. */
size_t weir__pages_round(size_t size);

/* Maps zeroed pages; `size` is a multiple of the page size, not 0. NULL without memory. */
void *weir__pages_map(size_t size);
void weir__pages_unmap(void *pages, size_t size);

/* The number of bytes currently mapped. */
size_t weir__pages_mapped(void);

/* For tests: called before each map, which fails if it returns false. NULL = none. Set during
 * setup. */
typedef bool weir__pages_hook_fn(void);

void weir__pages_set_hook(weir__pages_hook_fn *gate);

#endif
