/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of pools by address, each retained until it is closed.
 */
#include <weir/client.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "base/string_map.h"
#include "bootstrap/client.h"
#include "bootstrap/client_pool.h"
#include "bootstrap/transport_for.h"
#include "os/thread.h"

struct entry {
    weir__string_node node;
    weir__list link;
    weir_client_pool *pool;
    char address[];
};

struct weir_client_pools {
    weir__refs refs;
    weir_client_pool_options options;
    weir_client_options *client; /* a copy */

    weir__mutex lock; /* guards the following */
    bool is_closed;
    weir__string_map by_address;
    weir__list entries;
};

/* ---- lifecycle ---- */

static int read_options(const weir_client_pool_options *given,
                        weir_client_pool_options *ret_options, weir_client_options *ret_client)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), given);

    if (err != 0)
        return err;
    if (ret_options->client == NULL)
        return weir__options_reject("client pools", NULL, ".client is required");
    err = weir__options_read(ret_client, sizeof(*ret_client), ret_options->client);
    if (err != 0)
        return err;
    ret_client->size = sizeof(*ret_client);
    if (ret_client->address != NULL || ret_client->address_count > 0)
        return weir__options_reject("client pools", NULL, ".client must not have an address");
    return 0;
}

int weir_client_pools_create(const weir_client_pool_options *given, weir_client_pools **ret_pools)
{
    weir_client_pool_options options;
    weir_client_options client;
    weir_client_pools *pools;
    int err = read_options(given, &options, &client);

    if (err < 0)
        return err;
    pools = weir__zalloc(sizeof(*pools));
    if (pools == NULL)
        return -ENOMEM;
    err = weir__client_options_copy(&client, &pools->client);
    if (err < 0) {
        weir__free(pools);
        return err;
    }
    pools->options = options;
    pools->options.size = sizeof(options);
    pools->options.client = pools->client;
    if (options.executor != NULL)
        weir_executor_retain(options.executor);
    weir__client_options_retain(pools->client);
    weir__refs_init(&pools->refs);
    weir__mutex_init(&pools->lock);
    weir__string_map_init(&pools->by_address);
    weir__list_init(&pools->entries);
    *ret_pools = pools;
    return 0;
}

weir_client_pools *weir_client_pools_retain(weir_client_pools *pools)
{
    weir__refs_retain(&pools->refs);
    return pools;
}

void weir_client_pools_release(weir_client_pools *pools)
{
    if (pools == NULL || !weir__refs_release(&pools->refs))
        return;
    weir_client_pools_close(pools);
    weir__mutex_deinit(&pools->lock);
    weir__free(pools->client);
    weir__free(pools);
}

/* ---- pools ---- */

static int make_pool(const weir_client_pools *pools, const char *address,
                     weir_client_pool **ret_pool)
{
    weir_client_options client = *pools->client;
    weir_client_pool_options options = pools->options;

    client.address = address;
    options.client = &client;
    return weir_client_pool_create(&options, ret_pool);
}

/* With the lock. */
static int add(weir_client_pools *pools, const char *address, struct entry **ret_entry)
{
    size_t size = strlen(address) + 1;
    struct entry *entry = weir__zalloc(sizeof(*entry) + size);
    int err;

    if (entry == NULL)
        return -ENOMEM;
    memcpy(entry->address, address, size);
    err = make_pool(pools, address, &entry->pool);
    if (err < 0) {
        weir__free(entry);
        return err;
    }
    weir__string_map_add(&pools->by_address, &entry->node, entry->address);
    weir__list_append(&pools->entries, &entry->link);
    *ret_entry = entry;
    return 0;
}

/* With the lock: replaces a pool that a user has closed. */
static int replace_closed(weir_client_pools *pools, struct entry *entry)
{
    weir_client_pool *pool;
    int err;

    if (!weir__client_pool_is_closed(entry->pool))
        return 0;
    err = make_pool(pools, entry->address, &pool);
    if (err < 0)
        return err;
    weir_client_pool_release(entry->pool);
    entry->pool = pool;
    return 0;
}

/* With the lock. */
static int find_or_add(weir_client_pools *pools, const char *address, struct entry **ret_entry)
{
    weir__string_node *node = weir__string_map_find(&pools->by_address, address);

    if (pools->is_closed)
        return WEIR_ECLOSED;
    if (node == NULL)
        return add(pools, address, ret_entry);
    *ret_entry = WEIR_CONTAINER_OF(node, struct entry, node);
    return replace_closed(pools, *ret_entry);
}

int weir_client_pools_get(weir_client_pools *pools, const char *address,
                          weir_client_pool **ret_pool)
{
    struct entry *entry;
    int err;

    if (address == NULL)
        return -EINVAL;
    weir__mutex_lock(&pools->lock);
    err = find_or_add(pools, address, &entry);
    if (err == 0)
        *ret_pool = weir_client_pool_retain(entry->pool);
    weir__mutex_unlock(&pools->lock);
    return err;
}

size_t weir_client_pools_count(weir_client_pools *pools)
{
    size_t count;

    weir__mutex_lock(&pools->lock);
    count = weir__string_map_count(&pools->by_address);
    weir__mutex_unlock(&pools->lock);
    return count;
}

/* Once it is closed no pool is added: the list is ours. */
void weir_client_pools_close(weir_client_pools *pools)
{
    bool was_closed;

    weir__mutex_lock(&pools->lock);
    was_closed = pools->is_closed;
    pools->is_closed = true;
    weir__string_map_deinit(&pools->by_address);
    weir__mutex_unlock(&pools->lock);
    if (was_closed)
        return;
    for (weir__list *link; (link = weir__list_pop(&pools->entries)) != NULL;) {
        struct entry *entry = WEIR_CONTAINER_OF(link, struct entry, link);

        weir_client_pool_close(entry->pool);
        weir_client_pool_release(entry->pool);
        weir__free(entry);
    }
    weir__client_options_release(pools->client);
    weir_executor_release(pools->options.executor);
}
