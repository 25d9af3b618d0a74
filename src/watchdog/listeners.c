/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners of blocks. They are called without the lock of the list, so that they may change
 * it: one that is removed meanwhile is marked, and freed when the calls are over.
 * A thread that removes one waits for those calls, unless it is the one that makes them.
 */
#include <errno.h>

#include "base/memory.h"
#include "watchdog/block.h"

struct listener {
    weir__list link;
    weir_block_fn *fn;
    void *user_data;
    bool is_removed;
};

static weir__mutex lock = WEIR__MUTEX_INIT;
static weir__list listeners = {&listeners, &listeners}; /* guarded by lock */
static weir__mutex calls = WEIR__MUTEX_INIT;            /* held while listeners are called */
static _Thread_local bool is_calling;

static struct listener *find(weir_block_fn *fn, const void *user_data)
{
    weir_list_foreach (link, &listeners) {
        struct listener *listener = WEIR_CONTAINER_OF(link, struct listener, link);

        if (listener->fn == fn && listener->user_data == user_data && !listener->is_removed)
            return listener;
    }
    return NULL;
}

int weir_watchdog_add_listener(weir_block_fn *fn, void *user_data)
{
    struct listener *listener;

    if (fn == NULL)
        return -EINVAL;
    listener = weir__zalloc(sizeof(*listener));
    if (listener == NULL)
        return -ENOMEM;
    listener->fn = fn;
    listener->user_data = user_data;
    weir__mutex_lock(&lock);
    weir__list_append(&listeners, &listener->link);
    weir__mutex_unlock(&lock);
    return 0;
}

static void free_removed(void)
{
    weir__mutex_lock(&lock);
    weir_list_foreach (link, &listeners) {
        struct listener *listener = WEIR_CONTAINER_OF(link, struct listener, link);

        if (!listener->is_removed)
            continue;
        weir__list_remove(link);
        weir__free(listener);
    }
    weir__mutex_unlock(&lock);
}

int weir_watchdog_remove_listener(weir_block_fn *fn, void *user_data)
{
    struct listener *listener;

    weir__mutex_lock(&lock);
    listener = find(fn, user_data);
    if (listener != NULL)
        listener->is_removed = true;
    weir__mutex_unlock(&lock);
    if (listener == NULL)
        return -ENOENT;
    if (is_calling)
        return 0; /* freed after the calls */
    weir__mutex_lock(&calls);
    free_removed();
    weir__mutex_unlock(&calls);
    return 0;
}

/* Items are freed only while `calls` is held, so the position stays valid. */
static struct listener *next_of(const weir__list *link)
{
    struct listener *next = NULL;

    weir__mutex_lock(&lock);
    for (link = link->next; link != &listeners && next == NULL; link = link->next) {
        next = WEIR_CONTAINER_OF((weir__list *)(uintptr_t)link, struct listener, link);
        if (next->is_removed)
            next = NULL;
    }
    weir__mutex_unlock(&lock);
    return next;
}

void weir__listeners_call(const weir_block *report)
{
    struct listener *listener;

    weir__mutex_lock(&calls);
    is_calling = true;
    for (listener = next_of(&listeners); listener != NULL; listener = next_of(&listener->link))
        listener->fn(report, listener->user_data);
    is_calling = false;
    free_removed();
    weir__mutex_unlock(&calls);
}
