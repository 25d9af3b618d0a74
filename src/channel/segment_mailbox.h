/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mailboxes: queues of events between the channel's loop and the executor of remote handlers.
 *
 * A mailbox has one consumer: its task, which is posted when the first node is pushed and which
 * runs until no node is left that may be taken. The task holds a reference to the channel.
 *
 * Memory. Events without contents travel in nodes of the mailbox, so pushing them cannot fail. One
 * that is pushed again while it is queued moves to the end: the last `read_complete` follows the
 * last message. An event with contents needs memory for its node; without, it is released and the
 * channel aborted.
 *
 * Demand. While auto-read is off a message passes only if one was requested through the mailbox, as
 * in handlers that keep messages (demand.h). Read_complete and the end of the input stay behind
 * messages that wait, other nodes overtake them. Messages that wait when the channel becomes
 * inactive are discarded.
 *
 * Bytes. A message counts while it is in a mailbox: one that was read against the marks that pause
 * reading, one that was written against those of the outbound queue.
 */
#ifndef WEIR_CHANNEL_SEGMENT_MAILBOX_H
#define WEIR_CHANNEL_SEGMENT_MAILBOX_H

#include <weir/executor.h>

#include "base/list.h"
#include "channel/ctx.h"
#include "channel/invoke.h"
#include "os/thread.h"

/* Slots of nodes, besides those of handlers. Users define others from 1 << 19 to 1 << 21. */
enum {
    WEIR__MAIL_ENDED = 1 << 22,     /* an event without contents: no event of the channel follows */
    WEIR__MAIL_DISCARDED = 1 << 23, /* taken: a message that is not to be delivered */
    WEIR__MAIL_AUTO = 1 << 24,      /* with REQUEST_READ: made by auto-read */
    WEIR__MAIL_FLUSHES = 1 << 25,   /* pushed: messages in front pass, requested or not */
};

#define WEIR__MAIL_FIXED 10

typedef struct weir__inmail {
    weir__list link;
    uint32_t slot;
    bool is_fixed; /* part of the mailbox: an event without contents */
} weir__inmail;

typedef struct weir__inbox {
    weir_channel *channel;
    weir_executor *executor; /* NULL: the channel's loop */
    weir_task task;
    weir_task retry; /* of a post, on the global executor */

    weir__mutex lock; /* guards the rest */
    weir__list nodes;
    bool is_posted;               /* the task is posted or runs, or the mailbox is stopped */
    struct weir__inbox *moved_to; /* it is closed: push there */
    bool is_asked;                /* a message was requested and has not passed */
    bool has_passed;              /* a message has, since the last read_complete */
    bool has_ended;               /* the channel is inactive */
    bool is_discarding;           /* then, after a message was: none behind it passes */
    unsigned flushing;            /* nodes with FLUSHES: no message waits */
    weir__inmail fixed[WEIR__MAIL_FIXED];
} weir__inbox;

/* `run` is called with the segment that the mailbox is part of. */
void weir__inbox_init(weir__inbox *box, weir_channel *channel, weir_executor *executor,
                      weir_task_fn *run, void *arg);
void weir__inbox_deinit(weir__inbox *box);

/* Stops a mailbox that nothing was pushed to: its task is not posted before it is started. */
void weir__inbox_stop(weir__inbox *box);
void weir__inbox_start(weir__inbox *box);

/* Pushes a node of the caller's, and sets its slot; NULL for an event without contents. */
void weir__inbox_push(weir__inbox *box, weir__inmail *node, uint32_t slot);

/* Pushes a copy of an event. Takes what the event carries. */
void weir__inbox_push_event(weir__inbox *box, const weir__event *event);

/* A request to read passes the mailbox. Returns true if a message that waits there answers it. */
bool weir__inbox_answers(weir__inbox *box, const weir__event *event);

/* True if the task is posted or runs. */
bool weir__inbox_is_posted(weir__inbox *box);

/* ---- for the task ---- */

/*
 * Removes the next node that need not wait and returns its slot. *ret_node is NULL for an event
 * without contents. Returns 0 if there is none: then the task has ended, and has to release the
 * channel.
 */
uint32_t weir__inbox_take(weir__inbox *box, weir__inmail **ret_node);

/* Posts the task again. */
void weir__inbox_repost(weir__inbox *box);

/* Moves what is left to another mailbox, which all that is pushed later goes to as well, and lets
 * the messages there pass. Ends the task. */
void weir__inbox_close(weir__inbox *box, weir__inbox *to);

/* The event of a node that was taken, and its end: takes its bytes off, frees the node. */
weir__event weir__inmail_event(weir__inmail *node, uint32_t slot);
void weir__inmail_uncount(weir__inmail *node, weir_channel *channel);
void weir__inmail_free(weir__inmail *node);

/* ---- on the loop ---- */

/* True if the bytes in the mailboxes of the channel are below the low mark. */
bool weir__inbox_may_read(const weir_channel *channel);

#endif
