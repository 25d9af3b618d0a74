/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a pool of connections.
 *
 * A lock instead of an executor of the pool's own: who acquires an idle channel and who gives one
 * back go nowhere, and there is no executor whose end would leave waiters behind. What the lock
 * guards is the bookkeeping alone; channels, promises and the user's functions are called without
 * it. A group that ends closes its channels; each makes room for a connection, which is refused,
 * and whose failure is told to one of those who wait, until none is left.
 *
 *   - each channel that is coming (connecting, or checked) is for one of those who wait, but for
 *     nobody in particular: who came first gets the first that is there. One that is given back is
 *     for them too, although others are being connected.
 *   - channels <= max. One that was sent away no longer counts, though it may take a while to
 * close.
 *
 *                 connected                 delivered
 *      CONNECTING ---------> CHECKING ------------------> OUT
 *                             ^    `-- nobody waits --.    | given
 *                             |                       v    v
 *                             `------- wanted ------ IDLE <- RETURNING
 *
 *      and from everywhere: sent away -> LEAVING -> GONE, or closed by somebody -> GONE
 */
#ifndef WEIR_BOOTSTRAP_CLIENT_POOL_H
#define WEIR_BOOTSTRAP_CLIENT_POOL_H

#include <weir/client.h>
#include <weir/executor.h>

#include "base/list.h"
#include "base/refcount.h"
#include "os/thread.h"

enum weir__pooled_state {
    WEIR__POOLED_CONNECTING,
    WEIR__POOLED_CHECKING,
    WEIR__POOLED_OUT,
    WEIR__POOLED_RETURNING,
    WEIR__POOLED_IDLE,
    WEIR__POOLED_LEAVING, /* is being closed, and counts no more */
    WEIR__POOLED_GONE,
};

/* What a channel is to its pool: an attribute of it, once it is connected. */
typedef struct weir__pooled {
    weir_client_pool *pool;   /* kept */
    weir_channel *channel;    /* kept until it is GONE */
    weir_promise *connecting; /* kept while it is CONNECTING */
    weir_promise *done;       /* kept while it is RETURNING */
    weir__list link;          /* of those that connect, or are idle */
    enum weir__pooled_state state;
    int64_t idle_since_ns;
    weir_task task;         /* on the channel's loop: CHECKING or RETURNING */
    weir_listener listener; /* to its connection, then to its end */
} weir__pooled;

/* Somebody who waits; part of his promise. */
typedef struct weir__acquisition {
    weir_client_pool *pool; /* each who has the acquisition keeps it for himself */
    weir__list link;        /* in the queue, which keeps the promise; or in nothing */
    int64_t deadline_ns;    /* WEIR_NEVER = waits for as long as it takes */
    weir_listener listener; /* to its own end */
} weir__acquisition;

struct weir_client_pool {
    weir__refs refs; /* on the memory */
    weir__refs users;
    weir_client_pool_options options;
    size_t max;
    size_t max_waiting;
    weir_client_options *client; /* a copy */
    weir_promise *closed;

    weir__mutex lock; /* for what follows */
    bool is_closed;
    size_t channels; /* that count against max */
    size_t alive;    /* that are not GONE */
    size_t coming;   /* that are CONNECTING or CHECKING: for those who wait, */
    size_t checking; /* and of these, that are CHECKING */
    size_t starting; /* calls of weir_client_connect that have not returned */
    weir__list connecting;
    weir__list idle; /* the longest first */
    size_t idle_count;
    weir__list waiting; /* the longest first */
    size_t waiting_count;
    weir_promise *alarm;          /* the timer of who has waited longest; NULL = does not run */
    weir_promise *sweep;          /* the timer that closes what was idle too long; the same */
    weir_client_pool_stats stats; /* but for what is counted above */
};

/* With the lock: the channel is to be closed, and does not count any more. */
static inline void weir__pooled_count_out(weir__pooled *pooled)
{
    pooled->pool->channels--;
    pooled->state = WEIR__POOLED_LEAVING;
}

void weir__client_pool_unref(weir_client_pool *pool);
bool weir__client_pool_is_closed(weir_client_pool *pool);

/* The pool is closed, and nothing is being started: it needs its group no more. */
void weir__client_pool_release_client(weir_client_pool *pool);

/* With the lock: the first who waits, and whose promise cannot be cancelled any more; NULL if
 * nobody does. The caller has the queue's reference to the promise. */
weir__acquisition *weir__client_pool_next(weir_client_pool *pool);

/* ---- timers (client_pool_timer.c) ---- */

/* The time of its executor; 0 when that has ended, and its clock may be gone. */
int64_t weir__client_pool_now(const weir_client_pool *pool);

/*
 * With the lock, so that the timer does not fire before its promise is where a close looks for it:
 * starts it, if it does not run, and then it keeps the pool. `fn` begins with the next. Fails with
 * -ENOMEM, WEIR_EREJECTED.
 */
int weir__client_pool_start(weir_client_pool *pool, weir_promise **timer, int64_t at_ns,
                            weir_task_fn *fn);

/* With the lock: the timer has fired, or was cancelled. The caller gives its promise back. */
weir_promise *weir__client_pool_fired(weir_promise **timer);

/* Without the lock: stops a timer that was taken out as above. NULL is fine. */
void weir__client_pool_stop(weir_client_pool *pool, weir_promise *timer);

/* ---- channels (client_pool_channel.c) ---- */

/* Does what can be done for those who wait: checks idle channels, and connects. */
void weir__client_pool_serve(weir_client_pool *pool);

/* What the pool knows of a channel; NULL if it is of no pool. */
weir__pooled *weir__pooled_of(weir_channel *channel);

/* A channel that is RETURNING: it is told on its loop, if anybody is to be told, and is idle. */
void weir__pooled_return(weir__pooled *pooled, weir_promise *done);

/* Completes the promise of somebody who waited, or did not have to. */
void weir__pooled_deliver(weir__pooled *pooled, weir_promise *promise);

/* ---- idle channels (client_pool_idle.c) ---- */

/* With the lock: it is idle from now on. */
void weir__client_pool_put_idle(weir__pooled *pooled);

/* With the lock: an idle channel that is active, by the pool's order, which is then in this state;
 * NULL if there is none. */
weir__pooled *weir__client_pool_take_idle(weir_client_pool *pool, enum weir__pooled_state state);

/* With the lock: the channel that has been idle longest, if it has been since then; kept, and to be
 * closed. NULL if there is none. */
weir_channel *weir__client_pool_take_old(weir_client_pool *pool, int64_t since_ns);

#endif
