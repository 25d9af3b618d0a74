/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer suite on mimalloc, in place of the C library's malloc. */
#include "peers/allocator.h"

#include <mimalloc.h>

static bool malloc_is_theirs(void)
{
    item *probe = take_and_use(PROBE_SIZE);
    bool theirs = mi_is_in_heap_region(probe);

    item_give(probe, PROBE_SIZE);
    return theirs;
}

static void items_trim(void)
{
    mi_collect(true);
}
