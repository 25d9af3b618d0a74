/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a handler that its write has ended. A promise tells so on the executor that it was made
 * for; but the handler is where its channel is, which may have gone to another loop meanwhile. Then
 * the observer goes after it.
 *
 * For handlers that run on their channel's loop. They have it in the memory that they keep of a
 * write, and say themselves what it is to call.
 */
#ifndef WEIR_HANDLER_WRITE_OBSERVER_H
#define WEIR_HANDLER_WRITE_OBSERVER_H

#include <weir/channel.h>
#include <weir/executor.h>
#include <weir/promise.h>

typedef struct weir__write_observer {
    union {
        weir_listener listener; /* until the promise is complete */
        weir_task task;         /* on the way to another loop */
    } as;
    weir_channel *channel; /* kept */
} weir__write_observer;

/* Waits for the promise: `fn` is called where that tells, and asks whether it is in the right
 * place. Keeps: channel. */
void weir__write_observer_start(weir__write_observer *observer, weir_channel *channel,
                                weir_promise *promise, weir_listener_fn *fn, void *user_data);

/* True if the channel is elsewhere: `fn` is called target, and asks again. */
bool weir__write_observer_forward(weir__write_observer *observer, weir_task_fn *fn, void *arg);

#endif
