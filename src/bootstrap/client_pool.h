/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of a pool of connections.
 *
 * The pool has a lock, not an executor: acquiring an idle channel and returning one need no other
 * thread, and no executor can end with acquisitions waiting. The lock guards the bookkeeping only;
 * channels, promises and user functions are called without it. A group that shuts down closes its
 * channels; each makes room for a connection, which fails, and fails one acquisition, until none is
 * left.
 *
 *   - Each coming channel (being connected or checked) is for one waiting acquisition, but for none
 *     in particular: the first acquisition gets the first channel. A returned channel goes to them,
 *     too, although others are being connected.
 *   - channels <= max. A channel being closed by the pool no longer counts.
 *
 *                 connected                 delivered
 *      CONNECTING ---------> CHECKING ------------------> OUT
 *                             ^    `-- none waits ----.    | returned
 *                             |                       v    v
 *                             `------ acquired ----- IDLE <- RETURNING
 *
 *      and from every state: closed by the pool -> LEAVING -> GONE, or closed otherwise -> GONE
 */
#ifndef WEIR_BOOTSTRAP_CLIENT_POOL_H
#define WEIR_BOOTSTRAP_CLIENT_POOL_H

#include <weir/client.h>
#include <weir/executor.h>

#include "base/list.h"
#include "base/refcount.h"
#include "executor/mailbox.h"
#include "os/thread.h"

enum weir__pooled_state {
    WEIR__POOLED_CONNECTING,
    WEIR__POOLED_CHECKING,
    WEIR__POOLED_OUT,
    WEIR__POOLED_RETURNING,
    WEIR__POOLED_IDLE,
    WEIR__POOLED_LEAVING, /* being closed, and no longer counted */
    WEIR__POOLED_GONE,
};

/* The state of a channel in its pool: an attribute of the channel, once it is connected. */
typedef struct weir__pooled {
    weir_client_pool *pool;   /* owned */
    weir_channel *channel;    /* owned until GONE */
    weir_promise *connecting; /* owned while CONNECTING */
    weir_promise *done;       /* owned while RETURNING */
    weir__list link;          /* in `connecting` or `idle` */
    enum weir__pooled_state state;
    int64_t idle_since_ns;
    weir__mail mail;        /* to the channel: CHECKING or RETURNING */
    weir_listener listener; /* on its connection, then on its close */
} weir__pooled;

/* A waiting acquisition; part of its promise. */
typedef struct weir__acquisition {
    weir_client_pool *pool; /* each holder of the acquisition has its own reference */
    weir__list link;        /* in the queue, which owns a reference to the promise; or in none */
    int64_t deadline_ns;    /* WEIR_NEVER = none */
    weir_listener listener; /* on its own completion */
} weir__acquisition;

struct weir_client_pool {
    weir__refs refs; /* on the memory */
    weir__refs users;
    weir_client_pool_options options;
    size_t max;
    size_t max_idle;
    size_t max_waiting;
    weir_client_options *client; /* a copy */
    weir_promise *closed;

    weir__mutex lock; /* guards the following */
    bool is_closed;
    size_t channels; /* counted against max */
    size_t alive;    /* not GONE */
    size_t coming;   /* CONNECTING or CHECKING: for waiting acquisitions, */
    size_t checking; /* of these, CHECKING */
    size_t starting; /* calls of weir_client_connect in progress */
    weir__list connecting;
    weir__list idle; /* the longest idle first */
    size_t idle_count;
    weir__list waiting; /* the longest waiting first */
    size_t waiting_count;
    weir_promise *alarm;          /* the timer of the first acquisition; NULL = not running */
    weir_promise *sweep;          /* the timer of the first idle channel; the same */
    weir_client_pool_stats stats; /* except the counts above */
};

/* With the lock: the channel will be closed, and is no longer counted. */
static inline void weir__pooled_count_out(weir__pooled *pooled)
{
    pooled->pool->channels--;
    pooled->state = WEIR__POOLED_LEAVING;
}

void weir__client_pool_unref(weir_client_pool *pool);
bool weir__client_pool_is_closed(weir_client_pool *pool);

/* Releases the client's group and resolver, once the pool is closed and no connect is in progress.
 */
void weir__client_pool_release_client(weir_client_pool *pool);

/* With the lock: takes the first acquisition, and makes its promise uncancellable; NULL if there is
 * none. The caller owns the queue's reference to the promise. */
weir__acquisition *weir__client_pool_next(weir_client_pool *pool);

/* ---- timers (client_pool_timer.c) ---- */

/* The time of the executor; 0 when it has ended, and its clock may be freed. */
int64_t weir__client_pool_now(const weir_client_pool *pool);

/*
 * With the lock, so that the timer does not fire before its promise is stored: starts it, unless it
 * runs. A running timer holds a reference to the pool. `fn` first calls weir__client_pool_fired.
 * Fails with -ENOMEM, WEIR_EREJECTED.
 */
int weir__client_pool_start(weir_client_pool *pool, weir_promise **timer, int64_t at_ns,
                            weir_task_fn *fn);

/* With the lock: the timer has fired, or was cancelled. The caller releases its promise. */
weir_promise *weir__client_pool_fired(weir_promise **timer);

/* Without the lock: stops a timer that was taken as above. NULL is ignored. */
void weir__client_pool_stop(weir_client_pool *pool, weir_promise *timer);

/* ---- channels (client_pool_channel.c) ---- */

/* Serves waiting acquisitions: checks idle channels, and connects new ones. */
void weir__client_pool_serve(weir_client_pool *pool);

/* The pool state of a channel; NULL if it is not from a pool. */
weir__pooled *weir__pooled_of(weir_channel *channel);

/* Returns a channel in RETURNING: calls `released` on its loop, if set, then makes it idle. */
void weir__pooled_return(weir__pooled *pooled, weir_promise *done);

/* Completes the promise of an acquisition. */
void weir__pooled_deliver(weir__pooled *pooled, weir_promise *promise);

/* ---- idle channels (client_pool_idle.c) ---- */

/* With the lock: makes the channel idle. */
void weir__client_pool_put_idle(weir__pooled *pooled);

/* With the lock: takes the next active idle channel, by the pool's order, into `state`; NULL if
 * there is none. */
weir__pooled *weir__client_pool_take_idle(weir_client_pool *pool, enum weir__pooled_state state);

/* With the lock: the channel idle longest, if it has been idle since then; retained, for the caller
 * to close. NULL if there is none. */
weir_channel *weir__client_pool_take_old(weir_client_pool *pool, int64_t since_ns);

#endif
