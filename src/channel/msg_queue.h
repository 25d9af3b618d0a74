/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of messages, oldest first. Used by one thread at a time.
 */
#ifndef WEIR_CHANNEL_MSG_QUEUE_H
#define WEIR_CHANNEL_MSG_QUEUE_H

#include <weir/handler.h>

typedef weir_msg_queue weir__msg_queue;

/* Initializes an empty queue. Zeroed memory is an empty queue, too. */
void weir__msg_queue_init(weir__msg_queue *queue);

static inline bool weir__msg_queue_is_empty(const weir__msg_queue *queue)
{
    return queue->first == NULL;
}

/* Takes the message. Returns false without memory: then the caller keeps it. */
bool weir__msg_queue_push(weir__msg_queue *queue, weir_msg *msg);

/* The oldest message: borrowed; removed and owned by the caller. NULL if empty. */
weir_msg *weir__msg_queue_peek(const weir__msg_queue *queue);
weir_msg *weir__msg_queue_pop(weir__msg_queue *queue);

/* Moves all messages to the end of another queue. */
void weir__msg_queue_move(weir__msg_queue *from, weir__msg_queue *to);

/* Releases all messages. */
void weir__msg_queue_clear(weir__msg_queue *queue);

#endif
