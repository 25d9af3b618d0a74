/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system resolver: answers are cached in `queries`; workers look up the rest.
 *
 *      resolve (any thread) --> [ queries.queue ] --> worker: hosts file, getaddrinfo --> answer
 *
 * Each executor of the group has a worker, which looks up one name at a time until the queue is
 * empty. Any free worker is posted, so one that is blocked in getaddrinfo delays no others. While
 * the queue is not empty some worker is busy, and each busy worker references the resolver.
 */
#ifndef WEIR_RESOLVER_SYSTEM_RESOLVER_H
#define WEIR_RESOLVER_SYSTEM_RESOLVER_H

#include "os/host_lookup.h"
#include "os/thread.h"
#include "resolver/hosts_file.h"
#include "resolver/query.h"
#include "resolver/resolver.h"

struct weir__system_resolver;

typedef struct weir__resolver_worker {
    weir_task task;
    struct weir__system_resolver *resolver;
    weir_executor *executor;
    bool is_busy;
} weir__resolver_worker;

typedef struct weir__system_resolver {
    weir_resolver *base;
    weir__host_lookup_fn *lookup; /* getaddrinfo, except in tests */
    weir_clock *clock;
    int64_t ttl_ns; /* 0: no caching */
    int64_t negative_ttl_ns;
    size_t max_cached;
    size_t max_pending;
    bool round_robin;
    enum weir_family family;
    char *hosts_path; /* NULL: the default, or none */
    weir__hosts hosts;

    weir__mutex lock; /* guards the rest */
    weir__queries queries;
    weir_resolver_stats stats;      /* except those kept by `queries` */
    weir_group *group;              /* NULL: created with the first lookup */
    bool owns_group;                /* suspends its executors when they have no work */
    weir__resolver_worker *workers; /* NULL until the first lookup */
    size_t worker_count;
    size_t busy_count;
} weir__system_resolver;

/* Like weir_resolver_create_system, with another function instead of getaddrinfo. */
int weir__system_resolver_create(const weir_resolver_options *given, weir__host_lookup_fn *lookup,
                                 weir_resolver **ret_resolver);

/*
 * Frees everything the default resolver holds, as at the end of the process; it may be used again.
 * Returns false and does nothing if a lookup is running.
 */
bool weir__resolver_default_cleanup(void);

/* ---- lookups (lookup.c) ---- */

/* With the lock: creates the workers, if there are none. Fails with -ENOMEM. */
int weir__lookup_create_workers(weir__system_resolver *self);

/* With the lock: marks a free worker as busy and returns it, to be posted; NULL: none is free. */
weir__resolver_worker *weir__lookup_claim_worker(weir__system_resolver *self);

/* Without the lock: posts a claimed worker to its executor. NULL is ignored. */
void weir__lookup_post(weir__resolver_worker *worker);

/* Without the lock: frees the workers; none may be busy. */
void weir__lookup_destroy_workers(weir_group *group, weir__resolver_worker *workers);

/* Completes a request's promise with the addresses, rotated, or with the error. */
void weir__lookup_answer(weir_promise *promise, const char *host, int err,
                         const weir_addresses *addresses, unsigned rotation);

#endif
