/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer suite on jemalloc, in place of the C library's malloc. */
#include "peers/allocator.h"

#include <jemalloc/jemalloc.h>

#define ALL_ARENAS "4096"

_Static_assert(MALLCTL_ARENAS_ALL == 4096, "what stands for all arenas in a name");

static uint64_t bytes_allocated(void)
{
    uint64_t bytes;
    size_t size = sizeof(bytes);

    bench_require(mallctl("thread.allocated", &bytes, &size, NULL, 0) == 0, "mallctl");
    return bytes;
}

static bool malloc_is_theirs(void)
{
    uint64_t before = bytes_allocated();

    item_give(take_and_use(PROBE_SIZE), PROBE_SIZE);
    return bytes_allocated() - before >= PROBE_SIZE;
}

static void items_trim(void)
{
    bench_require(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0, "mallctl");
    bench_require(mallctl("arena." ALL_ARENAS ".purge", NULL, NULL, NULL, 0) == 0, "mallctl");
}
