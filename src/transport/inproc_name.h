/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of in-process channels: which are taken, and who listens under them.
 *
 * A listener has a door. Who connects to its name leaves a link there, until the listener takes it
 * in. The door is guarded by the lock of all names, so a link is either left before the listener
 * gives its name up, and refused by it, or nobody is there.
 */
#ifndef WEIR_TRANSPORT_INPROC_NAME_H
#define WEIR_TRANSPORT_INPROC_NAME_H

#include <weir/channel.h>

#include "base/list.h"
#include "base/refcount.h"
#include "transport/inproc_link.h"

typedef struct weir__door {
    weir_channel *channel; /* the listener, while it has a loop */
    weir__list waiting;    /* links */
    int64_t count;
    int64_t backlog;  /* how many may wait */
    bool is_attended; /* the listener is told when one has come */
} weir__door;

struct weir__inproc_name {
    weir__refs refs;
    weir__list neighbours;
    weir__door *door; /* NULL = a name of one who connects */
    weir_address address;
};

/* Takes a name. Fails with -EADDRINUSE, -EAFNOSUPPORT (not an in-process address), -ENOMEM. */
int weir__inproc_name_claim(const weir_address *address, weir__door *door,
                            weir__inproc_name **ret_name);

/* Others may have the name again; this one's memory stays as long as it is kept. */
void weir__inproc_name_give_up(weir__inproc_name *name);

weir__inproc_name *weir__inproc_name_retain(weir__inproc_name *name);
void weir__inproc_name_release(weir__inproc_name *name); /* NULL is fine */

/*
 * Leaves a link at the door of that name, which keeps it; writes down the name in it. Gives the
 * listener, if it is to be told. Fails with -ECONNREFUSED: nobody listens, or too many wait.
 */
int weir__inproc_name_call(const weir_address *address, weir__inproc_link *link,
                           weir_channel **ret_told);

/* ---- the listener's ---- */

void weir__door_init(weir__door *door, int64_t backlog);

/* The listener has come to a loop, or leaves it (NULL). */
void weir__door_attach(weir__door *door, weir_channel *channel);

/* The link that has waited longest, which is the caller's then; NULL if there is none. */
weir__inproc_link *weir__door_take(weir__door *door);

/* Whether nobody is there: then the listener will be told. */
bool weir__door_wait(weir__door *door);

#endif
