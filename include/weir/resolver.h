/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/resolver.h - asynchronous host name resolution.
 *
 *      weir_resolver_resolve(weir_resolver_default(), "example.org:80", executor, &promise);
 *      ...
 *      const weir_addresses *found = weir_promise_value(promise);
 *
 * Numeric addresses are answered at once, by every resolver. The system resolver answers names
 * under "localhost" and "invalid" itself (RFC 6761), then looks in its cache, in the hosts file,
 * and calls getaddrinfo; the last two on executors that may block. Concurrent requests for one host
 * share a lookup.
 *
 * WEIR_ENOHOST means that the host does not exist; WEIR_ELOOKUP is a failure that may be temporary.
 * The detail text of the promise names the host.
 */
#ifndef WEIR_RESOLVER_H
#define WEIR_RESOLVER_H

#include <weir/address.h>
#include <weir/clock.h>
#include <weir/executor.h>
#include <weir/group.h>
#include <weir/options.h>
#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_resolver weir_resolver;

/* Which addresses of a host to return, and which of them first. */
enum weir_family {
    WEIR_FAMILY_ANY, /* in the system's order (RFC 6724) */
    WEIR_FAMILY_IPV4_FIRST,
    WEIR_FAMILY_IPV6_FIRST,
    WEIR_FAMILY_IPV4_ONLY,
    WEIR_FAMILY_IPV6_ONLY,
};

/* Zero means default. Build with WEIR_RESOLVER_OPTIONS(.round_robin = true, ...). */
typedef struct weir_resolver_options {
    size_t size;
    weir_group *group;       /* runs the blocking lookups, one at a time on each executor. Default:
                                4 threads that exist only while lookups are pending */
    const char *hosts_file;  /* default "/etc/hosts"; "": none. Read again when it has changed */
    int64_t cache_ttl_ns;    /* lifetime of cached addresses, default 30 s; WEIR_OFF: no caching.
                                Addresses from the hosts file are not cached */
    int64_t negative_ttl_ns; /* lifetime of a cached WEIR_ENOHOST, default 5 s; WEIR_OFF */
    int max_cached;          /* cached hosts, at most; default 1024, the oldest are dropped first */
    int max_pending;         /* lookups queued or running, at most; default 4096 */
    bool round_robin;        /* each answer starts with the next address of its family */
    enum weir_family family;
    weir_clock *clock; /* default: the monotonic clock; must outlive the resolver */
} weir_resolver_options;

#define WEIR_RESOLVER_OPTIONS(...) WEIR_OPTIONS(weir_resolver_options, __VA_ARGS__)

/* A snapshot of a resolver's counters. */
typedef struct weir_resolver_stats {
    uint64_t queries;       /* for names; numeric addresses are not counted */
    uint64_t hits;          /* queries answered from the cache */
    uint64_t negative_hits; /* queries failed from the cache */
    uint64_t coalesced;     /* queries that joined a pending lookup */
    uint64_t lookups;       /* completed, in the hosts file or by getaddrinfo */
    uint64_t failures;      /* failed lookups */
    uint64_t cached;        /* hosts in the cache */
    uint64_t pending;       /* lookups queued or running */
    uint64_t reserved[8];
} weir_resolver_stats;

/* A custom resolver. Only `resolve` is required. */
typedef struct weir_resolver_type {
    const char *name;

    /*
     * Any thread, must not block. Looks up a host name, which is never numeric, and completes the
     * promise, on any thread, by weir_resolver_answer or weir_promise_fail. Must retain the promise
     * until then. A cancelled promise needs no answer.
     */
    void (*resolve)(void *user_data, const char *host, uint16_t port, weir_promise *promise);

    void (*destroy)(void *user_data); /* any thread: the last reference was released */
    void (*flush)(void *user_data);   /* any thread: empties the cache */
    void (*read_stats)(void *user_data, weir_resolver_stats *ret_stats); /* any thread; zeroed */
    void *reserved[3];
} weir_resolver_type;

/*
 * Creates a resolver that uses the hosts file and getaddrinfo. NULL options: all defaults.
 * Thread: any.  Keeps: group.  Gives: resolver.  Fails: -EINVAL, -ENOMEM, -ENOTSUP (a group with
 * a thread per channel).
 */
WEIR_API WEIR_MUST_USE int weir_resolver_create_system(const weir_resolver_options *options,
                                                       weir_resolver **ret_resolver);

/*
 * Creates a custom resolver.
 * Thread: any.  Lends until `destroy`: type, user_data.  Gives: resolver.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_resolver_create(const weir_resolver_type *type, void *user_data,
                                                weir_resolver **ret_resolver);

/*
 * Returns the process-wide system resolver, with all defaults. Borrowed; it always exists.
 * Thread: any.
 */
WEIR_API weir_resolver *weir_resolver_default(void);

/*
 * Retains the resolver.
 * Thread: any.
 */
WEIR_API weir_resolver *weir_resolver_retain(weir_resolver *resolver);

/*
 * Releases a reference. NULL is ignored. Pending lookups are still answered.
 * Thread: any.  Takes: resolver.
 */
WEIR_API void weir_resolver_release(weir_resolver *resolver);

/*
 * Resolves "host:port", or parses an address as weir_address_parse does. The promise's value is a
 * weir_addresses, owned by the promise. Its listeners run on `executor` (NULL: the global
 * executor). The promise may be complete already. Cancelling it before the lookup starts prevents
 * the lookup.
 * Thread: any.  Gives: resolving.  Fails: -EINVAL (neither a name nor an address), -ENAMETOOLONG,
 * -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_resolver_resolve(weir_resolver *resolver, const char *text,
                                                 weir_executor *executor,
                                                 weir_promise **ret_resolving);

/*
 * For custom resolvers: completes a promise with a copy of the addresses, all with this port, or
 * with WEIR_ENOHOST if `count` is 0.
 * Thread: any.  Fails: WEIR_ECOMPLETED (for example cancelled), -ENOMEM (and the promise with it).
 */
WEIR_API int weir_resolver_answer(weir_promise *promise, const weir_address *addresses,
                                  size_t count, uint16_t port);

/*
 * Empties the cache. Results of pending lookups are not cached either.
 * Thread: any.
 */
WEIR_API void weir_resolver_flush(weir_resolver *resolver);

/*
 * Takes a snapshot of the counters.
 * Thread: any.
 */
WEIR_API void weir_resolver_read_stats(weir_resolver *resolver, weir_resolver_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
