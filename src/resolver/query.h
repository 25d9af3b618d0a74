/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that a resolver was asked for: those that are to be looked up, those that are being
 * looked up, and those whose answers are kept. No locks: the owner has one.
 *
 *      QUEUED -> RUNNING -> ANSWERED, until it has expired, is the oldest of too many, or flushed
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
    weir__list link;     /* of the queue, or of the answered ones */
    weir__list requests; /* who waits for the answer */
    enum weir__query_state state;
    int err;
    weir_addresses *addresses; /* with port 0; NULL if err < 0 */
    int64_t expires_ns;
    unsigned rotation; /* that comes next: how many have been taken */
    unsigned flushes;  /* that there had been when it began to run */
    char host[];
} weir__query;

typedef struct weir__queries {
    weir__string_map by_host;
    weir__list queue;
    weir__list answered; /* the oldest first */
    size_t answered_count;
    unsigned flushes;
    unsigned rotations[WEIR__QUERY_ROTATIONS]; /* where hosts go on that were not kept, by their
                                             hash; few share one, and then each skips some */
} weir__queries;

void weir__queries_init(weir__queries *queries);

/* Drops those that are answered; those that run will be, too. */
void weir__queries_flush(weir__queries *queries);

/* NULL if it was not asked for, or the answer has expired. */
weir__query *weir__queries_find(weir__queries *queries, const char *host, int64_t now_ns);

/* Queues a new one. NULL = no memory. */
weir__query *weir__queries_add(weir__queries *queries, const char *host);

/* Takes so many rotations, and returns the first of them. */
unsigned weir__queries_rotate(weir__queries *queries, weir__query *query, unsigned count);

/* The oldest of the queue, which is then running; NULL if there is none. */
weir__query *weir__queries_next(weir__queries *queries);

/* Keeps a running one that has its answer, and no more than `max` of them; drops it if there was a
 * flush meanwhile. */
void weir__queries_store(weir__queries *queries, weir__query *query, size_t max);

/* Takes it out and frees it, with its addresses; nobody waits for it. */
void weir__queries_remove(weir__queries *queries, weir__query *query);

static inline size_t weir__queries_pending(const weir__queries *queries)
{
    return weir__string_map_count(&queries->by_host) - queries->answered_count;
}

#endif
