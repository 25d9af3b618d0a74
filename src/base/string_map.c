/* SPDX-License-Identifier: Apache-2.0 */
#include "base/string_map.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define BUCKETS_MIN 16

static uint32_t hash_of(const char *key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash;
}

static weir__string_node **bucket_of(const weir__string_map *map, uint32_t hash)
{
    return &map->buckets[hash & (map->bucket_count - 1)];
}

weir__string_node *weir__string_map_find(const weir__string_map *map, const char *key)
{
    uint32_t hash = hash_of(key);
    weir__string_node *node = map->count > 0 ? *bucket_of(map, hash) : NULL;

    while (node != NULL && (node->hash != hash || strcmp(node->key, key) != 0))
        node = node->next;
    return node;
}

static void link_node(weir__string_map *map, weir__string_node *node)
{
    weir__string_node **bucket = bucket_of(map, node->hash);

    node->next = *bucket;
    *bucket = node;
}

static int grow(weir__string_map *map)
{
    weir__string_map grown = {
        .bucket_count = map->bucket_count > 0 ? 2 * map->bucket_count : BUCKETS_MIN,
        .count = map->count,
    };

    grown.buckets = weir__zalloc(grown.bucket_count * sizeof(void *));
    if (grown.buckets == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < map->bucket_count; i++) {
        for (weir__string_node *node = map->buckets[i], *next; node != NULL; node = next) {
            next = node->next;
            link_node(&grown, node);
        }
    }
    weir__free(map->buckets);
    *map = grown;
    return 0;
}

/* Without memory for more buckets those that are there will do. */
int weir__string_map_add(weir__string_map *map, weir__string_node *node, const char *key)
{
    if (map->count >= map->bucket_count && grow(map) < 0 && map->bucket_count == 0)
        return -ENOMEM;
    node->key = key;
    node->hash = hash_of(key);
    link_node(map, node);
    map->count++;
    return 0;
}

void weir__string_map_remove(weir__string_map *map, weir__string_node *node)
{
    weir__string_node **link = bucket_of(map, node->hash);

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    map->count--;
}

void weir__string_map_deinit(weir__string_map *map)
{
    weir__free(map->buckets);
    *map = (weir__string_map){0};
}
