/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What few channels need, and promises that wait together.
 */
#include <errno.h>

#include "base/memory.h"
#include "channel/channel.h"
#include "channel/node_pool.h"
#include "channel/remote_handler.h"

struct weir__waiter {
    struct weir__waiter *next;
    weir_promise *promise;
};

/* ---- life ---- */

/* Whoever is first publishes its own; release and acquire carry what is in it. */
weir__channel_extra *weir__channel_extra_get(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel), *before = NULL;

    if (rare != NULL)
        return rare;
    rare = weir__zalloc(sizeof(*rare));
    if (rare == NULL)
        return NULL;
    rare->channel = channel;
    weir__list_init(&rare->memberships);
    if (atomic_compare_exchange_strong_explicit(&channel->rare, &before, rare, memory_order_seq_cst,
                                                memory_order_acquire))
        return rare;
    weir__free(rare);
    return before;
}

void weir__channel_extra_keep(weir__channel_extra *rare, weir__kept *kept)
{
    kept->next = atomic_load_explicit(&rare->kept, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&rare->kept, &kept->next, kept,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static void free_kept(weir__kept *kept)
{
    weir__kept *next;

    for (; kept != NULL; kept = next) {
        next = kept->next;
        if (kept->executor != NULL)
            weir__executor_weak_release(kept->executor);
        weir__config_release(kept->config);
        weir__free(kept);
    }
}

void weir__channel_extra_destroy(weir__channel_extra *rare)
{
    if (rare == NULL)
        return;
    weir_promise_release(atomic_load_explicit(&rare->closed, memory_order_acquire));
    free_kept(atomic_load_explicit(&rare->kept, memory_order_acquire));
    weir__free(atomic_load_explicit(&rare->addresses.local, memory_order_acquire));
    weir__free(atomic_load_explicit(&rare->addresses.remote, memory_order_acquire));
    weir__remote_forget(rare);
    weir__free(rare->destination);
    weir__free(rare->loss);
    weir__free(rare);
}

/* ---- waiting ---- */

int weir__waiting_add(weir__waiting *waiting, weir_promise *promise)
{
    struct weir__waiter **link = &waiting->first, *waiter;

    if (promise == NULL)
        return 0;
    waiter = weir__node_alloc();
    if (waiter == NULL)
        return -ENOMEM;
    waiter->next = NULL;
    waiter->promise = weir_promise_retain(promise);
    while (*link != NULL)
        link = &(*link)->next;
    *link = waiter;
    return 0;
}

/* A listener may add another: it is completed, too. */
void weir__waiting_complete(weir__waiting *waiting, int err, const char *detail)
{
    struct weir__waiter *waiter;
    weir_promise *promise;

    while ((waiter = waiting->first) != NULL) {
        waiting->first = waiter->next;
        promise = waiter->promise;
        weir__node_free(waiter);
        if (err < 0)
            (void)weir_promise_fail(promise, err, detail);
        else
            (void)weir_promise_succeed(promise, NULL);
        weir_promise_release(promise);
    }
}
