/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection inside the process: what is on the way to each of its two ends, and what they have
 * to know of each other. The ends run on threads of their own; everything here may be called by
 * both at the same time.
 *
 *      caller    --- put --->  [ on the way to the called one ] --- take --->    called
 *                <--- take --- [ on the way to the caller     ] <--- put ---
 *
 * Each way takes messages until it holds `capacity` bytes, counted as in an outbound queue; a
 * message that is larger than that goes alone. So what a peer does not read fills its way first,
 * then the writer's queue, and makes the writer unwritable: as with a socket.
 *
 * Whoever changes something that the other end waits for is given that end's channel, retained, to
 * tell it: an end that has no loop now is not told, it looks when it has one again.
 */
#ifndef WEIR_TRANSPORT_INPROC_LINK_H
#define WEIR_TRANSPORT_INPROC_LINK_H

#include <weir/channel.h>

#include "base/list.h"
#include "base/refcount.h"
#include "channel/msg_queue.h"
#include "os/thread.h"

typedef struct weir__inproc_name weir__inproc_name;

typedef enum weir__side {
    WEIR__CALLER, /* has connected */
    WEIR__CALLED, /* was accepted */
} weir__side;

/* One end, and the messages on the way to it. */
typedef struct weir__inproc_link_end {
    weir_channel *channel; /* while it has a loop */
    bool is_gone;          /* for good */
    bool is_over;          /* nothing more comes, */
    bool is_cut;           /* though the other end had more to send */
    bool is_deaf;          /* does not want what comes */
    bool reader_waits;     /* it is told when something has come */
    bool writer_waits;     /* the other is told when there is room again */
    int64_t capacity;
    int64_t bytes; /* of the messages, and of those that it has taken and not dealt with */
    weir__msg_queue messages;
} weir__inproc_link_end;

typedef struct weir__inproc_link {
    weir__refs refs;
    weir__mutex lock;
    bool is_made; /* the called end has come to a loop */
    weir__inproc_link_end ends[2];

    /* Guarded by others. */
    weir__list waiting; /* name.c: among those that were not accepted yet */

    /* Not changed any more when somebody else has it. */
    weir__inproc_name *names[2]; /* each end's; the caller's may be NULL */
    uint64_t caller_id;
} weir__inproc_link;

/* Keeps the name, which may be NULL. Fails with -ENOMEM. */
int weir__inproc_link_create(const weir_channel *caller, weir__inproc_name *name,
                             weir__inproc_link **ret_link);
void weir__inproc_link_retain(weir__inproc_link *link);
void weir__inproc_link_release(weir__inproc_link *link); /* NULL is fine */

/* How much is taken on the way to an end. */
void weir__inproc_link_set_capacity(weir__inproc_link *link, weir__side side, int64_t bytes);

/*
 * An end has come to a loop, or leaves it. The first time that the called one comes the link is
 * made: returns the caller to be told. While it has a loop its channel is not freed.
 */
weir_channel *weir__inproc_link_attach(weir__inproc_link *link, weir__side side,
                                       weir_channel *channel);
void weir__inproc_link_detach(weir__inproc_link *link, weir__side side);

/* Whether the caller is connected: 0, -EINPROGRESS, or -ECONNREFUSED. */
int weir__inproc_link_state(weir__inproc_link *link);

/* Whether that end has gone. */
bool weir__inproc_link_is_gone(weir__inproc_link *link, weir__side side);

/*
 * Sends a message to the other end. Takes it if that succeeds. Fails with -EAGAIN (there is no room
 * now: this end will be told), -EPIPE (the other end has gone), -ENOMEM.
 */
int weir__inproc_link_put(weir__inproc_link *link, weir__side side, weir_msg *msg,
                          weir_channel **ret_told);

/* Whether something can be sent again; if not, this end will be told. */
bool weir__inproc_link_has_room(weir__inproc_link *link, weir__side side);

/* Moves all that has come for this end to a queue of its own. True: nothing comes after it. */
bool weir__inproc_link_take(weir__inproc_link *link, weir__side side, weir__msg_queue *queue);

/* So much of what was taken has been dealt with: returns the other end, if it waits for room. */
weir_channel *weir__inproc_link_make_room(weir__inproc_link *link, weir__side side, int64_t bytes);

/* Whether there is nothing to take, nor an end of it: then this end will be told. */
bool weir__inproc_link_wait(weir__inproc_link *link, weir__side side);

/* This end sends no more; it wants no more. Returns who is to be told. */
weir_channel *weir__inproc_link_shut_output(weir__inproc_link *link, weir__side side);
weir_channel *weir__inproc_link_shut_input(weir__inproc_link *link, weir__side side);

/* This end goes with messages that it has not sent: the other end sees a reset. */
void weir__inproc_link_cut(weir__inproc_link *link, weir__side side);

/* Whether the other end has done so. */
bool weir__inproc_link_is_cut(weir__inproc_link *link, weir__side side);

/* This end goes: both of these, and for good. Returns who is to be told. */
weir_channel *weir__inproc_link_close(weir__inproc_link *link, weir__side side);

#endif
