/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where buffers come from: blocks of header and payload, from the calling thread's heap.
 */
#ifndef WEIR_BUFFER_POOL_H
#define WEIR_BUFFER_POOL_H

#include <weir/buf.h>
#include <weir/pool.h>

/* Where in a block's msg.flags its size class is, in eight bits. */
#define WEIR__POOL_CLASS_SHIFT 8

/*
 * A block: a header, and behind it at least `payload` bytes (0 = a header alone, for views and
 * wrappers). NULL when there is no memory, and beyond WEIR_BUF_MAX. Sets `data`, `capacity`,
 * `owner`, `block` to NULL, and the size class in `msg.flags`; the caller sets the rest. Until the
 * block is given back `slab` and the size class must stay; where `owner` stays too, giving it back
 * is quicker.
 */
weir_buf *weir__pool_alloc(size_t payload);

/* Takes the block back, from any thread. What else hangs on it is the caller's. */
void weir__pool_free(weir_buf *block);

/* The capacity that weir__pool_alloc(payload) gives; `payload` is at most WEIR_BUF_MAX. */
size_t weir__pool_capacity_for(size_t payload);

#endif
