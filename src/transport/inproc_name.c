/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names and their accept queues: one lock for all, held for a lookup at most.
 */
#include "transport/inproc_name.h"

#include <errno.h>

#include "base/memory.h"

#define BUCKETS 256 /* a power of two */

/* Buckets are initialized with the first name: until then `next` is NULL. */
static struct {
    weir__mutex lock;
    weir__list buckets[BUCKETS];
} names = {.lock = WEIR__MUTEX_INIT};

/* ---- the table ---- */

/* FNV-1a over the bytes that are used. */
static weir__list *bucket_of(const weir_address *address)
{
    const uint8_t *bytes = (const uint8_t *)&address->storage;
    uint32_t hash = 2166136261u;
    weir__list *bucket;

    for (size_t i = 0; i < address->length; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    bucket = &names.buckets[hash & (BUCKETS - 1)];
    if (bucket->next == NULL)
        weir__list_init(bucket);
    return bucket;
}

static weir__inproc_name *find(const weir_address *address)
{
    weir_list_foreach (item, bucket_of(address)) {
        weir__inproc_name *name = WEIR_CONTAINER_OF(item, weir__inproc_name, neighbours);

        if (weir_address_equal(&name->address, address))
            return name;
    }
    return NULL;
}

int weir__inproc_name_claim(const weir_address *address, weir__accept_queue *queue,
                            weir__inproc_name **ret_name)
{
    weir__inproc_name *name;
    int err = 0;

    if (weir_address_family(address) != WEIR_AF_INPROC)
        return -EAFNOSUPPORT;
    name = weir__zalloc(sizeof(*name));
    if (name == NULL)
        return -ENOMEM;
    weir__refs_init(&name->refs);
    name->address = *address;
    name->queue = queue;
    weir__mutex_lock(&names.lock);
    if (find(address) != NULL)
        err = -EADDRINUSE;
    else
        weir__list_append(bucket_of(address), &name->neighbours);
    weir__mutex_unlock(&names.lock);
    if (err < 0)
        weir__free(name);
    else
        *ret_name = name;
    return err;
}

void weir__inproc_name_unclaim(weir__inproc_name *name)
{
    weir__mutex_lock(&names.lock);
    weir__list_remove(&name->neighbours);
    weir__mutex_unlock(&names.lock);
}

weir__inproc_name *weir__inproc_name_retain(weir__inproc_name *name)
{
    weir__refs_retain(&name->refs);
    return name;
}

void weir__inproc_name_release(weir__inproc_name *name)
{
    if (name != NULL && weir__refs_release(&name->refs))
        weir__free(name);
}

/* ---- accept queues ---- */

/* Under the lock. The listener is alive as long as it has a loop: see inproc_link.c. */
static weir_channel *leave_at(weir__accept_queue *queue, weir__inproc_link *link)
{
    weir_channel *notified =
        queue->is_attended && queue->channel != NULL ? weir_channel_retain(queue->channel) : NULL;

    weir__inproc_link_retain(link);
    weir__list_append(&queue->waiting, &link->waiting);
    queue->count++;
    queue->is_attended = false;
    return notified;
}

/* The name is in the table, so its owner holds a reference, and cannot release it under the lock.
 */
int weir__inproc_name_connect(const weir_address *address, weir__inproc_link *link,
                              weir_channel **ret_notified)
{
    weir__inproc_name *name;
    int err = 0;

    weir__mutex_lock(&names.lock);
    name = find(address);
    if (name == NULL || name->queue == NULL || name->queue->count >= name->queue->backlog) {
        err = -ECONNREFUSED;
    } else {
        link->names[WEIR__SERVER_SIDE] = weir__inproc_name_retain(name);
        *ret_notified = leave_at(name->queue, link);
    }
    weir__mutex_unlock(&names.lock);
    return err;
}

void weir__accept_queue_init(weir__accept_queue *queue, int64_t backlog)
{
    *queue = (weir__accept_queue){.backlog = backlog};
    weir__list_init(&queue->waiting);
}

void weir__accept_queue_attach(weir__accept_queue *queue, weir_channel *channel)
{
    weir__mutex_lock(&names.lock);
    queue->channel = channel;
    weir__mutex_unlock(&names.lock);
}

weir__inproc_link *weir__accept_queue_take(weir__accept_queue *queue)
{
    weir__list *item;

    weir__mutex_lock(&names.lock);
    queue->is_attended = false;
    item = weir__list_pop(&queue->waiting);
    if (item != NULL)
        queue->count--;
    weir__mutex_unlock(&names.lock);
    return item != NULL ? WEIR_CONTAINER_OF(item, weir__inproc_link, waiting) : NULL;
}

bool weir__accept_queue_wait(weir__accept_queue *queue)
{
    bool nobody;

    weir__mutex_lock(&names.lock);
    nobody = weir__list_is_empty(&queue->waiting);
    queue->is_attended = nobody;
    weir__mutex_unlock(&names.lock);
    return nobody;
}
