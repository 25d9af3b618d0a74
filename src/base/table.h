/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive hash table by number. It begins with a built-in slot and its links are in the items,
 * so that adding never fails: without memory to grow it only gets slower.
 */
#ifndef WEIR_BASE_TABLE_H
#define WEIR_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct weir__table_item {
    struct weir__table_item *next;
    uint64_t key; /* set by the caller before adding */
} weir__table_item;

typedef struct weir__table {
    weir__table_item **slots;
    weir__table_item *first_slot;
    unsigned bits; /* log2 of the number of slots */
    size_t count;
} weir__table;

/* The table must not move from here on. */
void weir__table_init(weir__table *table);

/* Does not touch the items. */
void weir__table_deinit(weir__table *table);

/* An item is in at most one table. */
void weir__table_add(weir__table *table, weir__table_item *item);
void weir__table_remove(weir__table *table, weir__table_item *item);

/* NULL if there is none. Further items with the same key follow in its chain, mixed with others. */
weir__table_item *weir__table_find(const weir__table *table, uint64_t key);

#endif
