/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that have been looked up, by path, and the lookups that are under way.
 *
 * A lookup serves every request for the path that comes while it lasts. The cache is striped by the
 * loops of the requests, not by path: requests on different loops use different mutexes and
 * different files, so that a file that everybody wants is not fought over. The limits hold for all
 * stripes together.
 *
 * Files that nobody has wanted for one or two sweeps are removed, so that a deleted file does not
 * use the disk for long. A sweep is scheduled while there are files.
 */
#ifndef WEIR_PROTOCOL_HTTP_FILE_CACHE_H
#define WEIR_PROTOCOL_HTTP_FILE_CACHE_H

#include <weir/buf.h>
#include <weir/executor.h>

#include "protocol/http/file.h"

typedef struct weir__http_file_cache weir__http_file_cache;
typedef struct weir__http_file_stripe weir__http_file_stripe;

typedef struct weir__http_file_cache_limits {
    int64_t lifetime_ns; /* 0 = nothing is kept */
    size_t bytes;
    unsigned descriptors;
} weir__http_file_cache_limits;

/* A request that waits for a file. */
typedef struct weir__http_waiter {
    struct weir__http_waiter *next;
    void *request;
} weir__http_waiter;

/* A lookup that is under way. */
typedef struct weir__http_lookup {
    struct weir__http_lookup *next;
    weir__http_file_stripe *stripe;
    uint64_t hash;
    weir__http_waiter *waiters;
    int64_t started_ns;
    weir_task task; /* for its owner */
    void *owner;
    size_t length;
    char path[]; /* with a NUL */
} weir__http_lookup;

/* Creates a cache. It sweeps on an executor, which is retained. Fails with -ENOMEM. */
int weir__http_file_cache_create(const weir__http_file_cache_limits *limits,
                                 weir_executor *executor, weir__http_file_cache **ret_cache);

/* Removes all files, and frees the cache when no sweep is scheduled any more. There are no
 * lookups. */
void weir__http_file_cache_close(weir__http_file_cache *cache);

/* Removes all files. */
void weir__http_file_cache_clear(weir__http_file_cache *cache);

/* Finds a file by its path, for a request of a loop: a new reference, or NULL. */
weir__http_file *weir__http_file_cache_get(weir__http_file_cache *cache, const weir_executor *loop,
                                           weir_span path, int64_t now_ns);

/*
 * Makes a request wait for a file. `*ret_lookup` is a lookup for the caller to do, or NULL if there
 * is one under way. Fails with -ENOMEM.
 */
int weir__http_file_cache_wait(weir__http_file_cache *cache, const weir_executor *loop,
                               weir_span path, int64_t now_ns, void *request,
                               weir__http_lookup **ret_lookup);

/*
 * Ends a lookup, keeps the file unless it is NULL, and returns the requests that wait, in their
 * order; free them with weir_memory_free. Takes the lookup, not the file.
 */
weir__http_waiter *weir__http_file_cache_end_lookup(weir__http_file_cache *cache,
                                                    weir__http_lookup *lookup,
                                                    weir__http_file *file);

#endif
