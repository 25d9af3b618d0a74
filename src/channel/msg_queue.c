/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of nodes (channel/node_pool.h), one per message.
 */
#include "channel/msg_queue.h"

#include "channel/node_pool.h"

struct weir__msg_item {
    struct weir__msg_item *next;
    weir_msg *msg;
};

_Static_assert(sizeof(struct weir__msg_item) <= WEIR__NODE_SIZE, "an item is a node");

void weir__msg_queue_init(weir__msg_queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

bool weir__msg_queue_push(weir__msg_queue *queue, weir_msg *msg)
{
    struct weir__msg_item *item = weir__node_alloc();

    if (item == NULL)
        return false;
    item->next = NULL;
    item->msg = msg;
    if (queue->first == NULL)
        queue->end = &queue->first;
    *queue->end = item;
    queue->end = &item->next;
    return true;
}

weir_msg *weir__msg_queue_peek(const weir__msg_queue *queue)
{
    return queue->first != NULL ? queue->first->msg : NULL;
}

weir_msg *weir__msg_queue_pop(weir__msg_queue *queue)
{
    struct weir__msg_item *item = queue->first;
    weir_msg *msg;

    if (item == NULL)
        return NULL;
    queue->first = item->next;
    msg = item->msg;
    weir__node_free(item);
    return msg;
}

void weir__msg_queue_move(weir__msg_queue *from, weir__msg_queue *to)
{
    if (from->first == NULL)
        return;
    if (to->first == NULL)
        to->end = &to->first;
    *to->end = from->first;
    to->end = from->end;
    weir__msg_queue_init(from);
}

void weir__msg_queue_clear(weir__msg_queue *queue)
{
    while (queue->first != NULL)
        weir_msg_release(weir__msg_queue_pop(queue));
}
