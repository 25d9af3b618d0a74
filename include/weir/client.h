/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/client.h - connecting, and pools of connections.
 *
 *      weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:8007",
 *                                                   .init = init), &channel);
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/options.h>
#include <weir/resolver.h>
#include <weir/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_CLIENT_OPTIONS(.group = g, .address = "...", ...). */
typedef struct weir_client_options {
    size_t size;
    weir_group *group;
    const char *address;           /* "127.0.0.1:8007", "[::1]:8007", "example.org:80",
                                      "unix:/run/x.sock", "unix:@name", "inproc:..."; names are
                                      resolved by `resolver` */
    const weir_address *addresses; /* instead: several, by happy eyeballs (RFC 8305) */
    size_t address_count;
    int64_t attempt_delay_ns;  /* until the next address is tried, too: default 250 ms, at least
                                  10 ms; WEIR_OFF = only when the previous one has failed */
    const char *local_address; /* default: chosen by the system */
    weir_init_fn *init;        /* on the channel's loop; default: no handlers */
    void *user_data;
    const weir_channel_options *options;    /* connect_timeout_ns applies to each attempt */
    const weir_attribute_value *attributes; /* set on each channel, which does not free them */
    size_t attribute_count;
    enum weir_kind kind;     /* default WEIR_KIND_STREAM */
    weir_executor *loop;     /* instead of a group, such as the loop of another channel */
    weir_resolver *resolver; /* default weir_resolver_default() */
} weir_client_options;

#define WEIR_CLIENT_OPTIONS(...) WEIR_OPTIONS(weir_client_options, __VA_ARGS__)

/*
 * Creates a channel, adds its handlers, and connects it. The value of the promise is the channel,
 * owned by the promise; cancelling the promise aborts the attempt. Listeners of the promise run on
 * the channel's loop, before `active`.
 *
 * With several addresses, given or resolved from a name, the first that answers wins; `init` runs
 * for each attempt, and the losing ones are aborted. If all fail, the promise has the error of the
 * last one, and its detail lists all. Other errors of the promise: WEIR_ENOHOST and WEIR_ELOOKUP
 * (the name cannot be resolved), -EAGAIN or -ENOMEM (the loop cannot start its thread),
 * WEIR_EREJECTED (the loop has shut down).
 * Thread: any.  Gives: connecting.  Fails: -EINVAL, -ENOMEM, -EAFNOSUPPORT; if the group has a
 * thread per channel, WEIR_ETOOMANY, WEIR_EREJECTED, and with the error of creating an executor.
 */
WEIR_API WEIR_MUST_USE int weir_client_connect(const weir_client_options *options,
                                               weir_promise **ret_connecting);

/*
 * Connects, and waits for the result. Only the promise of weir_client_connect has a detail that
 * names the address.
 * Thread: any that may wait.  Gives: channel.  Fails: -EDEADLK, and with the error of the
 * connection.
 */
WEIR_API WEIR_MUST_USE int weir_client_connect_sync(const weir_client_options *options,
                                                    weir_channel **ret_channel);

/* --- client pool ------------------------------------------------------------------------------ */

/*
 * A pool of connections to one peer, which are made on demand and reused.
 *
 *      weir_client_pool_create(WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(...),
 *                                                       .max = 8), &pool);
 *      weir_client_pool_acquire(pool, executor, &promise);   its value is the channel
 *      ...
 *      weir_client_pool_return(pool, channel, NULL);
 *
 * An idle channel is checked on its loop before it is acquired: an unhealthy one is closed, and the
 * next is tried. If none is idle, a new one is connected, up to `max`; beyond that, callers wait in
 * order of arrival. An acquired channel is returned or closed. A channel that closes, acquired or
 * not, leaves the pool and makes room for another.
 */

typedef struct weir_client_pool weir_client_pool;

/* Called on the channel's loop. */
typedef bool weir_client_pool_check_fn(weir_channel *channel, void *user_data);
typedef void weir_client_pool_fn(weir_channel *channel, void *user_data);

/* Which idle channel is acquired next. */
enum weir_client_pool_order {
    WEIR_CLIENT_POOL_LIFO, /* the one returned last: surplus channels stay idle */
    WEIR_CLIENT_POOL_FIFO, /* the one idle longest: all are used evenly */
};

/* Zero means default. Build with WEIR_CLIENT_POOL_OPTIONS(.client = ..., .max = 8, ...). */
typedef struct weir_client_pool_options {
    size_t size;
    const weir_client_options *client; /* copied, with its addresses, channel options and list of
                                          attributes; user_data and attribute values are borrowed
                                          until the last channel is closed */
    int max;                           /* channels, including idle ones; default 16; WEIR_OFF =
                                          no limit */
    int max_idle;                      /* more are closed when they are returned; default: max */
    int max_waiting;                   /* more waiting callers fail with WEIR_EFULL; default 1024;
                                          WEIR_OFF = callers never wait */
    int64_t acquire_timeout_ns; /* then -ETIMEDOUT; includes connecting; default 30 s; WEIR_OFF =
                                   no timeout */
    int64_t idle_timeout_ns;    /* closes channels idle for this long; default: never */
    enum weir_client_pool_order order;
    weir_executor *executor; /* for its timers; default the global one */

    weir_client_pool_check_fn *healthy; /* before it is acquired; in addition to being active */
    weir_client_pool_fn *created;       /* once it is connected */
    weir_client_pool_fn *acquired;      /* before the promise of the acquisition completes */
    weir_client_pool_fn *released;      /* when it is returned, if it is still open */
    void *user_data;                    /* for these */
} weir_client_pool_options;

#define WEIR_CLIENT_POOL_OPTIONS(...) WEIR_OPTIONS(weir_client_pool_options, __VA_ARGS__)

/* Current state, and counters since the creation. */
typedef struct weir_client_pool_stats {
    uint64_t channels; /* idle, acquired, and being connected or checked */
    uint64_t idle;
    uint64_t waiting;   /* pending acquisitions */
    uint64_t created;   /* channels connected */
    uint64_t failed;    /* failed connections */
    uint64_t acquired;  /* completed acquisitions */
    uint64_t unhealthy; /* channels closed because `healthy` returned false */
    uint64_t reserved[8];
} weir_client_pool_stats;

/*
 * Creates a pool. Connections are made by weir_client_pool_acquire.
 * Thread: any.  Keeps: executor, and the client's group and resolver, until it is closed.  Gives:
 * pool.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_client_pool_create(const weir_client_pool_options *options,
                                                   weir_client_pool **ret_pool);

/*
 * Retains the pool.
 * Thread: any.
 */
WEIR_API weir_client_pool *weir_client_pool_retain(weir_client_pool *pool);

/*
 * Releases a reference. NULL is ignored. Releasing the last one closes the pool.
 * Thread: any.  Takes: pool.
 */
WEIR_API void weir_client_pool_release(weir_client_pool *pool);

/*
 * Acquires a channel. It is the value of the promise, owned by the promise, whose listeners run on
 * `executor` (NULL: the global one). Cancelling the promise leaves the queue; a channel on its way
 * stays in the pool. A promise that is only released still gets a channel, which is then lost to
 * the pool. A failed connection fails the acquisition that has waited longest. The promise also
 * fails with WEIR_EFULL (too many are waiting) and WEIR_ECLOSED (the pool is closed).
 * Thread: any.  Gives: acquiring.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_client_pool_acquire(weir_client_pool *pool, weir_executor *executor,
                                                    weir_promise **ret_acquiring);

/*
 * Returns an acquired channel to the pool. A channel of another pool, or of none, is closed, and
 * `done` fails with -EINVAL; with -EALREADY if it was returned before. Returning a closed channel,
 * or to a closed pool, is allowed. `done` may be NULL.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_client_pool_return(weir_client_pool *pool, weir_channel *channel,
                                      weir_promise *done);

/*
 * Closes the pool: waiting acquisitions fail with WEIR_ECLOSED, idle channels are closed, pending
 * connections are aborted, and acquired channels are closed when they are returned.
 * Thread: any.
 */
WEIR_API void weir_client_pool_close(weir_client_pool *pool);

/*
 * Completes when the pool and all its channels, acquired ones included, are closed. Borrowed; never
 * fails.
 * Thread: any.
 */
WEIR_API weir_promise *weir_client_pool_closed(weir_client_pool *pool);

/*
 * Reads the current stats.
 * Thread: any.
 */
WEIR_API void weir_client_pool_read_stats(weir_client_pool *pool,
                                          weir_client_pool_stats *ret_stats);

/* --- client pools ----------------------------------------------------------------------------- */

/*
 * A set of pools, one for each address, created on demand.
 *
 *      weir_client_pools_create(WEIR_CLIENT_POOL_OPTIONS(.client = ..., .max = 8), &pools);
 *      weir_client_pools_get(pools, "example.org:80", &pool);
 */

typedef struct weir_client_pools weir_client_pools;

/*
 * Creates an empty set. All its pools have these options; those of the client have no address.
 * Thread: any.  Keeps: executor, and the client's group and resolver, until it is closed.  Gives:
 * pools.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_client_pools_create(const weir_client_pool_options *options,
                                                    weir_client_pools **ret_pools);

/*
 * Retains the pools.
 * Thread: any.
 */
WEIR_API weir_client_pools *weir_client_pools_retain(weir_client_pools *pools);

/*
 * Releases a reference. NULL is ignored. Releasing the last one closes all pools.
 * Thread: any.  Takes: pools.
 */
WEIR_API void weir_client_pools_release(weir_client_pools *pools);

/*
 * Gets the pool for an address; addresses are compared as text. Creates it if there is none, or if
 * it was closed.
 * Thread: any.  Gives: pool.  Fails: WEIR_ECLOSED, and as weir_client_pool_create.
 */
WEIR_API WEIR_MUST_USE int weir_client_pools_get(weir_client_pools *pools, const char *address,
                                                 weir_client_pool **ret_pool);

/*
 * The number of pools.
 * Thread: any.
 */
WEIR_API size_t weir_client_pools_count(weir_client_pools *pools);

/*
 * Closes all pools. No more can be created.
 * Thread: any.
 */
WEIR_API void weir_client_pools_close(weir_client_pools *pools);

#ifdef __cplusplus
}
#endif

#endif
