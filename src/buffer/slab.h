/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of memory from the system: 64 bytes about itself, then blocks of one class, each with its
 * header in front. A huge block is a slab of its own that belongs to no heap.
 *
 *     +------+--------+---------+--------+---------+----
 *     | slab | header | payload | header | payload | ...
 *     +------+--------+---------+--------+---------+----
 *
 * What is mapped is counted here, and limited.
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
    struct weir__heap *heap; /* NULL = huge; does not change */
    struct weir__slab *next; /* of the same heap and class */
    size_t bytes;
    uint32_t size_class;
    uint32_t stride;
    uint32_t room;   /* how many blocks it can be cut into */
    uint32_t carved; /* how many it has been cut into */
    uint32_t idle;   /* trim's: how many of these are free */
    bool to_unmap;   /* trim's: to be unmapped */
} __attribute__((aligned(64))) weir__slab;

_Static_assert(sizeof(weir__slab) == WEIR__LINE, "blocks begin on a line");
_Static_assert(sizeof(weir_buf) == WEIR__LINE, "so does the payload");

/* Both fail with NULL beyond the limit, or when the system has nothing left. */
weir__slab *weir__slab_map(struct weir__heap *heap, unsigned size_class);
weir__slab *weir__slab_map_huge(size_t payload);
void weir__slab_unmap(weir__slab *slab);

/* What a block of this class takes, header and payload. */
static inline size_t weir__class_stride(unsigned size_class)
{
    return sizeof(weir_buf) + weir__class_size(size_class);
}

/* What a slab of this class maps. */
size_t weir__slab_bytes(unsigned size_class);

/* What weir__slab_map_huge(payload) has room for. */
size_t weir__slab_huge_size(size_t payload);

static inline weir_buf *weir__slab_block(weir__slab *slab, uint32_t index)
{
    return (weir_buf *)(void *)((char *)(slab + 1) + (size_t)index * slab->stride);
}

static inline weir__slab *weir__slab_of(const weir_buf *block)
{
    return block->slab;
}

/* What is mapped. Each is exact by itself; relaxed, because they order nothing. */
typedef struct weir__mapped_class {
    _Atomic int64_t bytes;
    _Atomic int64_t peak_bytes;
    _Atomic int64_t failures;
} weir__mapped_class;

typedef struct weir__mapped {
    _Atomic int64_t bytes;
    _Atomic int64_t peak_bytes;
    _Atomic int64_t limit_bytes; /* 0 = none */
    _Atomic int64_t failures;    /* times that memory was asked for in vain */
    _Atomic int64_t huge_count;
    weir__mapped_class classes[WEIR__CLASS_COUNT + 1]; /* the last is WEIR__CLASS_HUGE */
} weir__mapped;

extern weir__mapped weir__mapped_now;

#endif
