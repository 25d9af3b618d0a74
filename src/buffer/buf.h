/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of buffers.
 *
 *      msg.flags    0-3    kind, below
 *                   4      WEIR_BUF_FLAG_READ_ONLY
 *                   5      WEIR__LEAK_WATCHED (buffer/leak.h)
 *                   6      WEIR__BUF_CHANGED
 *                   8-31   for the pool (buffer/pool.h)
 *
 * Every header is at the start of a block of the pool, wherever its bytes are, so `owner`, `slab`
 * and the bits of the pool belong to the pool in all kinds.
 */
#ifndef WEIR_BUFFER_BUF_H
#define WEIR_BUFFER_BUF_H

#include <weir/buf.h>

#include "buffer/msg.h"

enum weir__buf_kind {
    WEIR__BUF_POOLED,  /* bytes behind the header, or in a second block after growth */
    WEIR__BUF_VIEW,    /* bytes of `block`, its root, to which it holds a reference */
    WEIR__BUF_WRAPPED, /* bytes of the user; the free function is stored behind the header */
    WEIR__BUF_STATIC,  /* bytes that are never freed */
};

#define WEIR__BUF_KIND_MASK 0x0fu

/* Set if a pooled buffer has a limit or has grown. Otherwise its header is that of a new block,
 * apart from the indices, and `block` is undefined. */
#define WEIR__BUF_CHANGED (1u << 6)

static inline enum weir__buf_kind weir__buf_kind(const weir_buf *buf)
{
    return (enum weir__buf_kind)(buf->msg.flags & WEIR__BUF_KIND_MASK);
}

/* True if another holder or a view may access the bytes; see weir__msg_is_sole. */
static inline bool weir__buf_is_shared(const weir_buf *buf)
{
    return !weir__msg_is_sole(&buf->msg) ||
           (weir__buf_kind(buf) == WEIR__BUF_VIEW && !weir__msg_is_sole(&buf->block->msg));
}

/* The payload of a block, behind its header. */
static inline uint8_t *weir__buf_payload(weir_buf *block)
{
    return (uint8_t *)(block + 1);
}

#endif
