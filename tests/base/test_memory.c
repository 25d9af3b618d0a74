/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator hook and functions built on it; and the test allocator.
 */
#include "support/test.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/memory.h"

TEST(memory, zalloc_is_zero_although_alloc_is_not)
{
    unsigned char *junk = weir__alloc(64);
    unsigned char *zero = weir__zalloc(64);

    assert_int_not_equal(junk[63], 0);
    for (int i = 0; i < 64; i++)
        assert_int_equal(zero[i], 0);
    weir__free(junk);
    weir__free(zero);
}

TEST(memory, realloc_keeps_the_contents)
{
    char *text = weir__realloc(NULL, 4);

    memcpy(text, "abc", 4);
    text = weir__realloc(text, 4000);
    assert_string_equal(text, "abc");
    text = weir__realloc(text, 2);
    assert_memory_equal(text, "ab", 2);
    weir__free(text);
}

TEST(memory, public_functions_use_the_hook)
{
    size_t before = test_memory_live();
    char *text = weir_memory_alloc(4), *longer;

    memcpy(text, "abc", 4);
    assert_int_equal(test_memory_live(), before + 1);
    longer = weir_memory_realloc(text, 4000);
    assert_string_equal(longer, "abc");
    test_memory_fail_at(1);
    assert_null(weir_memory_alloc(1));
    weir_memory_free(longer);
    weir_memory_free(NULL);
    assert_int_equal(test_memory_live(), before);
}

TEST(memory, realloc_that_fails_leaves_the_block)
{
    char *text = weir__strdup("abc");

    test_memory_fail_at(1);
    assert_null(weir__realloc(text, 4000));
    assert_string_equal(text, "abc");
    weir__free(text);
}

TEST(memory, every_function_returns_null_without_memory)
{
    test_memory_fail_at(1);
    assert_null(weir__alloc(1));
    test_memory_fail_at(1);
    assert_null(weir__zalloc(1));
    test_memory_fail_at(1);
    assert_null(weir__strdup("abc"));
    test_memory_fail_at(1);
    assert_null(weir__aligned_zalloc(64, 1));
    weir__free(NULL);
    weir__aligned_free(NULL, 1);
}

TEST(memory, aligned_memory_is_aligned_and_zero)
{
    for (size_t alignment = sizeof(void *); alignment <= 4096; alignment *= 2) {
        unsigned char *memory = weir__aligned_zalloc(alignment, 100);

        assert_int_equal((uintptr_t)memory % alignment, 0);
        for (int i = 0; i < 100; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, 100);
        weir__aligned_free(memory, 100);
    }
}

/* Otherwise valgrind calls it possibly lost. The size of a pointer into a block is garbage. */
TEST(memory, aligned_memory_of_malloc_is_a_block_of_its_own)
{
    unsigned char *memory[8];

    assert_int_equal(weir_memory_set(NULL), 0);
    for (int i = 0; i < 8; i++) {
        memory[i] = weir__aligned_zalloc(1024, 100);
        assert_int_equal((uintptr_t)memory[i] % 1024, 0);
        assert_in_range(malloc_usable_size(memory[i]), 100, 2048);
        memset(memory[i], 0xff, 100);
    }
    for (int i = 0; i < 8; i++)
        weir__aligned_free(memory[i], 100);
    test_memory_install();
}

TEST(memory, a_size_that_overflows_fails)
{
    volatile size_t huge = SIZE_MAX - 8; /* not a constant, which the compiler would reject */

    assert_null(weir__aligned_zalloc(64, huge));
    assert_null(weir__alloc(huge));
}

struct counts {
    int allocs, reallocs, frees;
};

static void *counting_alloc(void *user_data, size_t size)
{
    ((struct counts *)user_data)->allocs++;
    return malloc(size);
}

static void *counting_realloc(void *user_data, void *memory, size_t size)
{
    ((struct counts *)user_data)->reallocs++;
    return realloc(memory, size);
}

static void counting_free(void *user_data, void *memory)
{
    ((struct counts *)user_data)->frees++;
    free(memory);
}

TEST(memory, everything_goes_through_the_hook)
{
    struct counts counts = {0};
    weir_memory hook = {counting_alloc, counting_realloc, counting_free, &counts};

    assert_int_equal(weir_memory_set(&hook), 0);
    weir__free(weir__realloc(weir__realloc(NULL, 8), 16));
    weir__aligned_free(weir__aligned_zalloc(64, 8), 8);
    weir__free(weir__strdup("abc"));
    weir__free(NULL);
    test_memory_install();

    assert_int_equal(counts.allocs, 3);
    assert_int_equal(counts.reallocs, 1);
    assert_int_equal(counts.frees, 3);
}

TEST(memory, null_restores_malloc)
{
    assert_int_equal(weir_memory_set(NULL), 0);
    weir__free(weir__alloc(8));
    test_memory_install();
    assert_int_equal(test_memory_allocations(), 0);
}

TEST(memory, a_hook_with_a_function_missing_is_refused)
{
    struct counts counts = {0};
    const weir_memory hooks[] = {
        {NULL, counting_realloc, counting_free, &counts},
        {counting_alloc, NULL, counting_free, &counts},
        {counting_alloc, counting_realloc, NULL, &counts},
    };

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_memory_set(&hooks[i]), -EINVAL);
    weir__free(weir__alloc(8));
    assert_int_equal(test_memory_allocations(), 1);
    assert_int_equal(counts.allocs, 0);
}

TEST(memory, the_test_allocator_counts_and_fails_once)
{
    void *first, *third;

    test_memory_fail_at(2);
    first = weir__alloc(1);
    assert_false(test_memory_failed());
    assert_null(weir__alloc(1));
    assert_true(test_memory_failed());
    third = weir__alloc(1);
    assert_int_equal(test_memory_allocations(), 3);
    assert_int_equal(test_memory_live(), 2);
    weir__free(first);
    weir__free(third);
    assert_int_equal(test_memory_live(), 0);
}
