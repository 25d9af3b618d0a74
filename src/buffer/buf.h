/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this layer know of each other's buffers.
 *
 *      msg.flags    0-3    kind, below
 *                   4      WEIR_BUF_FLAG_READ_ONLY
 *                   5      WEIR__LEAK_WATCHED (buffer/leak.h)
 *                   8-15   the pool's size class of the block that the header stands in
 *
 * Every header stands at the front of a block of the pool, whatever its bytes are in, so `owner`,
 * `slab` and the class are the pool's in every kind.
 */
#ifndef WEIR_BUFFER_BUF_H
#define WEIR_BUFFER_BUF_H

#include <weir/buf.h>

enum weir__buf_kind {
    WEIR__BUF_POOLED,  /* behind its header, or in `block` since it has grown */
    WEIR__BUF_VIEW,    /* in the memory of `block`, its root, of which it holds a reference */
    WEIR__BUF_WRAPPED, /* in memory of the user's; how to free it stands behind the header */
    WEIR__BUF_STATIC,  /* in memory that never goes */
};

#define WEIR__BUF_KIND_MASK 0x0fu

static inline enum weir__buf_kind weir__buf_kind(const weir_buf *buf)
{
    return (enum weir__buf_kind)(buf->msg.flags & WEIR__BUF_KIND_MASK);
}

/* The memory behind the header, where a block's payload is. */
static inline uint8_t *weir__buf_payload(weir_buf *block)
{
    return (uint8_t *)(block + 1);
}

#endif
