/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of things that have a name: its nodes are members of what it holds, so that nothing
 * but its buckets is allocated, and those grow with it. Zero is an empty one. It has no lock.
 */
#ifndef WEIR_BASE_STRING_MAP_H
#define WEIR_BASE_STRING_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct weir__string_node {
    struct weir__string_node *next;
    const char *key; /* the owner's */
    uint32_t hash;
} weir__string_node;

typedef struct weir__string_map {
    weir__string_node **buckets;
    size_t bucket_count; /* 0, or a power of two */
    size_t count;
} weir__string_map;

/* NULL if there is none. */
weir__string_node *weir__string_map_find(const weir__string_map *map, const char *key);

/* The key must not be in it, and must stay as it is. Fails with -ENOMEM. */
int weir__string_map_add(weir__string_map *map, weir__string_node *node, const char *key);
void weir__string_map_remove(weir__string_map *map, weir__string_node *node);

/* Frees the buckets; the nodes are their owners'. It is then empty, and can be used again. */
void weir__string_map_deinit(weir__string_map *map);

#endif
