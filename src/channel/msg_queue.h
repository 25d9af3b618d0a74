/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that wait for who wants them, the oldest first. Used by one thread at a time.
 */
#ifndef WEIR_CHANNEL_MSG_QUEUE_H
#define WEIR_CHANNEL_MSG_QUEUE_H

#include <weir/handler.h>

typedef weir_msg_queue weir__msg_queue;

/* An empty queue; memory that is all zeroes is one, too. */
void weir__msg_queue_init(weir__msg_queue *queue);

static inline bool weir__msg_queue_is_empty(const weir__msg_queue *queue)
{
    return queue->first == NULL;
}

/* Takes the message, unless there is no memory: then it returns false. */
bool weir__msg_queue_push(weir__msg_queue *queue, weir_msg *msg);

/* The oldest one: borrowed, or the caller's. NULL if there is none. */
weir_msg *weir__msg_queue_peek(const weir__msg_queue *queue);
weir_msg *weir__msg_queue_pop(weir__msg_queue *queue);

/* Moves everything from one queue to the end of another. */
void weir__msg_queue_move(weir__msg_queue *from, weir__msg_queue *to);

/* Releases everything. */
void weir__msg_queue_clear(weir__msg_queue *queue);

#endif
