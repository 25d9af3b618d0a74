/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection inside the process: the messages in transit to each end, and the state of both. The
 * ends run on different threads, and may call everything here concurrently.
 *
 *      client    --- put --->  [ in transit to the server ] --- take --->    server
 *                <--- take --- [ in transit to the client ] <--- put ---
 *
 * Each direction holds up to `capacity` bytes, counted as in an outbound queue, or one larger
 * message. So a peer that does not read fills first its direction, then the writer's queue, and
 * makes the writer unwritable, as with a socket.
 *
 * A function that changes something the other end waits for returns that end's channel, retained,
 * to be notified (weir__inproc_notify). An end without a loop is not notified: it looks when
 * attached.
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
    WEIR__CLIENT_SIDE, /* has connected */
    WEIR__SERVER_SIDE, /* was accepted */
} weir__side;

/* One end, and the messages in transit to it. */
typedef struct weir__inproc_link_end {
    weir_channel *channel; /* while it has a loop */
    bool is_gone;          /* closed */
    bool is_over;          /* nothing more will arrive, */
    bool is_cut;           /* although the other end had more to send: a reset */
    bool is_input_shut;    /* its input is shut */
    bool reader_waits;     /* is notified when a message arrives */
    bool writer_waits;     /* the other end is notified when there is room */
    int64_t capacity;
    int64_t bytes; /* of the messages, and of those taken but not yet processed */
    weir__msg_queue messages;
} weir__inproc_link_end;

typedef struct weir__inproc_link {
    weir__refs refs;
    weir__mutex lock;
    bool is_made; /* the server end has a loop */
    weir__inproc_link_end ends[2];

    /* Guarded by the lock of inproc_name.c. */
    weir__list waiting; /* in the accept queue */

    /* Constant once the link is shared. */
    weir__inproc_name *names[2]; /* of each end; the client's may be NULL */
    uint64_t caller_id;
} weir__inproc_link;

/* Retains the name, which may be NULL. Fails with -ENOMEM. */
int weir__inproc_link_create(const weir_channel *caller, weir__inproc_name *name,
                             weir__inproc_link **ret_link);
void weir__inproc_link_retain(weir__inproc_link *link);
void weir__inproc_link_release(weir__inproc_link *link); /* NULL is ignored */

/* Sets the capacity of the direction to an end. */
void weir__inproc_link_set_capacity(weir__inproc_link *link, weir__side side, int64_t bytes);

/*
 * An end is attached to a loop, or detached. When the server end is first attached, the link is
 * established: returns the client to be notified. A channel is not freed while it is attached.
 */
weir_channel *weir__inproc_link_attach(weir__inproc_link *link, weir__side side,
                                       weir_channel *channel);
void weir__inproc_link_detach(weir__inproc_link *link, weir__side side);

/* 0 if the client is connected, -EINPROGRESS, or -ECONNREFUSED. */
int weir__inproc_link_state(weir__inproc_link *link);

/* True if that end is closed. */
bool weir__inproc_link_is_gone(weir__inproc_link *link, weir__side side);

/*
 * Sends a message to the other end, and owns it on success. Fails with -EAGAIN (no room: this end
 * is notified later), -EPIPE (the other end is closed), -ENOMEM.
 */
int weir__inproc_link_put(weir__inproc_link *link, weir__side side, weir_msg *msg,
                          weir_channel **ret_notified);

/* True if there is room; if not, this end is notified later. */
bool weir__inproc_link_has_room(weir__inproc_link *link, weir__side side);

/* Moves all messages for this end to its queue. True if nothing follows. */
bool weir__inproc_link_take(weir__inproc_link *link, weir__side side, weir__msg_queue *queue);

/* Returns `bytes` of processed messages as room. Returns the other end if it waits for room. */
weir_channel *weir__inproc_link_make_room(weir__inproc_link *link, weir__side side, int64_t bytes);

/* True if there is neither a message nor the end: then this end is notified later. */
bool weir__inproc_link_wait(weir__inproc_link *link, weir__side side);

/* Shut the output, or the input, of this end. Return the end to be notified. */
weir_channel *weir__inproc_link_shut_output(weir__inproc_link *link, weir__side side);
weir_channel *weir__inproc_link_shut_input(weir__inproc_link *link, weir__side side);

/* True if the other end has shut its output, or is closed. Messages may be left. */
bool weir__inproc_link_is_over(weir__inproc_link *link, weir__side side);

/* This end closes with unsent messages: the other end sees a reset. */
void weir__inproc_link_cut(weir__inproc_link *link, weir__side side);

/* True if the other end has done so. */
bool weir__inproc_link_is_cut(weir__inproc_link *link, weir__side side);

/* Closes this end: shuts both. Returns the end to be notified. */
weir_channel *weir__inproc_link_close(weir__inproc_link *link, weir__side side);

#endif
