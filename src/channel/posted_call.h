/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call from another thread, on its way to the channel's loop. One that finds the channel moved is
 * passed on to where it is now.
 */
#ifndef WEIR_CHANNEL_POSTED_CALL_H
#define WEIR_CHANNEL_POSTED_CALL_H

#include <weir/channel.h>
#include <weir/executor.h>

typedef struct weir__posted_call weir__posted_call;

/*
 * Does what was asked for, on the loop (0); or undoes what was done to ask for it, on any thread
 * (an error: it will never come to the loop). What the call holds besides `done` is its own.
 */
typedef void weir__posted_call_fn(weir_channel *channel, weir__posted_call *call, int status);

struct weir__posted_call {
    weir_task task;
    weir__posted_call_fn *fn;
    weir_channel *channel; /* kept */
    weir_promise *done;    /* kept; may be NULL */
    void *arg;
    int64_t number;
};

/*
 * Posts a call to the channel's loop; lazily = without waking it. Whatever happens, fn is called
 * exactly once, except with -ENOMEM: then fn never is.
 */
int weir__posted_call_post(weir_channel *channel, const weir__posted_call *call, bool lazily);

/* Fails what a call that never came was to do: as closed, if that is why. */
void weir__posted_call_fail(weir_channel *channel, weir_promise *done, int err);

#endif
