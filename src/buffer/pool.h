/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: blocks of header and payload from the heap of the calling thread.
 */
#ifndef WEIR_BUFFER_POOL_H
#define WEIR_BUFFER_POOL_H

#include <weir/buf.h>
#include <weir/pool.h>

/* Position of the size class in msg.flags, eight bits. */
#define WEIR__POOL_CLASS_SHIFT 8

/*
 * Allocates a block: a header followed by at least `payload` bytes (0 = a header only, for views
 * and wrappers). NULL without memory, and above WEIR_BUF_MAX. Sets `data`, `capacity`, `owner`,
 * `block` (NULL) and the size class in `msg.flags`; the caller sets the rest. `slab` and the size
 * class must not change until the block is freed; if `owner` does not change either, freeing is
 * faster.
 */
weir_buf *weir__pool_alloc(size_t payload);

/* Frees a block, from any thread. Other resources of the buffer are up to the caller. */
void weir__pool_free(weir_buf *block);

/* The capacity of weir__pool_alloc(payload); `payload` is at most WEIR_BUF_MAX. */
size_t weir__pool_capacity_for(size_t payload);

#endif
