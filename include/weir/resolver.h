/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/resolver.h - from the names of hosts to their addresses.
 *
 *      weir_resolver_resolve(weir_resolver_default(), "example.org:80", executor, &promise);
 *      ...
 *      const weir_addresses *found = weir_promise_value(promise);
 *
 * Addresses in numbers are answered at once, by every resolver. The system's resolver knows what
 * "localhost" is and that nothing is under "invalid" (RFC 6761), looks into its cache, then into
 * the hosts file, and asks getaddrinfo; the last two on executors that may block. Who asks for a
 * host that is being looked up waits for the same answer.
 *
 * No such host is WEIR_ENOHOST; WEIR_ELOOKUP is a failure that may not last. The sentence beside
 * it names the host.
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

/* Which addresses of a host, and which of them first. */
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
    weir_group *group;       /* looks up there, which blocks: one name at a time on each executor.
                                Default: 4 threads of its own, which are there only meanwhile */
    const char *hosts_file;  /* default "/etc/hosts"; "" = none. Read again when it has changed */
    int64_t cache_ttl_ns;    /* keeps addresses for so long, default 30 s; WEIR_OFF = does not.
                                What the hosts file says is not kept */
    int64_t negative_ttl_ns; /* remembers that there is no such host, default 5 s; WEIR_OFF */
    int max_cached;          /* at most so many hosts, default 1024; the oldest go first */
    int max_pending;         /* looks up at most so many at once, default 4096 */
    bool round_robin;        /* each answer begins with the next address, within its family */
    enum weir_family family;
    weir_clock *clock; /* default the monotonic one; must outlive the resolver */
} weir_resolver_options;

#define WEIR_RESOLVER_OPTIONS(...) WEIR_OPTIONS(weir_resolver_options, __VA_ARGS__)

/* What a resolver has done so far, and does now. */
typedef struct weir_resolver_stats {
    uint64_t queries;       /* for names; numbers are not counted */
    uint64_t hits;          /* answered from the cache, */
    uint64_t negative_hits; /* or refused from it */
    uint64_t coalesced;     /* waited for a look-up that was under way */
    uint64_t lookups;       /* that have ended: in the hosts file and by getaddrinfo */
    uint64_t failures;      /* of these */
    uint64_t cached;        /* hosts in the cache now */
    uint64_t pending;       /* look-ups that wait or run now */
    uint64_t reserved[8];
} weir_resolver_stats;

/* A resolver of your own. Only `resolve` must be there. */
typedef struct weir_resolver_type {
    const char *name;

    /*
     * Any thread, must not block: looks up a host, which is no number, and completes the promise in
     * whatever thread, by weir_resolver_answer or weir_promise_fail. It keeps the promise
     * meanwhile; who cancels it does not want to know any more.
     */
    void (*resolve)(void *user_data, const char *host, uint16_t port, weir_promise *promise);

    void (*destroy)(void *user_data); /* any thread: the last reference has gone */
    void (*flush)(void *user_data);   /* any thread: forgets what it knows */
    void (*read_stats)(void *user_data, weir_resolver_stats *ret_stats); /* any thread; of zeroes */
    void *reserved[3];
} weir_resolver_type;

/*
 * Creates a resolver on the system's own means. NULL options: every default.
 * Thread: any.  Keeps: group.  Gives: resolver.  Fails: -EINVAL, -ENOMEM, -ENOTSUP (a group with
 * a thread per channel).
 */
WEIR_API int weir_resolver_create_system(const weir_resolver_options *options,
                                         weir_resolver **ret_resolver);

/*
 * Creates a resolver of your own.
 * Thread: any.  Lends until `destroy`: type, user_data.  Gives: resolver.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_resolver_create(const weir_resolver_type *type, void *user_data,
                                  weir_resolver **ret_resolver);

/*
 * The process's own: the system's, with every default. Always there, borrowed.
 * Thread: any.
 */
WEIR_API weir_resolver *weir_resolver_default(void);

/*
 * Keeps a resolver.
 * Thread: any.
 */
WEIR_API weir_resolver *weir_resolver_retain(weir_resolver *resolver);

/*
 * Gives a reference back; NULL is fine. What is being looked up still gets its answer.
 * Thread: any.  Takes: resolver.
 */
WEIR_API void weir_resolver_release(weir_resolver *resolver);

/*
 * Looks up "host:port", or reads an address as weir_address_parse does. The promise's value is a
 * weir_addresses, kept by the promise, whose listeners run on `executor` (NULL: the global one); it
 * may be complete already. One that is cancelled before its look-up begins saves it.
 * Thread: any.  Gives: resolving.  Fails: -EINVAL (neither a name nor an address), -ENAMETOOLONG,
 * -ENOMEM.
 */
WEIR_API int weir_resolver_resolve(weir_resolver *resolver, const char *text,
                                   weir_executor *executor, weir_promise **ret_resolving);

/*
 * For resolvers of your own: completes a promise with a copy of the addresses, all with this port;
 * with WEIR_ENOHOST if there are none.
 * Thread: any.  Fails: WEIR_ECOMPLETED (cancelled, say), -ENOMEM (which the promise then has).
 */
WEIR_API int weir_resolver_answer(weir_promise *promise, const weir_address *addresses,
                                  size_t count, uint16_t port);

/*
 * Forgets all that is cached, and does not keep what is being looked up.
 * Thread: any.
 */
WEIR_API void weir_resolver_flush(weir_resolver *resolver);

/*
 * The figures as of now.
 * Thread: any.
 */
WEIR_API void weir_resolver_read_stats(weir_resolver *resolver, weir_resolver_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
