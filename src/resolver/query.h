/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queries of a resolver, by host: queued, running, and answered ones, which are the cache. Not
 * thread-safe: the owner has a lock.
 *
 *      QUEUED -> RUNNING -> ANSWERED, until it expires, is evicted as the oldest, or is flushed
 */
#ifndef WEIR_RESOLVER_QUERY_H
#define WEIR_RESOLVER_QUERY_H

#include <weir/address.h>

#include "base/list.h"
#include "base/string_map.h"

enum weir__query_state {
    WEIR__QUERY_QUEUED,
    WEIR__QUERY_RUNNING,
    WEIR__QUERY_ANSWERED,
};

#define WEIR__QUERY_ROTATIONS 256

typedef struct weir__query {
    weir__string_node node;
    weir__list link;     /* in `queue` or `answered` */
    weir__list requests; /* waiting for the answer */
    enum weir__query_state state;
    int err;
    weir_addresses *addresses; /* with port 0; NULL if err < 0 */
    int64_t expires_ns;
    unsigned rotation; /* of the next answer */
    unsigned flushes;  /* value of weir__queries.flushes when it started to run */
    char host[];
} weir__query;

typedef struct weir__queries {
    weir__string_map by_host;
    weir__list queue;
    weir__list answered; /* oldest first */
    size_t answered_count;
    unsigned flushes;
    unsigned rotations[WEIR__QUERY_ROTATIONS]; /* of hosts that are not cached, by their hash; hosts
                                                  that share an entry skip addresses */
} weir__queries;

void weir__queries_init(weir__queries *queries);

/* Removes the answered queries; running ones are removed when they end. */
void weir__queries_flush(weir__queries *queries);

/* NULL if there is no query for the host, or its answer has expired. */
weir__query *weir__queries_find(weir__queries *queries, const char *host, int64_t now_ns);

/* Queues a new query. NULL: no memory. */
weir__query *weir__queries_add(weir__queries *queries, const char *host);

/* Reserves `count` rotations and returns the first. */
unsigned weir__queries_rotate(weir__queries *queries, weir__query *query, unsigned count);

/* Takes the oldest query from the queue and sets it to RUNNING. NULL: the queue is empty. */
weir__query *weir__queries_next(weir__queries *queries);

/* Caches a query that was answered, evicting the oldest beyond `max`; removes it if there was a
 * flush since it started to run. */
void weir__queries_store(weir__queries *queries, weir__query *query, size_t max);

/* Removes and frees the query and its addresses. It must have no requests. */
void weir__queries_remove(weir__queries *queries, weir__query *query);

static inline size_t weir__queries_pending(const weir__queries *queries)
{
    return weir__string_map_count(&queries->by_host) - queries->answered_count;
}

#endif
