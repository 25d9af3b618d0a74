/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive hash map by string, on top of base/table.h; strings may share a hash. Adding never
 * fails. Not synchronized.
 */
#ifndef WEIR_BASE_STRING_MAP_H
#define WEIR_BASE_STRING_MAP_H

#include "base/table.h"

typedef struct weir__string_node {
    weir__table_item item;
    const char *key; /* owned by the caller */
} weir__string_node;

typedef struct weir__string_map {
    weir__table table;
} weir__string_map;

/* The map must not move from here on. */
static inline void weir__string_map_init(weir__string_map *map)
{
    weir__table_init(&map->table);
}

/* Does not touch the nodes. The map is empty afterwards and can be used again. */
static inline void weir__string_map_deinit(weir__string_map *map)
{
    weir__table_deinit(&map->table);
}

static inline size_t weir__string_map_count(const weir__string_map *map)
{
    return map->table.count;
}

/* NULL if the key is not in the map. */
weir__string_node *weir__string_map_find(const weir__string_map *map, const char *key);

/* The key must not be in the map, and must stay valid and unchanged. */
void weir__string_map_add(weir__string_map *map, weir__string_node *node, const char *key);

static inline void weir__string_map_remove(weir__string_map *map, weir__string_node *node)
{
    weir__table_remove(&map->table, &node->item);
}

#endif
