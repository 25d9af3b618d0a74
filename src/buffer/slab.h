/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slab: memory mapped from the system, with a descriptor of 64 bytes and blocks of one class,
 * each with its header in front. A huge block is a slab without a heap.
 *
 *     +------+--------+---------+--------+---------+----
 *     | slab | header | payload | header | payload | ...
 *     +------+--------+---------+--------+---------+----
 *
 * Mapped memory is counted and limited here.
 */
#ifndef WEIR_BUFFER_SLAB_H
#define WEIR_BUFFER_SLAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/buf.h>

#include "base/poison.h"
#include "buffer/size_class.h"

#define WEIR__CLASS_HUGE WEIR__CLASS_COUNT

struct weir__heap;

typedef struct weir__slab {
    struct weir__heap *heap; /* NULL = huge; constant */
    struct weir__slab *next; /* of the same heap and class */
    size_t bytes;
    uint32_t size_class;
    uint32_t stride;
    uint32_t room;   /* capacity in blocks */
    uint32_t carved; /* blocks carved so far */
    uint32_t idle;   /* for trimming: free blocks */
    bool to_unmap;   /* for trimming */
} __attribute__((aligned(64))) weir__slab;

_Static_assert(sizeof(weir__slab) == WEIR__LINE, "blocks begin on a line");
_Static_assert(sizeof(weir_buf) == WEIR__LINE, "so does the payload");

/* Return NULL above the limit, or if the system has no memory. */
weir__slab *weir__slab_map(struct weir__heap *heap, unsigned size_class);
weir__slab *weir__slab_map_huge(size_t payload);
void weir__slab_unmap(weir__slab *slab);

/* The size of a block of this class, header and payload. */
static inline size_t weir__class_stride(unsigned size_class)
{
    return sizeof(weir_buf) + weir__class_size(size_class);
}

/* The size of a slab of this class. */
size_t weir__slab_bytes(unsigned size_class);

/* The payload of weir__slab_map_huge(payload). */
size_t weir__slab_huge_size(size_t payload);

static inline weir_buf *weir__slab_block(weir__slab *slab, uint32_t index)
{
    return (weir_buf *)(void *)((char *)(slab + 1) + (size_t)index * slab->stride);
}

static inline weir__slab *weir__slab_of(const weir_buf *block)
{
    return block->slab;
}

/* Mapped memory. Each counter is exact by itself. Relaxed: they publish no other data. */
typedef struct weir__mapped_class {
    _Atomic int64_t bytes;
    _Atomic int64_t peak_bytes;
    _Atomic int64_t failures;
} weir__mapped_class;

typedef struct weir__mapped {
    _Atomic int64_t bytes;
    _Atomic int64_t peak_bytes;
    _Atomic int64_t limit_bytes; /* 0 = none */
    _Atomic int64_t failures;    /* failed allocations */
    _Atomic int64_t huge_count;
    weir__mapped_class classes[WEIR__CLASS_COUNT + 1]; /* the last is WEIR__CLASS_HUGE */
} weir__mapped;

extern weir__mapped weir__mapped_now;

#endif
