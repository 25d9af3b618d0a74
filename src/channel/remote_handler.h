/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote handlers: handlers that run on another executor than the channel's loop.
 *
 * A run of neighbouring handlers on one executor is a segment, with one inbox and one outbox.
 * Events of both directions enter it through the inbox and leave it through the outbox, in order.
 * Inside, one member calls the next.
 *
 *      loop:       ... -> a ---------+                      +--> z -> ...
 *                                    v                      |
 *                                 [inbox]               [outbox]
 *      executor:                     +---> e ---> f --------+
 */
#ifndef WEIR_CHANNEL_REMOTE_HANDLER_H
#define WEIR_CHANNEL_REMOTE_HANDLER_H

#include <stdalign.h>
#include <stdatomic.h>

#include <weir/handler.h>

#include "base/list.h"
#include "channel/ctx.h"
#include "channel/invoke.h"
#include "channel/segment_mailbox.h"

typedef struct weir__segment {
    weir_channel *channel;
    weir_executor *executor;
    weir__inbox inbox;
    weir__inbox outbox;

    /* The executor's. */
    weir__list members; /* of weir__remote.link */

    /* The loop's. */
    weir_ctx *first; /* the contexts from here to `last`, along `next`, are the segment's */
    weir_ctx *last;
    bool is_sealed;    /* a node was pushed: handlers that are added next to it do not join */
    bool has_new;      /* ADDED is to be pushed for some of its contexts */
    unsigned open;     /* contexts that are not leaving */
    weir__list splits; /* segments whose SPLIT is in a mailbox of this one, oldest first */

    /* Of a segment that was split off. */
    weir__list split_link;
    weir__inmail split;
    struct weir__remote *split_at; /* the first member to move */
} weir__segment;

/*
 * Stands in front of the context, in the same allocation. That of a context that was moved is in a
 * list of the channel, because contexts and states stay where they are.
 */
typedef struct weir__remote {
    alignas(16) weir_executor *executor; /* a weak reference */
    weir_ctx *ctx;

    /* The executor's. */
    weir__segment *home; /* that it is a member of; NULL before `added` and after `removed` */
    weir__list link;
    uint32_t slots; /* that take events now */
    weir_timer *timers;
    int64_t held;

    /* The loop's. */
    weir__segment *segment;
    weir_promise *left; /* a reference: completes when the context is freed; may be NULL */
    bool was_added;     /* the executor is to call `added`, or has */
    bool was_removed;   /* out of the pipeline */
    bool is_leaving;    /* REMOVED was pushed */

    /* Set by the executor, which then asks for a sweep. */
    atomic_bool wants_removal;
    atomic_bool is_gone; /* the executor does not touch the context any more */

    /* Written by the loop before it pushes the node. */
    weir__inmail added;         /* its slot is 0 before */
    struct weir__remote *after; /* the member that it follows; NULL = none */
    weir__inmail removed;
} weir__remote;

/* Finds that of a context that was moved. */
weir__remote *weir__remote_of_moved(const weir_ctx *ctx);

static inline weir__remote *weir__remote_of(const weir_ctx *ctx)
{
    if (__builtin_expect((ctx->mask & WEIR__CTX_MOVED) != 0, 0))
        return weir__remote_of_moved(ctx);
    return (weir__remote *)(uintptr_t)ctx - 1;
}

static inline bool weir__ctx_is_remote(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_REMOTE) != 0;
}

static inline bool weir__remote_is_leaving(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) && weir__remote_of(ctx)->is_leaving;
}

/* Any thread: initializes the remote part of a new context. Fails with -ENOMEM or -ENOTSUP. */
int weir__remote_init(weir__remote *remote, weir_ctx *ctx, weir_group *group);
void weir__remote_deinit(weir_ctx *ctx);

/* Any thread, when the channel is freed: releases the groups that its handlers run on, and frees
 * the remote parts of moved contexts. */
struct weir__channel_extra;
void weir__remote_forget(struct weir__channel_extra *extra);

/* ---- on the loop ---- */

/* Returns the context to insert another one before instead of `next`, which is not leaving: the
 * first of its segment, if all in between are leaving. So both parts of a split have members. */
weir_ctx *weir__remote_position(weir_ctx *next);

/*
 * Finds or makes the segment of a context that is about to be linked between these two, in place of
 * `prev` if `replaces`; splits the segment that it comes into the middle of. The context may also
 * be one that runs on the loop. Fails with -ENOMEM, without a change.
 */
int weir__remote_place(weir_ctx *ctx, weir_ctx *prev, weir_ctx *next, bool replaces);

/* Takes a remote context, which `prev` leads to, out of its segment; frees that with the last. */
void weir__remote_unplace(weir_ctx *ctx, weir_ctx *prev);

/* Has the executor call `added`; and `removed`, if the context is out of the pipeline already. */
void weir__remote_add(weir_ctx *ctx);

/* Has the executor call `removed`. Does nothing before weir__remote_add. */
void weir__remote_remove(weir_ctx *ctx);

/* Does what the executor has asked for. Returns true if the context can be freed. */
bool weir__remote_sweep(weir_ctx *ctx);

/*
 * Moves a context from the loop, which `prev` leads to, to an executor of the group. It is added,
 * not removed, no slot of it is on the stack, and no other code has a reference to it. The state
 * stays where it is; events that are passed on from here on reach it on the executor, after the
 * timers and pending bytes. Fails with -ENOMEM, -ENOTSUP, WEIR_EREJECTED (the executor shuts down),
 * -EALREADY (the executor is the channel's loop).
 */
int weir__remote_move(weir_ctx *ctx, weir_ctx *prev, weir_group *group);

/* Brings an event to a remote context. */
void weir__remote_enter(weir_ctx *ctx, const weir__event *event);

/* The channel has fired its last event: when it has left the segment of `ctx`, calls
 * weir__pipeline_teardown_after. */
void weir__remote_end(weir_ctx *ctx);

/* ---- on the handler's executor ---- */

/* Passes an event on from a remote context. */
void weir__remote_leave(weir_ctx *ctx, const weir__event *event);

/* Asks the loop to remove the handler. */
void weir__remote_ask_removal(weir_ctx *ctx);

/* Lets the loop free the context of a handler that was removed and has no offloads any more. */
void weir__remote_let_free(weir_ctx *ctx);

#endif
