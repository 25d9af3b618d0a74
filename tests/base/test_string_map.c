/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash maps by string.
 */
#include "base/string_map.h"

#include <stdio.h>

#include "support/memory.h"
#include "support/test.h"

#define COUNT 1000

struct thing {
    weir__string_node node;
    char name[24];
};

static struct thing things[COUNT];

static void fill(weir__string_map *map)
{
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(things[i].name, sizeof(things[i].name), "thing %d", i);
        weir__string_map_add(map, &things[i].node, things[i].name);
    }
}

TEST(string_map, finds_what_is_in_it)
{
    weir__string_map map;

    weir__string_map_init(&map);
    assert_null(weir__string_map_find(&map, "thing 1"));
    fill(&map);
    assert_int_equal(weir__string_map_count(&map), COUNT);
    for (int i = 0; i < COUNT; i += 2)
        weir__string_map_remove(&map, &things[i].node);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(weir__string_map_find(&map, things[i].name),
                         i % 2 == 0 ? NULL : &things[i].node);
    assert_int_equal(weir__string_map_count(&map), COUNT / 2);
    weir__string_map_deinit(&map);
    assert_null(weir__string_map_find(&map, "thing 1"));
}

/* Two names, one hash (FNV-1a). */
TEST(string_map, distinguishes_names_with_the_same_hash)
{
    static const char *const names[2] = {"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"};
    weir__string_node nodes[2];
    weir__string_map map;

    weir__string_map_init(&map);
    for (int i = 0; i < 2; i++)
        weir__string_map_add(&map, &nodes[i], names[i]);
    assert_int_equal(nodes[0].item.key, nodes[1].item.key);
    for (int i = 0; i < 2; i++)
        assert_ptr_equal(weir__string_map_find(&map, names[i]), &nodes[i]);
    weir__string_map_remove(&map, &nodes[0]);
    assert_null(weir__string_map_find(&map, names[0]));
    assert_ptr_equal(weir__string_map_find(&map, names[1]), &nodes[1]);
    weir__string_map_deinit(&map);
}

TEST(string_map, grows_only_where_there_is_memory)
{
    weir__string_map map;

    weir__string_map_init(&map);
    test_memory_fail_at(1);
    fill(&map);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(weir__string_map_find(&map, things[i].name), &things[i].node);
    weir__string_map_deinit(&map);
}
