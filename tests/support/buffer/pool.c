/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks for tests.
 */
#include "support/buffer/pool.h"

#include <stdlib.h>

#include "os/thread.h"

struct blocks count_blocks(void)
{
    struct blocks sum = {0};
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    for (size_t i = 0; i < stats.class_count; i++) {
        sum.in_use += stats.classes[i].in_use;
        sum.cached += stats.classes[i].cached;
        sum.in_transit += stats.classes[i].in_transit;
    }
    return sum;
}

size_t take_blocks(weir_buf **blocks, size_t count, size_t payload)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = weir__pool_alloc(payload);
        if (blocks[i] == NULL)
            return i;
    }
    return count;
}

void give_blocks(weir_buf **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weir__pool_free(blocks[i]);
}

void run_on_thread(void (*fn)(void *arg), void *arg)
{
    weir__thread thread;

    if (weir__thread_start("test", fn, arg, &thread) < 0)
        abort();
    weir__thread_join(&thread);
}
