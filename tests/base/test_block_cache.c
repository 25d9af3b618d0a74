/* SPDX-License-Identifier: Apache-2.0 */
/* Small blocks that each thread keeps. */
#include "base/block_cache.h"

#include <string.h>

#include <weir/memory.h>
#include <weir/thread.h>

#include "base/poison.h"
#include "support/memory.h"
#include "support/test.h"

static unsigned kept(size_t index)
{
    unsigned count = 0;

    for (const weir__block *block = weir__blocks_kept[index].first; block; block = block->next)
        count++;
    return count;
}

TEST(block_cache, keeps_nothing_if_the_program_has_an_allocator_of_its_own)
{
    weir__block_free(weir__block_alloc(200), 200);
    assert_int_equal(kept(3), 0);
}

TEST(block_cache, has_no_block_without_memory)
{
    test_memory_fail_at(1);
    assert_null(weir__block_alloc(64));
}

#ifndef WEIR__ASAN /* keeps nothing */

/* Instead of the allocator of the tests. */
static void with_system_memory(void (*body)(void))
{
    weir_locals_remove_all();
    assert_int_equal(weir_memory_set(NULL), 0);
    body();
    weir_locals_remove_all();
    for (size_t i = 0; i < WEIR__BLOCK_SIZES; i++)
        assert_int_equal(kept(i), 0);
    test_memory_install();
}

static void reuse(void)
{
    void *block = weir__block_alloc(200), *other;

    weir__block_free(block, 200);
    assert_int_equal(kept(3), 1);
    other = weir__block_alloc(256);
    assert_ptr_equal(other, block);
    memset(other, 1, 256);
    weir__block_free(other, 256);
    other = weir__block_alloc(192);
    assert_ptr_not_equal(other, block);
    weir__block_free(other, 192);
}

TEST(block_cache, a_freed_block_is_reused_for_a_size_of_the_same_unit)
{
    with_system_memory(reuse);
}

static void free_too_many(void)
{
    enum { COUNT = WEIR__BLOCKS_MAX + 10 };
    static void *blocks[COUNT];

    for (int i = 0; i < COUNT; i++)
        blocks[i] = weir__block_alloc(64);
    for (int i = 0; i < COUNT; i++)
        weir__block_free(blocks[i], 64);
    assert_int_equal(kept(0), WEIR__BLOCKS_MAX);
}

TEST(block_cache, keeps_a_limited_number)
{
    with_system_memory(free_too_many);
}

static void free_large(void)
{
    const size_t size = WEIR__BLOCK_SIZES * WEIR__BLOCK_UNIT + 1;

    weir__block_free(weir__block_alloc(size), size);
}

TEST(block_cache, does_not_keep_large_blocks)
{
    with_system_memory(free_large);
}

#endif
