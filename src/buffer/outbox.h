/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of another thread's heap that were released here, on their way home: collected per heap
 * and brought in one go. A thread has a few outboxes; heaps that meet in one flush each other.
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
    _Atomic(struct weir__heap *) owner; /* whose blocks they are; of no meaning when empty */
    weir__owned_counter count;          /* both are read by any thread */
    uint32_t bytes;
    weir_buf *first; /* linked by `block` */
    weir_buf *last;
} weir__outbox;

typedef struct weir__outboxes {
    uint32_t filled; /* a bit for each that is not empty */
    weir__outbox boxes[WEIR__OUTBOX_COUNT];
} weir__outboxes;

/* Puts a free block of `owner`, with `bytes` of payload, on its way. */
void weir__outbox_put(weir__outboxes *outboxes, struct weir__heap *owner, weir_buf *block,
                      uint32_t bytes);
void weir__outbox_flush(weir__outboxes *outboxes);

#endif
