/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers/allocator.h - the buffer suite on what malloc and free are in this program: bare memory,
 * without a header and a count. The program defines items_trim and malloc_is_theirs after it.
 */
#ifndef BENCH_PEERS_ALLOCATOR_H
#define BENCH_PEERS_ALLOCATOR_H

typedef void item;
#include "buffer/competitor.h"

#include <stdlib.h>

/* More than any of them keeps at hand for a thread, less than what it has the system map. */
enum { PROBE_SIZE = 64 << 10 };

/* Whether a malloc of PROBE_SIZE is served by the library that the program is named after. */
static bool malloc_is_theirs(void);

static inline item *item_take(size_t size)
{
    item *it = malloc(size);

    require(it != NULL, "malloc");
    return it;
}

static inline uint8_t *item_bytes(item *it)
{
    return it;
}

static inline void item_give(item *it, size_t size)
{
    (void)size;
    free(it);
}

static inline void item_give_far(item *it, size_t size)
{
    item_give(it, size);
}

#include "buffer/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        {"now", now_case},   {"live", live_case}, {"far", far_case},
        {"ring", ring_case}, {NULL, NULL},
    };

    bench_require(malloc_is_theirs(), "allocating from the library");
    return bench_main(argc, argv, cases);
}

#endif
