/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table, compared with an array.
 */
#include "base/table.h"

#include <string.h>

#include "os/random.h"
#include "support/memory.h"
#include "support/test.h"

#define ITEMS 500

struct thing {
    weir__table_item item;
    bool is_in;
};

static struct thing things[ITEMS];

static void prepare(weir__table *table, uint64_t stride)
{
    memset(things, 0, sizeof(things));
    for (uint64_t i = 0; i < ITEMS; i++)
        things[i].item.key = i * stride;
    weir__table_init(table);
}

static void toggle(weir__table *table, struct thing *thing)
{
    if (thing->is_in)
        weir__table_remove(table, &thing->item);
    else
        weir__table_add(table, &thing->item);
    thing->is_in = !thing->is_in;
}

static void assert_agrees(const weir__table *table)
{
    size_t count = 0;

    for (size_t i = 0; i < ITEMS; i++) {
        assert_ptr_equal(weir__table_find(table, things[i].item.key),
                         things[i].is_in ? &things[i].item : NULL);
        count += things[i].is_in;
    }
    assert_int_equal(table->count, count);
}

static void toggle_at_random(uint64_t stride)
{
    weir__random random;
    weir__table table;

    weir__random_init(&random, stride);
    prepare(&table, stride);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 100; i++)
            toggle(&table, &things[weir__random_below(&random, ITEMS)]);
        assert_agrees(&table);
    }
    weir__table_deinit(&table);
}

TEST(table, finds_what_is_in_it)
{
    toggle_at_random(1);
    toggle_at_random(4096);
    toggle_at_random(UINT64_C(1) << 55);
}

TEST(table, of_nothing_finds_nothing)
{
    weir__table table;

    weir__table_init(&table);
    assert_null(weir__table_find(&table, 0));
    weir__table_deinit(&table);
}

TEST(table, grows_with_what_is_in_it)
{
    weir__table table;

    prepare(&table, 1);
    for (size_t i = 0; i < ITEMS; i++)
        toggle(&table, &things[i]);
    assert_in_range((size_t)1 << table.bits, ITEMS / 2, ITEMS * 8);
    assert_in_range(test_memory_allocations(), 1, 10);
    weir__table_deinit(&table);
}

TEST(table, does_without_memory)
{
    weir__table table;

    prepare(&table, 1);
    for (size_t i = 0; i < ITEMS; i++) {
        test_memory_fail_at(1);
        toggle(&table, &things[i]);
    }
    assert_true(test_memory_failed());
    assert_int_equal(table.bits, 0);
    assert_agrees(&table);
    test_memory_fail_at(0);
    weir__table_deinit(&table);
}
