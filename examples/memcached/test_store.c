/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard's items: found, replaced, evicted, and compared with a simple list.
 */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/test.h"

#define KEYS 3000

static uint64_t hash_of(const char *key)
{
    return weir_span_hash(weir_span_of_text(key), 1);
}

static int put(struct store *store, const char *key, const char *value)
{
    return store_put(store, weir_span_of_text(key), hash_of(key),
                     &(struct value){.head = weir_span_of_text(value)});
}

static struct item *find(struct store *store, const char *key)
{
    return store_find(store, weir_span_of_text(key), hash_of(key));
}

static void assert_value(struct store *store, const char *key, const char *value)
{
    struct item *item = find(store, key);

    assert_non_null(item);
    assert_int_equal(item->length, strlen(value));
    assert_memory_equal(item_value(item).data, value, item->length);
}

TEST(store, keeps_the_last_value_of_a_key)
{
    struct store store;

    assert_int_equal(store_init(&store, 1 << 20), 0);
    assert_null(find(&store, "a"));
    assert_int_equal(put(&store, "a", "first"), 0);
    assert_int_equal(put(&store, "b", "other"), 0);
    assert_int_equal(put(&store, "a", "second"), 0);
    assert_value(&store, "a", "second");
    assert_value(&store, "b", "other");
    assert_int_equal(store.stats.items, 2);
    store_remove(&store, find(&store, "a"));
    assert_null(find(&store, "a"));
    assert_value(&store, "b", "other");
    store_deinit(&store);
}

TEST(store, makes_a_value_of_the_one_before)
{
    struct store store;
    struct value value;

    assert_int_equal(store_init(&store, 1 << 20), 0);
    assert_int_equal(put(&store, "a", "one"), 0);
    value = (struct value){.head = item_value(find(&store, "a")), .tail = weir_span_of("two", 3)};
    assert_int_equal(store_put(&store, weir_span_of("a", 1), hash_of("a"), &value), 0);
    assert_value(&store, "a", "onetwo");
    store_deinit(&store);
}

TEST(store, changes_the_unique_number_with_each_change)
{
    struct store store;
    uint64_t before;

    assert_int_equal(store_init(&store, 1 << 20), 0);
    assert_int_equal(put(&store, "a", "x"), 0);
    before = find(&store, "a")->cas;
    assert_int_equal(put(&store, "a", "x"), 0);
    assert_true(find(&store, "a")->cas != before);
    store_deinit(&store);
}

TEST(store, evicts_the_least_recently_used)
{
    size_t room = 3 * (sizeof(struct item) + 2);
    struct store store;

    assert_int_equal(store_init(&store, room), 0);
    assert_int_equal(put(&store, "a", "1"), 0);
    assert_int_equal(put(&store, "b", "2"), 0);
    assert_int_equal(put(&store, "c", "3"), 0);
    assert_value(&store, "a", "1"); /* used: b is the oldest now */
    assert_int_equal(put(&store, "d", "4"), 0);
    assert_null(find(&store, "b"));
    assert_value(&store, "a", "1");
    assert_int_equal(store.stats.evictions, 1);
    assert_int_equal(store.stats.bytes, room);
    store_deinit(&store);
}

TEST(store, refuses_what_is_larger_than_it)
{
    struct store store;

    assert_int_equal(store_init(&store, sizeof(struct item) + 2), 0);
    assert_int_equal(put(&store, "a", "1"), 0);
    assert_int_equal(put(&store, "a", "12"), -ENOMEM);
    assert_value(&store, "a", "1");
    store_deinit(&store);
}

TEST(store, forgets_what_has_expired)
{
    struct store store;

    assert_int_equal(store_init(&store, 1 << 20), 0);
    assert_int_equal(put(&store, "a", "1"), 0);
    assert_int_equal(put(&store, "b", "1"), 0);
    find(&store, "a")->expires = time(NULL) - 1;
    find(&store, "b")->expires = time(NULL) + 3600;
    assert_null(find(&store, "a"));
    assert_non_null(find(&store, "b"));
    store_flush(&store, time(NULL) + 3600);
    assert_non_null(find(&store, "b"));
    store_flush(&store, 1);
    assert_null(find(&store, "b"));
    assert_int_equal(store.stats.items, 0);
    assert_int_equal(store.stats.bytes, 0);
    store_deinit(&store);
}

/* So many that the table grows. */
TEST(store, does_what_an_array_does)
{
    static int values[KEYS]; /* 0 = there is none */
    struct store store;
    char key[16], value[16];
    unsigned seed = 42;

    assert_int_equal(store_init(&store, 1 << 24), 0);
    memset(values, 0, sizeof(values));
    for (int i = 0; i < 10 * KEYS; i++) {
        int k = rand_r(&seed) % KEYS;
        struct item *item;

        snprintf(key, sizeof(key), "key-%d", k);
        snprintf(value, sizeof(value), "%d", values[k]);
        item = find(&store, key);
        assert_int_equal(item != NULL, values[k] != 0);
        if (item != NULL)
            assert_value(&store, key, value);
        if (item != NULL && rand_r(&seed) % 3 == 0) {
            store_remove(&store, item);
            values[k] = 0;
        } else {
            values[k] = i + 1;
            snprintf(value, sizeof(value), "%d", values[k]);
            assert_int_equal(put(&store, key, value), 0);
        }
    }
    store_deinit(&store);
}
