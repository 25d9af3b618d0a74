/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash table with chaining; at most one item per slot on average, if there is memory. The slot is
 * taken from the high bits of the key times the golden ratio, which spreads consecutive numbers.
 */
#include "base/table.h"

#include <assert.h>

#include "base/memory.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

void weir__table_init(weir__table *table)
{
    table->first_slot = NULL;
    table->slots = &table->first_slot;
    table->bits = 0;
    table->count = 0;
}

static void free_slots(weir__table *table)
{
    if (table->slots != &table->first_slot)
        weir__free(table->slots);
}

void weir__table_deinit(weir__table *table)
{
    free_slots(table);
    weir__table_init(table);
}

/* Two shifts, because a shift by 64 is undefined. */
static weir__table_item **slot_of(weir__table_item **slots, unsigned bits, uint64_t key)
{
    return &slots[(key * GOLDEN) >> 1 >> (63 - bits)];
}

static void move_all(weir__table *table, weir__table_item **slots, unsigned bits)
{
    weir__table_item *item, *next, **slot;

    for (size_t i = 0; i < (size_t)1 << table->bits; i++) {
        for (item = table->slots[i]; item != NULL; item = next) {
            next = item->next;
            slot = slot_of(slots, bits, item->key);
            item->next = *slot;
            *slot = item;
        }
    }
}

static void grow(weir__table *table)
{
    unsigned bits = table->bits + 2;
    weir__table_item **slots = weir__zalloc(sizeof(*slots) << bits);

    if (slots == NULL)
        return;
    move_all(table, slots, bits);
    free_slots(table);
    table->slots = slots;
    table->bits = bits;
}

void weir__table_add(weir__table *table, weir__table_item *item)
{
    weir__table_item **slot;

    if (table->count >> table->bits > 0)
        grow(table);
    slot = slot_of(table->slots, table->bits, item->key);
    item->next = *slot;
    *slot = item;
    table->count++;
}

void weir__table_remove(weir__table *table, weir__table_item *item)
{
    weir__table_item **link = slot_of(table->slots, table->bits, item->key);

    while (*link != item) {
        assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = item->next;
    table->count--;
}

weir__table_item *weir__table_find(const weir__table *table, uint64_t key)
{
    weir__table_item *item = *slot_of(table->slots, table->bits, key);

    while (item != NULL && item->key != key)
        item = item->next;
    return item;
}
