/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that run on another executor than the channel's loop.
 *
 *      loop:         ... -> prev ----------+                  +--> next -> ...
 *                                          v                  |
 *                                       [inbox]           [outbox]
 *      its executor:                       +----> handler ----+
 *
 * What stands in front of such a context, in the same allocation. Events travel through the inbox
 * to the handler, and through the outbox from it, in both directions of the pipeline, in order.
 * Handlers of one executor that are neighbours call each other without that.
 *
 * Events that bring nothing travel in nodes that are part of this, and so cannot fail. One that is
 * still under way when it comes again moves to the end: the last `read_complete` comes after the
 * last message; what begins and ends in pairs stays in pairs. A message needs memory; without, it
 * is released and the channel aborted.
 */
#ifndef WEIR_CHANNEL_REMOTE_HANDLER_H
#define WEIR_CHANNEL_REMOTE_HANDLER_H

#include <stdalign.h>
#include <stdatomic.h>

#include <weir/handler.h>

#include "base/list.h"
#include "channel/ctx.h"
#include "channel/invoke.h"
#include "os/thread.h"

#define WEIR__REMOTE_FIXED 12

typedef struct weir__remote_node {
    weir__list link;
    uint32_t slot; /* or what hop.c adds to them */
    bool is_fixed; /* part of its port: brings nothing */
} weir__remote_node;

typedef struct weir__port {
    weir__mutex lock; /* guards all but the task, which is that of who set `posted` */
    weir__list nodes;
    bool posted;
    bool closed;           /* the handler is gone: use the outbox */
    unsigned under_way[2]; /* what goes in, and out: pushed, and not through yet */
    uint32_t running;      /* the slot of the node that was taken, 0 = none: not through either */
    bool is_asked;         /* a message was requested and has not passed */
    bool has_passed;       /* a message, since the last read_complete */
    bool has_ended;        /* the channel is inactive: messages that wait are released */
    bool lets_all_pass;    /* the handler is removed */
    weir_task task;
    weir__remote_node fixed[WEIR__REMOTE_FIXED];
} weir__port;

typedef struct weir__remote {
    alignas(16) weir_executor *executor; /* kept */
    weir__port inbox;
    weir__port outbox;

    /* The neighbours, if they are of the same executor; with a mark, see hop.c. The loop writes,
     * the executor takes the mark off. */
    _Atomic uintptr_t next;
    _Atomic uintptr_t prev;

    /* The executor's. */
    bool is_ready; /* `added` has been called, or is being */
    weir_timer *timers;
    int64_t held;

    /* The loop's. */
    bool was_added;
    bool was_removed;
    weir_promise *left; /* kept: waits until the handler is gone; may be NULL */
    bool is_gone;       /* its executor has nothing to do with it any more */
} weir__remote;

static inline weir__remote *weir__remote_of(const weir_ctx *ctx)
{
    return (weir__remote *)(uintptr_t)ctx - 1;
}

static inline weir_ctx *weir__remote_ctx(weir__remote *hop)
{
    return (weir_ctx *)(hop + 1);
}

static inline bool weir__ctx_is_remote(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_REMOTE) != 0;
}

/* Makes the hop of a new context. Fails with -ENOMEM. Any thread, as the next. */
int weir__remote_init(weir_ctx *ctx, weir_group *group);
void weir__remote_deinit(weir_ctx *ctx);

/* The loop: an event arrives at this context. */
void weir__remote_enter(weir_ctx *ctx, const weir__event *event);

/* Its executor: an event leaves it. */
void weir__remote_leave(weir_ctx *ctx, const weir__event *event);

/* The loop: the handler is in the pipeline, and is to be told. */
void weir__remote_add(weir_ctx *ctx);

/* The loop: the handler is out of the pipeline; then it is told, once. Before weir__remote_add the
 * latter does nothing: weir__remote_add tells both. */
void weir__remote_take_out(weir_ctx *ctx);
void weir__remote_tell_removed(weir_ctx *ctx);

/* The loop: the channel's last event was fired. When what is on the way to the handler, and away
 * from it, has arrived, weir__pipeline_teardown_after goes on. */
void weir__remote_end(weir_ctx *ctx);

/* Its executor: it wants to be removed. */
void weir__remote_ask_removal(weir_ctx *ctx);

/* Its executor: nothing may be left to do for it, now that it is removed. */
void weir__remote_look(weir_ctx *ctx);

/* The loop: the pipeline has changed, and with it who is whose neighbour. */
void weir__remote_write_down(weir_pipeline *pipeline);

/* The channel's memory goes: which executors its handlers ran on is forgotten. */
struct weir__channel_extra;
void weir__remote_forget(struct weir__channel_extra *extra);

/* The loop: some of what was under way has arrived; true if that is little enough to read on. */
bool weir__remote_may_read(const weir_channel *channel);

#endif
