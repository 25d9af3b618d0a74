/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call from another thread, on its way to the channel's loop. If the channel has moved, the call
 * is forwarded.
 */
#ifndef WEIR_CHANNEL_POSTED_CALL_H
#define WEIR_CHANNEL_POSTED_CALL_H

#include <weir/channel.h>
#include <weir/executor.h>

typedef struct weir__posted_call weir__posted_call;

/*
 * Performs the call on the loop (status 0), or undoes its preparations on any thread (an error: it
 * will never reach the loop). Owns what the call holds besides `done`.
 */
typedef void weir__posted_call_fn(weir_channel *channel, weir__posted_call *call, int status);

struct weir__posted_call {
    weir_task task;
    weir__posted_call_fn *fn;
    weir_channel *channel; /* retained */
    weir_promise *done;    /* retained; may be NULL */
    void *arg;
    int64_t number;
};

/*
 * Posts a call to the channel's loop; lazily = without waking it. fn is called exactly once, except
 * if this returns -ENOMEM.
 */
int weir__posted_call_post(weir_channel *channel, const weir__posted_call *call, bool lazily);

/* Fails the promise of a call that did not reach the loop; with WEIR_ECLOSED if the channel is
 * closed. */
void weir__posted_call_fail(weir_channel *channel, weir_promise *done, int err);

#endif
