/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of in-process channels, and the accept queues of their listeners.
 *
 * Connecting puts a link into the accept queue of the listener with that name. The lock of all
 * names guards the queue: so a link is either queued before the listener gives up its name, and
 * refused by it, or the connect fails.
 */
#ifndef WEIR_TRANSPORT_INPROC_NAME_H
#define WEIR_TRANSPORT_INPROC_NAME_H

#include <weir/channel.h>

#include "base/list.h"
#include "base/refcount.h"
#include "transport/inproc_link.h"

typedef struct weir__accept_queue {
    weir_channel *channel; /* the listener, while it has a loop */
    weir__list waiting;    /* links */
    int64_t count;
    int64_t backlog;  /* the longest queue */
    bool is_attended; /* the listener is notified of the next link */
} weir__accept_queue;

struct weir__inproc_name {
    weir__refs refs;
    weir__list neighbours;
    weir__accept_queue *queue; /* NULL = the name of a client */
    weir_address address;
};

/* Claims a name. Fails with -EADDRINUSE, -EAFNOSUPPORT (not an in-process address), -ENOMEM. */
int weir__inproc_name_claim(const weir_address *address, weir__accept_queue *queue,
                            weir__inproc_name **ret_name);

/* Makes the name available again. Its memory stays as long as it is referenced. */
void weir__inproc_name_unclaim(weir__inproc_name *name);

weir__inproc_name *weir__inproc_name_retain(weir__inproc_name *name);
void weir__inproc_name_release(weir__inproc_name *name); /* NULL is ignored */

/*
 * Queues a link, which the queue retains, for the listener of that name, and stores the name in it.
 * Gives the listener if it has to be notified. Fails with -ECONNREFUSED: no listener, or queue
 * full.
 */
int weir__inproc_name_connect(const weir_address *address, weir__inproc_link *link,
                              weir_channel **ret_notified);

/* ---- for the listener ---- */

void weir__accept_queue_init(weir__accept_queue *queue, int64_t backlog);

/* Sets the listener while it has a loop; NULL when it leaves it. */
void weir__accept_queue_attach(weir__accept_queue *queue, weir_channel *channel);

/* Removes the oldest link, which the caller owns then; NULL if there is none. */
weir__inproc_link *weir__accept_queue_take(weir__accept_queue *queue);

/* True if the queue is empty: then the listener is notified later. */
bool weir__accept_queue_wait(weir__accept_queue *queue);

#endif
