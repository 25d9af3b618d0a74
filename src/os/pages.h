/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory straight from the system, in whole pages: the only door to mmap.
 */
#ifndef WEIR_OS_PAGES_H
#define WEIR_OS_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* The smallest multiple of the page size that holds `size` bytes; 0 if there is none. */
size_t weir__pages_round(size_t size);

/* `size` is a multiple of the page size, not 0. Zeroed, page-aligned; NULL when there is none. */
void *weir__pages_map(size_t size);
void weir__pages_unmap(void *pages, size_t size);

/* Bytes that are mapped now. */
size_t weir__pages_mapped(void);

/* For tests: asked before each map, which fails if it says no. NULL = none. Set it during setup. */
typedef bool weir__pages_hook_fn(void);

void weir__pages_set_hook(weir__pages_hook_fn *gate);

#endif
