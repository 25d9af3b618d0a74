/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of things that have a name: a table (base/table.h) by the hash of the name, where
 * two names may share a number. Adding never fails there, and so it does not here. It has no lock.
 */
#ifndef WEIR_BASE_STRING_MAP_H
#define WEIR_BASE_STRING_MAP_H

#include "base/table.h"

typedef struct weir__string_node {
    weir__table_item item;
    const char *key; /* the owner's */
} weir__string_node;

typedef struct weir__string_map {
    weir__table table;
} weir__string_map;

/* The map does not move from here on. */
static inline void weir__string_map_init(weir__string_map *map)
{
    weir__table_init(&map->table);
}

/* What is in it is not touched. It is then empty, and can be used again. */
static inline void weir__string_map_deinit(weir__string_map *map)
{
    weir__table_deinit(&map->table);
}

static inline size_t weir__string_map_count(const weir__string_map *map)
{
    return map->table.count;
}

/* NULL if there is none. */
weir__string_node *weir__string_map_find(const weir__string_map *map, const char *key);

/* The key must not be in it, and must stay as it is. */
void weir__string_map_add(weir__string_map *map, weir__string_node *node, const char *key);

static inline void weir__string_map_remove(weir__string_map *map, weir__string_node *node)
{
    weir__table_remove(&map->table, &node->item);
}

#endif
