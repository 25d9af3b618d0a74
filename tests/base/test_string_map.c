/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash tables of names.
 */
#include "base/string_map.h"

#include <errno.h>
#include <stdio.h>

#include "support/memory.h"
#include "support/test.h"

#define COUNT 1000

struct thing {
    weir__string_node node;
    char name[16];
};

static struct thing things[COUNT];

static void fill(weir__string_map *map)
{
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(things[i].name, sizeof(things[i].name), "thing %d", i);
        assert_int_equal(weir__string_map_add(map, &things[i].node, things[i].name), 0);
    }
}

TEST(string_map, finds_what_is_in_it)
{
    weir__string_map map = {0};

    assert_null(weir__string_map_find(&map, "thing 1"));
    fill(&map);
    assert_int_equal(map.count, COUNT);
    for (int i = 0; i < COUNT; i += 2)
        weir__string_map_remove(&map, &things[i].node);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(weir__string_map_find(&map, things[i].name),
                         i % 2 == 0 ? NULL : &things[i].node);
    assert_int_equal(map.count, COUNT / 2);
    weir__string_map_deinit(&map);
    assert_null(weir__string_map_find(&map, "thing 1"));
}

TEST(string_map, grows_only_where_there_is_memory)
{
    weir__string_map map = {0};

    test_memory_fail_at(1);
    assert_int_equal(weir__string_map_add(&map, &things[0].node, "x"), -ENOMEM);
    test_memory_fail_at(2);
    fill(&map);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(weir__string_map_find(&map, things[i].name), &things[i].node);
    weir__string_map_deinit(&map);
}
