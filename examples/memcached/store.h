/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard's items: a hash table, and a list from the most to the least recently used, from whose
 * end items are evicted. One thread at a time.
 */
#ifndef EXAMPLES_STORE_H
#define EXAMPLES_STORE_H

#include <weir/weir.h>

struct item {
    struct item *chain; /* the next in its bucket */
    struct item *newer; /* in the order of use */
    struct item *older;
    uint64_t hash;
    uint64_t cas;    /* changes with each change of the item */
    int64_t expires; /* seconds since 1970; 0 = never */
    uint32_t flags;  /* the client's */
    uint32_t key_length;
    uint32_t length; /* of the value */
    char bytes[];    /* the key, then the value */
};

struct store_stats {
    uint64_t items;
    uint64_t bytes;
    uint64_t total_items; /* that were ever stored */
    uint64_t evictions;
};

struct store {
    struct item **buckets;
    size_t bucket_count; /* a power of two */
    struct item *newest;
    struct item *oldest;
    size_t max_bytes;
    uint64_t next_cas;
    int64_t flush_at; /* when everything goes; 0 = not */
    struct store_stats stats;
};

/* What an item is to be made of: its value is `head` and then `tail`. */
struct value {
    uint32_t flags;
    int64_t expires;
    weir_span head;
    weir_span tail;
};

int store_init(struct store *store, size_t max_bytes);
void store_deinit(struct store *store);

/* The item, which counts as used; NULL if there is none, or if it has expired. */
struct item *store_find(struct store *store, weir_span key, uint64_t hash);

/*
 * Stores an item in the place of the one with this key, of which the value may be made. Evicts the
 * least recently used if there is no room. Fails: -ENOMEM, also if it is larger than the store.
 */
int store_put(struct store *store, weir_span key, uint64_t hash, const struct value *value);

/* Removes an item that was found. */
void store_remove(struct store *store, struct item *item);

/* Removes everything, now or at a time in seconds since 1970. */
void store_flush(struct store *store, int64_t at);

weir_span item_key(const struct item *item);
weir_span item_value(const struct item *item);

#endif
