/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of other threads' heaps that were released by this thread, collected per heap and returned
 * in batches. A thread has a few outboxes; heaps that share one flush each other.
 */
#ifndef WEIR_BUFFER_OUTBOX_H
#define WEIR_BUFFER_OUTBOX_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/buf.h>

#include "buffer/owned_counter.h"

#define WEIR__OUTBOX_COUNT 16u

struct weir__heap;

typedef struct weir__outbox {
    _Atomic(struct weir__heap *) owner; /* heap of the blocks; undefined when empty */
    weir__owned_counter count;          /* owner and count are read by any thread */
    uint32_t bytes;
    weir_buf *first; /* linked by `block` */
    weir_buf *last;
} weir__outbox;

typedef struct weir__outboxes {
    uint32_t filled; /* one bit per non-empty outbox */
    weir__outbox boxes[WEIR__OUTBOX_COUNT];
} weir__outboxes;

/* Adds a free block of `owner`, with `bytes` of payload. */
void weir__outbox_put(weir__outboxes *outboxes, struct weir__heap *owner, weir_buf *block,
                      uint32_t bytes);
void weir__outbox_flush(weir__outboxes *outboxes);

#endif
