/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock guards all counts. It is held for one table lookup, twice per connection.
 */
#include <weir/connection_limits.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/ip.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "base/string_map.h"
#include "handler/admission.h"
#include "os/thread.h"

#define KEY_SIZE (2 * sizeof(((weir__ip *)NULL)->bytes) + 2) /* family, bytes in hex, NUL */

struct address_entry {
    weir__string_node node;
    char key[KEY_SIZE];
    size_t count;
};

struct weir_connection_limit {
    weir__refs refs;
    size_t max; /* SIZE_MAX = unlimited */
    size_t max_per_address;
    weir__mutex lock; /* guards the members below */
    weir__string_map addresses;
    weir_connection_limit_stats stats;
};

int weir_connection_limit_create(const weir_connection_limit_options *options,
                                 weir_connection_limit **ret_limit)
{
    weir_connection_limit_options own;
    weir_connection_limit *limit;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    limit = weir__zalloc(sizeof(*limit));
    if (limit == NULL)
        return -ENOMEM;
    weir__refs_init(&limit->refs);
    weir__mutex_init(&limit->lock);
    weir__string_map_init(&limit->addresses);
    limit->max = own.max > 0 ? own.max : SIZE_MAX;
    limit->max_per_address = own.max_per_address > 0 ? own.max_per_address : SIZE_MAX;
    *ret_limit = limit;
    return 0;
}

weir_connection_limit *weir_connection_limit_retain(weir_connection_limit *limit)
{
    weir__refs_retain(&limit->refs);
    return limit;
}

/* No connection is left: each holds a reference. */
void weir_connection_limit_release(weir_connection_limit *limit)
{
    if (limit == NULL || !weir__refs_release(&limit->refs))
        return;
    weir__string_map_deinit(&limit->addresses);
    weir__mutex_deinit(&limit->lock);
    weir__free(limit);
}

void weir_connection_limit_read_stats(weir_connection_limit *limit,
                                      weir_connection_limit_stats *ret_stats)
{
    weir__mutex_lock(&limit->lock);
    *ret_stats = limit->stats;
    weir__mutex_unlock(&limit->lock);
}

/* ---- addresses ---- */

/* Finds or adds the entry of an address. NULL without memory. */
static struct address_entry *get_address(weir_connection_limit *limit, const weir__ip *ip)
{
    struct address_entry *entry;
    weir__string_node *node;
    char key[KEY_SIZE];

    key[0] = ip->family == AF_INET ? '4' : '6';
    for (size_t i = 0; i < sizeof(ip->bytes); i++)
        (void)snprintf(key + 1 + 2 * i, 3, "%02x", ip->bytes[i]);
    node = weir__string_map_find(&limit->addresses, key);
    if (node != NULL)
        return WEIR_CONTAINER_OF(node, struct address_entry, node);
    entry = weir__zalloc(sizeof(*entry));
    if (entry == NULL)
        return NULL;
    memcpy(entry->key, key, sizeof(entry->key));
    weir__string_map_add(&limit->addresses, &entry->node, entry->key);
    limit->stats.addresses++;
    return entry;
}

/* Without memory to count it, a connection is rejected: the limit must hold. */
static bool enter_address(weir_connection_limit *limit, const weir_address *peer, void **ret_ticket)
{
    weir__ip ip = weir__ip_of(peer);
    struct address_entry *entry;

    if (limit->max_per_address == SIZE_MAX || ip.family == AF_UNSPEC)
        return true;
    entry = get_address(limit, &ip);
    if (entry == NULL || entry->count >= limit->max_per_address)
        return false;
    entry->count++;
    *ret_ticket = entry;
    return true;
}

static void leave_address(weir_connection_limit *limit, struct address_entry *entry)
{
    if (entry == NULL || --entry->count > 0)
        return;
    weir__string_map_remove(&limit->addresses, &entry->node);
    limit->stats.addresses--;
    weir__free(entry);
}

/* ---- the handler ---- */

static void retain(void *shared)
{
    (void)weir_connection_limit_retain(shared);
}

static void release(void *shared)
{
    weir_connection_limit_release(shared);
}

static bool enter(void *shared, const weir_address *peer, void **ret_ticket)
{
    weir_connection_limit *limit = shared;
    bool is_admitted;

    weir__mutex_lock(&limit->lock);
    is_admitted = limit->stats.open < limit->max && enter_address(limit, peer, ret_ticket);
    limit->stats.open += is_admitted;
    limit->stats.accepted += is_admitted;
    limit->stats.rejected += !is_admitted;
    weir__mutex_unlock(&limit->lock);
    return is_admitted;
}

static void leave(void *shared, void *ticket)
{
    weir_connection_limit *limit = shared;

    weir__mutex_lock(&limit->lock);
    limit->stats.open--;
    leave_address(limit, ticket);
    weir__mutex_unlock(&limit->lock);
}

static weir__log_limit rejections;

static const weir__admission admission = {
    .connection = {.name = "connection-limit", WEIR__ADMISSION_SLOTS},
    .listener = {.name = "connection-limit", WEIR__ADMISSION_LISTENER_SLOTS},
    .retain = retain,
    .release = release,
    .enter = enter,
    .leave = leave,
    .rejections = &rejections,
};

int weir_connection_limit_add(weir_pipeline *pipeline, weir_connection_limit *limit)
{
    return weir__admission_add(pipeline, &admission, limit);
}
