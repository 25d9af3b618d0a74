/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages from the system.
 */
#include "os/pages.h"

#include <unistd.h>

#include "support/memory.h"
#include "support/test.h"

TEST(pages, sizes_are_rounded_up_to_whole_pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    assert_int_equal(weir__pages_round(1), page);
    assert_int_equal(weir__pages_round(page), page);
    assert_int_equal(weir__pages_round(page + 1), 2 * page);
    assert_int_equal(weir__pages_round(SIZE_MAX - page + 1), SIZE_MAX - page + 1);
    assert_int_equal(weir__pages_round(SIZE_MAX - page + 2), 0);
}

TEST(pages, are_aligned_zero_and_counted)
{
    size_t size = weir__pages_round(100000), before = weir__pages_mapped();
    unsigned char *pages = weir__pages_map(size);

    assert_non_null(pages);
    assert_int_equal((uintptr_t)pages % weir__pages_round(1), 0);
    for (size_t i = 0; i < size; i += 512)
        assert_int_equal(pages[i], 0);
    pages[size - 1] = 1;
    assert_int_equal(weir__pages_mapped(), before + size);
    weir__pages_unmap(pages, size);
    assert_int_equal(weir__pages_mapped(), before);
}

TEST(pages, that_the_system_does_not_have_are_refused)
{
    size_t before = weir__pages_mapped();

    assert_null(weir__pages_map(weir__pages_round(SIZE_MAX / 2)));
    assert_int_equal(weir__pages_mapped(), before);
}

TEST(pages, count_as_an_allocation_of_the_test)
{
    size_t size = weir__pages_round(1);
    void *pages;

    test_memory_fail_at(2);
    pages = weir__pages_map(size);
    assert_non_null(pages);
    assert_null(weir__pages_map(size));
    assert_true(test_memory_failed());
    assert_null(weir__pages_map(size)); /* a second attempt */
    test_memory_fail_at(0);
    weir__pages_unmap(pages, size);
}
