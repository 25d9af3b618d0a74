/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive doubly linked list. The list itself is a link, so that no operation has a special
 * case.
 */
#ifndef WEIR_BASE_LIST_H
#define WEIR_BASE_LIST_H

#include <weir/base.h>

typedef struct weir__list {
    struct weir__list *next;
    struct weir__list *previous;
} weir__list;

/* The body may remove `item`, but no other item. */
#define weir_list_foreach(item, list)                                                \
    for (weir__list *item = (list)->next, *item##_next = item->next; item != (list); \
         item = item##_next, item##_next = item->next)

static inline void weir__list_init(weir__list *list)
{
    list->next = list;
    list->previous = list;
}

static inline bool weir__list_is_empty(const weir__list *list)
{
    return list->next == list;
}

static inline void weir__list_append(weir__list *list, weir__list *item)
{
    item->next = list;
    item->previous = list->previous;
    list->previous->next = item;
    list->previous = item;
}

/* Removing an item twice is harmless. */
static inline void weir__list_remove(weir__list *item)
{
    item->previous->next = item->next;
    item->next->previous = item->previous;
    weir__list_init(item);
}

/* Removes and returns the first item; NULL if the list is empty. */
static inline weir__list *weir__list_pop(weir__list *list)
{
    weir__list *item = list->next;

    if (item == list)
        return NULL;
    weir__list_remove(item);
    return item;
}

#endif
