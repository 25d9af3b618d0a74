/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of things that have a number. The links are members of what it holds, and it begins
 * with a slot of its own, so that adding never fails: without memory to grow it is only slower.
 */
#ifndef WEIR_BASE_TABLE_H
#define WEIR_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct weir__table_item {
    struct weir__table_item *next;
    uint64_t key; /* set before it is added */
} weir__table_item;

typedef struct weir__table {
    weir__table_item **slots;
    weir__table_item *first_slot;
    unsigned bits; /* there are 2 to the power of this many slots */
    size_t count;
} weir__table;

/* The table does not move from here on. */
void weir__table_init(weir__table *table);

/* What is in it is not touched. */
void weir__table_deinit(weir__table *table);

/* An item is in one table at most. */
void weir__table_add(weir__table *table, weir__table_item *item);
void weir__table_remove(weir__table *table, weir__table_item *item);

/* NULL if there is none. Others that have the same key follow it, among those that have not. */
weir__table_item *weir__table_find(const weir__table *table, uint64_t key);

#endif
