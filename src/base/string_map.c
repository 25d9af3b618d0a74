/* SPDX-License-Identifier: Apache-2.0 */
#include "base/string_map.h"

#include <string.h>

#include <weir/base.h>

static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return hash;
}

static weir__string_node *node_of(weir__table_item *item)
{
    return WEIR_CONTAINER_OF(item, weir__string_node, item);
}

weir__string_node *weir__string_map_find(const weir__string_map *map, const char *key)
{
    uint64_t hash = hash_of(key);
    weir__table_item *item = weir__table_find(&map->table, hash);

    while (item != NULL && (item->key != hash || strcmp(node_of(item)->key, key) != 0))
        item = item->next;
    return item != NULL ? node_of(item) : NULL;
}

void weir__string_map_add(weir__string_map *map, weir__string_node *node, const char *key)
{
    node->key = key;
    node->item.key = hash_of(key);
    weir__table_add(&map->table, &node->item);
}
