/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's resolver: what is known stands in `queries`; what is not is looked up by workers.
 *
 *      resolve (any thread) --> [ queries.queue ] --> worker: hosts file, getaddrinfo --> answer
 *
 * A worker is an executor that works, a name at a time, until the queue is empty. There is one for
 * each executor of the group, and whichever is free is called: one that hangs in getaddrinfo holds
 * up nobody else. While the queue is not empty some worker is busy, and each busy one keeps the
 * resolver.
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
    weir__host_lookup_fn *lookup; /* getaddrinfo, but for tests */
    weir_clock *clock;
    int64_t ttl_ns; /* 0 = keeps nothing */
    int64_t negative_ttl_ns;
    size_t max_cached;
    size_t max_pending;
    bool round_robin;
    enum weir_family family;
    char *hosts_path; /* NULL = the default, or none */
    weir__hosts hosts;

    weir__mutex lock; /* for what follows */
    weir__queries queries;
    weir_resolver_stats stats;      /* but for those that `queries` knows */
    weir_group *group;              /* NULL = its own is to be made with the first look-up */
    bool owns_group;                /* and its threads rest when there is nothing to do */
    weir__resolver_worker *workers; /* NULL until the first look-up */
    size_t worker_count;
    size_t busy_count;
} weir__system_resolver;

/* As weir_resolver_create_system, with another function in the place of getaddrinfo. */
int weir__system_resolver_create(const weir_resolver_options *given, weir__host_lookup_fn *lookup,
                                 weir_resolver **ret_resolver);

/*
 * Lets go of all that the default resolver has, as it is done at the end of the process: it begins
 * anew when it is used again. False if it is looking something up, and then nothing is done.
 */
bool weir__resolver_default_cleanup(void);

/* ---- looking up (lookup.c) ---- */

/* With the lock: makes the workers, if there are none. Fails with -ENOMEM. */
int weir__lookup_create_workers(weir__system_resolver *self);

/* With the lock: a worker that is free, who is then busy, and must be sent; or NULL. */
weir__resolver_worker *weir__lookup_claim_worker(weir__system_resolver *self);

/* Without the lock: makes the worker work. NULL is fine. */
void weir__lookup_post(weir__resolver_worker *worker);

/* With nobody busy: ends the workers, without the lock. */
void weir__lookup_destroy_workers(weir_group *group, weir__resolver_worker *workers);

/* Completes the promise of a query: with the addresses as it is their rotation, or with the error.
 */
void weir__lookup_answer(weir_promise *promise, const char *host, int err,
                         const weir_addresses *addresses, unsigned rotation);

#endif
