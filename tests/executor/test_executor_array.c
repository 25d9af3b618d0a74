/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executor arrays: elements are found by index while the array grows.
 */
#include "executor/executor_array.h"

#include <errno.h>

#include "os/thread.h"
#include "support/memory.h"
#include "support/test.h"

#define MANY 1000

/* Only addresses, never dereferenced. */
static char things[MANY];

static weir_executor *thing(size_t index)
{
    return (weir_executor *)(void *)&things[index];
}

static void put(weir__executor_array *shelf, size_t index)
{
    assert_int_equal(weir__executor_array_reserve(shelf), 0);
    weir__executor_array_append(shelf, thing(index));
}

TEST(executor_array, is_empty_at_first)
{
    weir__executor_array shelf;

    assert_int_equal(weir__executor_array_init(&shelf, 3), 0);
    assert_int_equal(weir__executor_array_count(&shelf), 0);
    assert_null(weir__executor_array_at(&shelf, 0));
    assert_null(weir__executor_array_at(&shelf, 3));
    assert_null(weir__executor_array_at(&shelf, SIZE_MAX));
    weir__executor_array_deinit(&shelf);
}

/* Blocks of odd lengths, too. */
TEST(executor_array, finds_elements_in_every_block)
{
    for (size_t first = 1; first <= 17; first += 4) {
        weir__executor_array shelf;

        assert_int_equal(weir__executor_array_init(&shelf, first), 0);
        for (size_t i = 0; i < MANY; i++) {
            put(&shelf, i);
            assert_int_equal(weir__executor_array_count(&shelf), i + 1);
            assert_null(weir__executor_array_at(&shelf, i + 1));
        }
        for (size_t i = 0; i < MANY; i++)
            assert_ptr_equal(weir__executor_array_at(&shelf, i), thing(i));
        weir__executor_array_deinit(&shelf);
    }
}

TEST(executor_array, is_unchanged_when_there_is_no_memory_for_a_block)
{
    weir__executor_array shelf;

    assert_int_equal(weir__executor_array_init(&shelf, 1), 0);
    put(&shelf, 0);
    test_memory_fail_at(1);
    assert_int_equal(weir__executor_array_reserve(&shelf), -ENOMEM);
    assert_int_equal(weir__executor_array_count(&shelf), 1);
    assert_null(weir__executor_array_at(&shelf, 1));
    put(&shelf, 1);
    assert_ptr_equal(weir__executor_array_at(&shelf, 1), thing(1));
    weir__executor_array_deinit(&shelf);
}

struct reading {
    weir__executor_array *shelf;
    size_t wrong;
};

static void read_all_the_time(void *arg)
{
    struct reading *reading = arg;
    size_t count;

    do {
        count = weir__executor_array_count(reading->shelf);
        for (size_t i = 0; i < count; i++)
            reading->wrong += weir__executor_array_at(reading->shelf, i) != thing(i);
    } while (count < MANY);
}

TEST(executor_array, is_read_while_it_grows)
{
    weir__executor_array shelf;
    struct reading reading = {.shelf = &shelf};
    weir__thread reader;

    assert_int_equal(weir__executor_array_init(&shelf, 2), 0);
    assert_int_equal(weir__thread_start("reader", read_all_the_time, &reading, &reader), 0);
    for (size_t i = 0; i < MANY; i++)
        put(&shelf, i);
    weir__thread_join(&reader);
    assert_int_equal(reading.wrong, 0);
    weir__executor_array_deinit(&shelf);
}
