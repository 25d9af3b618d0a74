/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer suite on glibc's malloc. */
#include "peers/allocator.h"

#include <malloc.h>

static bool malloc_is_theirs(void)
{
    size_t before = mallinfo2().uordblks;
    item *probe = take_and_use(PROBE_SIZE);
    size_t grown = mallinfo2().uordblks - before;

    item_give(probe, PROBE_SIZE);
    return grown >= PROBE_SIZE;
}

static void items_trim(void)
{
    malloc_trim(0);
}
