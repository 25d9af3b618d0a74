/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border: the handlers from one position to the tail run on an executor of a group, those in
 * front of it on the channel's loop. A pipeline has one border at most.
 *
 *      loop:       head -> a -> b -> near            a ring, closed by the pipeline's head_tail
 *                                     | ^
 *                          near.box   v |   far.box
 *                                       |
 *      executor:                       far -> gate -> e -> f -> (far)          a ring, too
 *
 * Each side owns its ring: the links and marks of its contexts. Two contexts without a handler of
 * the user stand for the other side: `near` is the last of the loop's ring, `far` is head and tail
 * of the executor's. What reaches them is posted to the other side's mailbox and passed on there,
 * in order: inbound from `far` on, outbound from `near` on; an operation that starts at the tail
 * crosses the border as well, and starts at the end of the executor's ring. `gate` holds messages
 * back while auto-read is off (demand.h).
 *
 * The loop decides on changes. It has a list of all contexts behind the border, the residents, with
 * their order and names. A change is a mail between the events:
 *
 *      mail        posted when                      the executor
 *      added       a handler was added              links it, calls `added`
 *      moved       the border moved in front of it  links it first
 *      removed     it was removed                   unlinks it, calls `removed`; the loop frees it
 *
 * The states of a border, which the loop owns:
 *
 *      from        to          when
 *      -           WANTED      handlers that were added on the loop run: the border waits for them
 *      -, WANTED   STANDS      none of them runs: contexts cross
 *      STANDS      QUIET       the border is to move towards the head: asks the executor to hold
 *                              back outbound events, because those that are under way have yet to
 *                              pass the contexts that cross, on the loop
 *      QUIET       STANDS      the answer has come after them: contexts cross, then the executor
 *                              passes on what it held
 *      STANDS      ENDING      no resident is left: asks the executor for its last events
 *      ENDING      -           the answer has come after the last events
 *      ENDING      STANDS      the same, but a handler or an event has crossed meanwhile
 *
 * A context crosses once, while no slot of it is on the stack. From then on the loop only reads its
 * name and table. The channel has one border for each group that it ever had one with, because
 * mails of the last may be under way; only one of them is in use.
 */
#ifndef WEIR_CHANNEL_BORDER_H
#define WEIR_CHANNEL_BORDER_H

#include <weir/group.h>
#include <weir/handler.h>

#include "base/list.h"
#include "base/queue.h"
#include "channel/ctx.h"
#include "channel/invoke.h"
#include "executor/mailbox.h"

typedef struct weir__border weir__border;

enum {
    WEIR__BORDER_NONE,
    WEIR__BORDER_WANTED,
    WEIR__BORDER_STANDS,
    WEIR__BORDER_QUIET,
    WEIR__BORDER_ENDING,
};

/* A handler behind the border. The loop's; the executor reads it during a mail. */
typedef struct weir__resident {
    weir__list link;
    weir_ctx *ctx;
    weir__border *border;
    weir_ctx *after;    /* written before `added` is posted: what it follows; NULL: it is first */
    weir_promise *left; /* a reference: completes when the context is freed; may be NULL */
    bool was_added;     /* `added` was posted, or the handler was on the loop before */
    bool was_removed;   /* out of the pipeline */
    bool is_leaving;    /* `removed` was posted */
    weir__mail added;
    weir__mail removed;
} weir__resident;

/* One side of the border. */
typedef struct weir__side {
    weir_ctx ctx;
    weir__border *border;
    weir__mailbox box; /* to the other side */
} weir__side;

struct weir__border {
    weir__border *next; /* of the channel's */
    weir_channel *channel;
    weir_group *group; /* a reference: it keeps the executor in memory */
    weir_executor *executor;
    weir__side near;
    weir__side far;
    weir__side nowhere; /* around a context that was removed: what it still passes on is lost */
    weir_ctx *gate;

    /* The loop's. */
    uint8_t state;
    bool is_stale; /* ENDING: a handler or an event went over the border meanwhile */
    unsigned retries;
    weir_timer retry;     /* WANTED, or STANDS: contexts cannot cross now */
    weir__list residents; /* of weir__resident.link */

    /* Of contexts that cross: the loop's, then the executor's. */
    weir_timer *moved_timers;
    struct weir__pending_bytes *moved_bytes;

    /* The executor's. */
    weir_timer *timers;
    struct weir__pending_bytes *pending_bytes;
    weir_ctx *last_moved; /* the last of the contexts that cross */
    bool is_holding;
    weir__chain held; /* outbound mails */
    uint32_t held_flags;
};

/* Passes an event on from a context that stands for the other side. */
void weir__border_pass(weir_ctx *ctx, const weir__event *event);

/* ---- on the loop ---- */

/*
 * Finds or makes the border for a context that is to run on a group. Fails with -ENOMEM; -EINVAL,
 * and a line of the log, if the channel has one with another group.
 */
int weir__border_get(const weir_ctx *ctx, weir_group *group, weir__border **ret_border);

/* True if the border is part of the ring. */
static inline bool weir__border_stands(const weir__border *border)
{
    return border != NULL && border->state >= WEIR__BORDER_STANDS;
}

/* The resident of a context; NULL if it is in front of the border. */
weir__resident *weir__border_find(weir__border *border, const weir_ctx *ctx);

/* True if the resident is not in the pipeline any more. */
bool weir__resident_is_removed(const weir__resident *resident);

/* Adds a new context to the residents, in front of `next`. Fails with -ENOMEM. */
int weir__border_add(weir__border *border, weir_ctx *ctx, weir__list *next);

/*
 * Sets the border in front of `added`, which is new and not linked, and of the contexts of the
 * loop's ring from `first` on. Either may be NULL. None of them runs. Fails with -ENOMEM.
 */
int weir__border_cross(weir__border *border, weir_ctx *added, weir_ctx *first);

/* Asks the executor to hold back outbound events: weir__pipeline_advance is called again. */
void weir__border_ask_quiet(weir__border *border);

/* Has the executor call `added`, or `removed`; each once, and the latter only after the former.
 * The resident is not in the pipeline after weir__border_remove. */
void weir__border_announce(weir__resident *resident);
void weir__border_remove(weir__resident *resident);

/* Does what the executor has asked for: removes residents, frees those that it has finished with,
 * and ends the border after the last. */
void weir__border_sweep(weir__border *border);

/* Tries weir__pipeline_advance again later. */
void weir__border_retry(weir__border *border);

/* Any thread, when the channel is freed. */
void weir__borders_destroy(weir__border *borders);

/* ---- on the handler's executor ---- */

/* Asks the loop to remove the handler. */
void weir__border_ask_removal(weir_ctx *ctx);

/* Lets the loop free the context of a handler that was removed and has no offloads any more. */
void weir__border_let_free(weir_ctx *ctx);

/* ---- any thread ---- */

/* The last border that the channel had; NULL: none. The one of a context behind it, for its
 * executor. */
weir__border *weir__channel_border(const weir_channel *channel);

static inline bool weir__ctx_is_remote(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_REMOTE) != 0;
}

#endif
