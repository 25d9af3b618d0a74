/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/client.h - makes a channel, gives it its handlers and its loop, and connects it.
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
                                      "unix:/run/x.sock", "unix:@name", "inproc:..."; a name is
                                      looked up by `resolver` */
    const weir_address *addresses; /* instead: several, tried by happy eyeballs (RFC 8305) */
    size_t address_count;
    int64_t attempt_delay_ns;  /* before the next address is tried as well: default 250 ms, 10 ms at
                                  the least; WEIR_OFF = only when the one before has failed */
    const char *local_address; /* default: the system's choice */
    weir_init_fn *init;        /* on the channel's loop; default: no handlers */
    void *user_data;
    const weir_channel_options *options;    /* connect_timeout_ns is for each attempt */
    const weir_attribute_value *attributes; /* set on each channel: not freed by it */
    size_t attribute_count;
    enum weir_kind kind;     /* default WEIR_KIND_STREAM */
    weir_executor *loop;     /* instead of a group: this one, such as that of another channel */
    weir_resolver *resolver; /* default weir_resolver_default() */
} weir_client_options;

#define WEIR_CLIENT_OPTIONS(...) WEIR_OPTIONS(weir_client_options, __VA_ARGS__)

/*
 * Connects. The promise's value is the channel, kept by the promise; cancelling it gives up. With
 * several addresses, given or those of a name, the first that answers wins, and `init` runs for
 * each attempt: those that lose are aborted. If all fail the promise has the last one's error, and
 * a sentence that tells of each; a name that cannot be resolved, WEIR_ENOHOST or WEIR_ELOOKUP. A
 * loop whose thread cannot be started fails it with -EAGAIN or -ENOMEM, one that has shut down with
 * WEIR_EREJECTED. Its listeners run on the channel's loop, before `active`.
 * Thread: any.  Gives: connecting.  Fails: -EINVAL, -ENOMEM, -EAFNOSUPPORT; if the group has a
 * thread per channel, WEIR_ETOOMANY, WEIR_EREJECTED, and with what an executor was refused with.
 */
WEIR_API int weir_client_connect(const weir_client_options *options, weir_promise **ret_connecting);

/*
 * Connects, and waits for it. What was wrong in words, and of which address, is only in the promise
 * of weir_client_connect.
 * Thread: any that may wait.  Gives: channel.  Fails: -EDEADLK, and with what failed the
 * connection.
 */
WEIR_API int weir_client_connect_sync(const weir_client_options *options,
                                      weir_channel **ret_channel);

/* --- client pool ------------------------------------------------------------------------------ */

/*
 * Connections to one peer that are made when they are needed, and used again.
 *
 *      weir_client_pool_create(WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(...),
 *                                                       .max = 8), &pool);
 *      weir_client_pool_acquire(pool, executor, &promise);   its value is the channel
 *      ...
 *      weir_client_pool_return(pool, channel, NULL);
 *
 * An idle channel is checked on its loop before it is handed out: one that is not healthy is
 * closed, and the next is tried. If none is idle, one is connected, up to `max`; beyond that who
 * acquires waits, first come, first served. Who has acquired a channel gives it back, or closes it:
 * a channel that closes, in whoever's hands, leaves the pool and makes room.
 */

typedef struct weir_client_pool weir_client_pool;

/* Called on the channel's loop. */
typedef bool weir_client_pool_check_fn(weir_channel *channel, void *user_data);
typedef void weir_client_pool_fn(weir_channel *channel, void *user_data);

/* Which of the idle channels is next. */
enum weir_client_pool_order {
    WEIR_CLIENT_POOL_LIFO, /* the one that was given last: those that are not needed stay idle */
    WEIR_CLIENT_POOL_FIFO, /* the one that has been idle longest: all are used alike */
};

/* Zero means default. Build with WEIR_CLIENT_POOL_OPTIONS(.client = ..., .max = 8, ...). */
typedef struct weir_client_pool_options {
    size_t size;
    const weir_client_options *client; /* copied with the addresses, the channel's options and the
                                          list of attributes; the user_data and the attributes'
                                          values are lent until the last channel is closed */
    int max;                           /* channels, idle ones too; default 16 */
    int max_waiting;            /* who acquires beyond this fails with WEIR_EFULL; default 1024;
                                   WEIR_OFF = nobody waits */
    int64_t acquire_timeout_ns; /* with -ETIMEDOUT, also while it connects; default 30 s; WEIR_OFF
                                   = waits for as long as it takes */
    int64_t idle_timeout_ns;    /* closes those that were idle for so long; default: does not */
    enum weir_client_pool_order order;
    weir_executor *executor; /* for its timers; default the global one */

    weir_client_pool_check_fn *healthy; /* besides being active, before it is acquired */
    weir_client_pool_fn *created;       /* once it is connected */
    weir_client_pool_fn *acquired;      /* before the promise of who has acquired it completes */
    weir_client_pool_fn *released;      /* when it was given back, if it is still open */
    void *user_data;                    /* of these */
} weir_client_pool_options;

#define WEIR_CLIENT_POOL_OPTIONS(...) WEIR_OPTIONS(weir_client_pool_options, __VA_ARGS__)

/* What a pool has now, and has done so far. */
typedef struct weir_client_pool_stats {
    uint64_t channels; /* idle ones, acquired ones, and those that are being connected or checked */
    uint64_t idle;
    uint64_t waiting;   /* who have asked, and have not got one yet */
    uint64_t created;   /* channels that were connected */
    uint64_t failed;    /* connections that failed */
    uint64_t acquired;  /* how often a channel was handed out, */
    uint64_t unhealthy; /* and how often not, because of what the check said */
    uint64_t reserved[8];
} weir_client_pool_stats;

/*
 * Creates a pool. It connects when somebody acquires.
 * Thread: any.  Keeps: executor, and the client's group and resolver, until it is closed.  Gives:
 * pool.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_client_pool_create(const weir_client_pool_options *options,
                                     weir_client_pool **ret_pool);

/*
 * Keeps a pool.
 * Thread: any.
 */
WEIR_API weir_client_pool *weir_client_pool_retain(weir_client_pool *pool);

/*
 * Gives a reference back; NULL is fine. The last one closes the pool.
 * Thread: any.  Takes: pool.
 */
WEIR_API void weir_client_pool_release(weir_client_pool *pool);

/*
 * Asks for a channel. It is the promise's value, kept by the promise, whose listeners run on
 * `executor` (NULL: the global one). Cancelling the promise gives up the place in the queue; the
 * channel that was on its way stays in the pool; a promise that is only let go of gets its channel
 * all the same, and nobody gives that back. If a connection fails, who has waited longest hears of
 * it. A full queue and a closed pool are errors of the promise: WEIR_EFULL, WEIR_ECLOSED.
 * Thread: any.  Gives: acquiring.  Fails: -ENOMEM.
 */
WEIR_API int weir_client_pool_acquire(weir_client_pool *pool, weir_executor *executor,
                                      weir_promise **ret_acquiring);

/*
 * Gives a channel back that was acquired here. One of another pool's, or of none, is closed, and
 * `done` fails with -EINVAL; one that was given back already is left alone (-EALREADY). A channel
 * that is closed, or whose pool is, is fine: it does not come back. `done` may be NULL.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_client_pool_return(weir_client_pool *pool, weir_channel *channel,
                                      weir_promise *done);

/*
 * Closes the pool: who waits fails with WEIR_ECLOSED, idle channels are closed, connections under
 * way are given up, and channels that are out are closed when they are given back.
 * Thread: any.
 */
WEIR_API void weir_client_pool_close(weir_client_pool *pool);

/*
 * Completes when the pool is closed and so is every channel of it, those that were out included.
 * Borrowed; never fails.
 * Thread: any.
 */
WEIR_API weir_promise *weir_client_pool_closed(weir_client_pool *pool);

/*
 * The figures as of now.
 * Thread: any.
 */
WEIR_API void weir_client_pool_read_stats(weir_client_pool *pool,
                                          weir_client_pool_stats *ret_stats);

/* --- client pools ----------------------------------------------------------------------------- */

/*
 * A pool of connections for each address, made when it is first asked for.
 *
 *      weir_client_pools_create(WEIR_CLIENT_POOL_OPTIONS(.client = ..., .max = 8), &pools);
 *      weir_client_pools_get(pools, "example.org:80", &pool);
 */

typedef struct weir_client_pools weir_client_pools;

/*
 * Creates an empty set of pools, which will all have these options; the client's have no address.
 * Thread: any.  Keeps: executor, and the client's group and resolver, until it is closed.  Gives:
 * pools.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_client_pools_create(const weir_client_pool_options *options,
                                      weir_client_pools **ret_pools);

/*
 * Keeps the set.
 * Thread: any.
 */
WEIR_API weir_client_pools *weir_client_pools_retain(weir_client_pools *pools);

/*
 * Gives a reference back; NULL is fine. The last one closes all pools.
 * Thread: any.  Takes: pools.
 */
WEIR_API void weir_client_pools_release(weir_client_pools *pools);

/*
 * The pool for an address, which is told from others by its text. It is made if there is none, or
 * if the one that there was has been closed.
 * Thread: any.  Gives: pool.  Fails: WEIR_ECLOSED, and as weir_client_pool_create.
 */
WEIR_API int weir_client_pools_get(weir_client_pools *pools, const char *address,
                                   weir_client_pool **ret_pool);

/*
 * How many pools there are.
 * Thread: any.
 */
WEIR_API size_t weir_client_pools_count(weir_client_pools *pools);

/*
 * Closes all pools; no more can be had.
 * Thread: any.
 */
WEIR_API void weir_client_pools_close(weir_client_pools *pools);

#ifdef __cplusplus
}
#endif

#endif
