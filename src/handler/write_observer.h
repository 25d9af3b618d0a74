/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a callback on the channel's loop when a write completes. A promise notifies its listeners on
 * the executor it was created for, but the channel may have moved to another loop meanwhile: then
 * the observer forwards the callback to that loop.
 *
 * For handlers that run on their channel's loop. The observer is embedded in the handler's record
 * of the write.
 */
#ifndef WEIR_HANDLER_WRITE_OBSERVER_H
#define WEIR_HANDLER_WRITE_OBSERVER_H

#include <weir/channel.h>
#include <weir/executor.h>
#include <weir/promise.h>

#include "executor/mailbox.h"

typedef struct weir__write_observer {
    union {
        weir_listener listener; /* until the promise completes */
        weir__mail mail;        /* while it is forwarded */
    } as;
    weir_channel *channel; /* retained */
} weir__write_observer;

/* Listens to the promise. `fn` runs on the promise's executor, and calls
 * weir__write_observer_forward first. Keeps: channel. */
void weir__write_observer_start(weir__write_observer *observer, weir_channel *channel,
                                weir_promise *promise, weir_listener_fn *fn, void *user_data);

/* True if the channel is on another loop: `fn` was posted there. */
bool weir__write_observer_forward(weir__write_observer *observer, weir__mail_fn *fn);

static inline weir__write_observer *weir__write_observer_of(weir__mail *mail)
{
    return WEIR_CONTAINER_OF(mail, weir__write_observer, as.mail);
}

#endif
