/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver/query.h"

#include <string.h>

#include "base/memory.h"

void weir__queries_init(weir__queries *queries)
{
    *queries = (weir__queries){0};
    weir__string_map_init(&queries->by_host);
    weir__list_init(&queries->queue);
    weir__list_init(&queries->answered);
}

void weir__queries_remove(weir__queries *queries, weir__query *query)
{
    if (query->state == WEIR__QUERY_ANSWERED)
        queries->answered_count--;
    weir__list_remove(&query->link);
    weir__string_map_remove(&queries->by_host, &query->node);
    if (weir__string_map_count(&queries->by_host) == 0)
        weir__string_map_deinit(&queries->by_host);
    weir_addresses_release(query->addresses);
    weir__free(query);
}

static weir__query *of_link(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, weir__query, link);
}

void weir__queries_flush(weir__queries *queries)
{
    queries->flushes++;
    while (!weir__list_is_empty(&queries->answered))
        weir__queries_remove(queries, of_link(queries->answered.next));
}

weir__query *weir__queries_find(weir__queries *queries, const char *host, int64_t now_ns)
{
    weir__string_node *node = weir__string_map_find(&queries->by_host, host);
    weir__query *query;

    if (node == NULL)
        return NULL;
    query = WEIR_CONTAINER_OF(node, weir__query, node);
    if (query->state != WEIR__QUERY_ANSWERED || now_ns < query->expires_ns)
        return query;
    weir__queries_remove(queries, query);
    return NULL;
}

static unsigned *rotation_of(weir__queries *queries, const weir__query *query)
{
    return &queries->rotations[query->node.item.key % WEIR__QUERY_ROTATIONS];
}

weir__query *weir__queries_add(weir__queries *queries, const char *host)
{
    size_t size = strlen(host) + 1;
    weir__query *query = weir__zalloc(sizeof(*query) + size);

    if (query == NULL)
        return NULL;
    memcpy(query->host, host, size);
    weir__string_map_add(&queries->by_host, &query->node, query->host);
    query->rotation = *rotation_of(queries, query);
    weir__list_init(&query->requests);
    weir__list_append(&queries->queue, &query->link);
    return query;
}

unsigned weir__queries_rotate(weir__queries *queries, weir__query *query, unsigned count)
{
    unsigned rotation = query->rotation;

    query->rotation += count;
    *rotation_of(queries, query) = query->rotation;
    return rotation;
}

weir__query *weir__queries_next(weir__queries *queries)
{
    weir__list *link = weir__list_pop(&queries->queue);
    weir__query *query;

    if (link == NULL)
        return NULL;
    query = of_link(link);
    query->state = WEIR__QUERY_RUNNING;
    query->flushes = queries->flushes;
    return query;
}

void weir__queries_store(weir__queries *queries, weir__query *query, size_t max)
{
    if (query->flushes != queries->flushes) {
        weir__queries_remove(queries, query);
        return;
    }
    query->state = WEIR__QUERY_ANSWERED;
    weir__list_append(&queries->answered, &query->link);
    if (++queries->answered_count > max)
        weir__queries_remove(queries, of_link(queries->answered.next));
}
