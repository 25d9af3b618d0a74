/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS_FIRST 1024

weir_span item_key(const struct item *item)
{
    return weir_span_of(item->bytes, item->key_length);
}

weir_span item_value(const struct item *item)
{
    return weir_span_of(item->bytes + item->key_length, item->length);
}

static size_t item_size(const struct item *item)
{
    return sizeof(*item) + item->key_length + item->length;
}

/* ---- the order of use ---- */

static void link_newest(struct store *store, struct item *item)
{
    item->newer = NULL;
    item->older = store->newest;
    if (store->newest != NULL)
        store->newest->newer = item;
    else
        store->oldest = item;
    store->newest = item;
}

static void unlink_use(struct store *store, struct item *item)
{
    if (item->newer != NULL)
        item->newer->older = item->older;
    else
        store->newest = item->older;
    if (item->older != NULL)
        item->older->newer = item->newer;
    else
        store->oldest = item->newer;
}

/* ---- the table ---- */

static struct item **bucket_of(struct store *store, uint64_t hash)
{
    return &store->buckets[hash & (store->bucket_count - 1)];
}

/* Without memory the chains get longer. */
static void grow_if_full(struct store *store)
{
    size_t old_count = store->bucket_count;
    struct item **old = store->buckets, **grown;

    if (store->stats.items <= old_count)
        return;
    grown = calloc(old_count * 2, sizeof(*grown));
    if (grown == NULL)
        return;
    store->buckets = grown;
    store->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        for (struct item *item = old[i], *next; item != NULL; item = next) {
            next = item->chain;
            item->chain = *bucket_of(store, item->hash);
            *bucket_of(store, item->hash) = item;
        }
    }
    free(old);
}

void store_remove(struct store *store, struct item *item)
{
    struct item **place = bucket_of(store, item->hash);

    while (*place != item)
        place = &(*place)->chain;
    *place = item->chain;
    unlink_use(store, item);
    store->stats.items--;
    store->stats.bytes -= item_size(item);
    free(item);
}

static void insert(struct store *store, struct item *item)
{
    struct item **place = bucket_of(store, item->hash);

    item->chain = *place;
    *place = item;
    link_newest(store, item);
    store->stats.items++;
    store->stats.total_items++;
    store->stats.bytes += item_size(item);
    grow_if_full(store);
}

static void remove_all(struct store *store)
{
    while (store->oldest != NULL)
        store_remove(store, store->oldest);
}

static struct item *look_up(struct store *store, weir_span key, uint64_t hash)
{
    struct item *item = *bucket_of(store, hash);

    while (item != NULL && (item->hash != hash || !weir_span_equal(item_key(item), key)))
        item = item->chain;
    return item;
}

/* ---- the interface ---- */

int store_init(struct store *store, size_t max_bytes)
{
    *store = (struct store){.bucket_count = BUCKETS_FIRST, .max_bytes = max_bytes};
    store->buckets = calloc(BUCKETS_FIRST, sizeof(*store->buckets));
    return store->buckets != NULL ? 0 : -ENOMEM;
}

void store_deinit(struct store *store)
{
    if (store->buckets != NULL)
        remove_all(store);
    free(store->buckets);
}

static void flush_if_due(struct store *store, int64_t now)
{
    if (store->flush_at == 0 || store->flush_at > now)
        return;
    store->flush_at = 0;
    remove_all(store);
}

struct item *store_find(struct store *store, weir_span key, uint64_t hash)
{
    int64_t now = time(NULL);
    struct item *item;

    flush_if_due(store, now);
    item = look_up(store, key, hash);
    if (item == NULL)
        return NULL;
    if (item->expires != 0 && item->expires <= now) {
        store_remove(store, item);
        return NULL;
    }
    unlink_use(store, item);
    link_newest(store, item);
    return item;
}

static char *append(char *to, weir_span span)
{
    if (span.length > 0)
        memcpy(to, span.data, span.length);
    return to + span.length;
}

static struct item *make_item(weir_span key, uint64_t hash, const struct value *value)
{
    size_t length = value->head.length + value->tail.length;
    struct item *item = malloc(sizeof(*item) + key.length + length);

    if (item == NULL)
        return NULL;
    *item = (struct item){
        .hash = hash,
        .flags = value->flags,
        .expires = value->expires,
        .key_length = (uint32_t)key.length,
        .length = (uint32_t)length,
    };
    (void)append(append(append(item->bytes, key), value->head), value->tail);
    return item;
}

int store_put(struct store *store, weir_span key, uint64_t hash, const struct value *value)
{
    struct item *item = make_item(key, hash, value), *before;

    if (item == NULL || item_size(item) > store->max_bytes) {
        free(item);
        return -ENOMEM;
    }
    flush_if_due(store, time(NULL));
    before = look_up(store, key, hash);
    if (before != NULL)
        store_remove(store, before);
    while (store->stats.bytes + item_size(item) > store->max_bytes) {
        store_remove(store, store->oldest);
        store->stats.evictions++;
    }
    item->cas = ++store->next_cas;
    insert(store, item);
    return 0;
}

void store_flush(struct store *store, int64_t at)
{
    store->flush_at = at;
    flush_if_due(store, time(NULL));
}
