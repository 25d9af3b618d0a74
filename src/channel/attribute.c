/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel's attributes: a list that only grows, with one node per key and an exchangeable value
 * in each node. No lock is needed: a node stays once it is linked, and the thread that exchanges a
 * value out is its only owner.
 *
 * Memory order. A node is written before the release that publishes it, a value before the release
 * that stores it. Both are read with acquire.
 */
#include "channel/attribute.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "channel/channel.h"

struct weir__attribute {
    weir__attribute *next;
    const weir_attribute *key;
    _Atomic(void *) value;
    const void *lent; /* a borrowed value, not freed: set before other threads know the channel */
};

/* Searches from `node` up to `end`, exclusive. */
static weir__attribute *find(weir__attribute *node, const weir__attribute *end,
                             const weir_attribute *key)
{
    while (node != end && node->key != key)
        node = node->next;
    return node != end ? node : NULL;
}

static weir__attribute *find_in(weir_channel *channel, const weir_attribute *key)
{
    return find(atomic_load_explicit(&channel->attributes, memory_order_acquire), NULL, key);
}

/* New nodes are pushed at the front: after a lost race only those before the old first one are
 * new. */
static weir__attribute *find_or_add(weir_channel *channel, const weir_attribute *key)
{
    weir__attribute *first = atomic_load_explicit(&channel->attributes, memory_order_acquire),
                    *node = find(first, NULL, key), *seen, *mine;

    if (node != NULL)
        return node;
    mine = weir__zalloc(sizeof(*mine));
    if (mine == NULL)
        return NULL;
    mine->key = key;
    do {
        mine->next = seen = first;
        if (atomic_compare_exchange_strong_explicit(&channel->attributes, &first, mine,
                                                    memory_order_acq_rel, memory_order_acquire))
            return mine;
        node = find(first, seen, key);
    } while (node == NULL);
    weir__free(mine);
    return node;
}

static void free_value(const weir__attribute *node, void *value)
{
    if (value != NULL && value != node->lent && node->key->free != NULL)
        node->key->free(value);
}

bool weir_attribute_remove(weir_channel *channel, const weir_attribute *attribute)
{
    weir__attribute *node = find_in(channel, attribute);
    void *value = NULL;

    if (node != NULL)
        value = atomic_exchange_explicit(&node->value, NULL, memory_order_acq_rel);
    free_value(node, value);
    return value != NULL;
}

int weir_attribute_set(weir_channel *channel, const weir_attribute *attribute, void *value)
{
    weir__attribute *node;

    if (value == NULL) {
        (void)weir_attribute_remove(channel, attribute);
        return 0;
    }
    node = find_or_add(channel, attribute);
    if (node == NULL)
        return -ENOMEM;
    free_value(node, atomic_exchange_explicit(&node->value, value, memory_order_acq_rel));
    return 0;
}

void *weir_attribute_set_if_absent(weir_channel *channel, const weir_attribute *attribute,
                                   void *value)
{
    weir__attribute *node = find_or_add(channel, attribute);
    void *there = NULL;

    if (node == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&node->value, &there, value, memory_order_acq_rel,
                                                memory_order_acquire))
        return value;
    return there;
}

void *weir_attribute_get(weir_channel *channel, const weir_attribute *attribute)
{
    weir__attribute *node = find_in(channel, attribute);

    return node != NULL ? atomic_load_explicit(&node->value, memory_order_acquire) : NULL;
}

void *weir_attribute_take(weir_channel *channel, const weir_attribute *attribute)
{
    weir__attribute *node = find_in(channel, attribute);

    return node != NULL ? atomic_exchange_explicit(&node->value, NULL, memory_order_acq_rel) : NULL;
}

int weir__attributes_lend(weir_channel *channel, const weir_attribute_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weir__attribute *node = find_or_add(channel, values[i].attribute);

        if (node == NULL)
            return -ENOMEM;
        node->lent = values[i].value;
        atomic_store_explicit(&node->value, values[i].value, memory_order_release);
    }
    return 0;
}

void weir__attributes_destroy(weir_channel *channel)
{
    weir__attribute *node = atomic_load_explicit(&channel->attributes, memory_order_acquire), *next;

    for (; node != NULL; node = next) {
        next = node->next;
        free_value(node, atomic_load_explicit(&node->value, memory_order_acquire));
        weir__free(node);
    }
}
