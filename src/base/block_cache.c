/* SPDX-License-Identifier: Apache-2.0 */
#include "base/block_cache.h"

#include <weir/thread.h>

#include "base/memory.h"
#include "base/poison.h"

#ifdef WEIR__ASAN
#define KEEPS_BLOCKS false
#else
#define KEEPS_BLOCKS true
#endif

_Thread_local weir__blocks weir__blocks_kept[WEIR__BLOCK_SIZES];

static _Thread_local bool ends_with_thread; /* on_thread_end will be called */

/* Sizes are rounded up, because a kept block serves all sizes of its unit. */
void *weir__block_alloc_slow(size_t size)
{
    return weir__alloc((size + WEIR__BLOCK_UNIT - 1) / WEIR__BLOCK_UNIT * WEIR__BLOCK_UNIT);
}

static void on_thread_end(void *arg)
{
    (void)arg;
    ends_with_thread = false;
    for (unsigned i = 0; i < WEIR__BLOCK_SIZES; i++) {
        weir__block *block = weir__blocks_kept[i].first, *next;

        weir__blocks_kept[i] = (weir__blocks){0};
        for (; block != NULL; block = next) {
            next = block->next;
            weir__free(block);
        }
    }
}

/* The first free of a thread makes room. */
void weir__block_free_slow(void *memory, size_t size)
{
    if (!KEEPS_BLOCKS || !weir__memory_is_system() || ends_with_thread ||
        size > WEIR__BLOCK_SIZES * WEIR__BLOCK_UNIT ||
        weir_thread_on_exit(on_thread_end, NULL) < 0) {
        weir__free(memory);
        return;
    }
    ends_with_thread = true;
    for (unsigned i = 0; i < WEIR__BLOCK_SIZES; i++)
        weir__blocks_kept[i].room = WEIR__BLOCKS_MAX;
    weir__block_free(memory, size);
}
