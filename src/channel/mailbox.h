/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox of a channel: calls from other threads, and work that must happen later, or on the
 * loop, and must not fail.
 *
 * A call with an argument or a promise is a mail. Other calls are flags, which need no memory, and
 * so is all that the channel itself leaves for later: the events after a close, the rest of a
 * flush, a writability event from another thread.
 *
 * Order. Calls run in the order in which they were made, whichever threads made them. On the loop a
 * call runs immediately, if none waits that was made before it: otherwise it is posted. So a call
 * that follows a call on another thread, by a promise, a task or any other chain of events, does
 * not overtake it. Three exceptions:
 *   - The handlers of the channel, while one of their functions is on the stack, act immediately.
 *     A handler mixes these calls with those of its context, and all of them keep their order.
 *   - weir_channel_abort acts immediately: it drops what was written before.
 *   - Changes of the pipeline and of options return their result, so they are immediate on the
 * loop.
 *
 * Moves. The mailbox follows the channel to another loop. A move is a mail, which puts the
 * registration on the new loop before everything else that is in the mailbox.
 */
#ifndef WEIR_CHANNEL_MAILBOX_H
#define WEIR_CHANNEL_MAILBOX_H

#include "channel/channel.h"

/* ---- calls ---- */

typedef struct weir__call weir__call;

/* What a call does. Exactly one of the two functions is called; it owns the argument. */
typedef struct weir__operation {
    void (*run)(weir_channel *channel, weir__call *call);           /* on the loop */
    void (*fail)(weir_channel *channel, weir__call *call, int err); /* it never gets there; any
                                                                       thread */
} weir__operation;

/* A call on its way to the loop: a node of node_pool.h. */
struct weir__call {
    weir__mail mail;
    const weir__operation *operation;
    weir_promise *done; /* retained; may be NULL */
    void *arg;
    int64_t number;
};

/* Any thread: posts a call. Returns -ENOMEM if it has failed already. */
int weir__channel_call(weir_channel *channel, const weir__operation *operation, weir_promise *done,
                       void *arg, int64_t number);

/* The same in two steps, for a call that has to be possible before something else is done. NULL
 * without memory. */
weir__call *weir__call_create(const weir__operation *operation, weir_promise *done, void *arg,
                              int64_t number);
void weir__call_free(weir__call *call);

/* In a function of its own, on the mailbox's executor: the call is to be posted as another one. */
void weir__call_become(weir__call *call, const weir__operation *operation);

/* Fails the promise of a call that did not reach the loop; with WEIR_ECLOSED if the channel is
 * closed. */
void weir__call_fail(weir_channel *channel, weir_promise *done, int err);

/* The slow path of weir__channel_may_act: something is in the mailbox. */
bool weir__channel_may_overtake(const weir_channel *channel);

/* True if a call by this thread acts immediately: see above. */
static inline bool weir__channel_may_act(const weir_channel *channel)
{
    return weir__channel_in_loop(channel) &&
           (weir__mailbox_is_empty(&channel->mailbox) || weir__channel_may_overtake(channel));
}

#endif
