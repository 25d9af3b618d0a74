/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields that few channels need, and lists of promises.
 */
#include <errno.h>

#include "base/memory.h"
#include "channel/border.h"
#include "channel/channel.h"
#include "channel/node_pool.h"

struct weir__promise_node {
    struct weir__promise_node *next;
    weir_promise *promise;
};

/* ---- lifecycle ---- */

/* The first thread publishes its allocation; release and acquire order its content. */
weir__channel_extra *weir__channel_extra_get(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel), *before = NULL;

    if (extra != NULL)
        return extra;
    extra = weir__zalloc(sizeof(*extra));
    if (extra == NULL)
        return NULL;
    extra->channel = channel;
    weir__list_init(&extra->memberships);
    if (atomic_compare_exchange_strong_explicit(&channel->extra, &before, extra,
                                                memory_order_seq_cst, memory_order_acquire))
        return extra;
    weir__free(extra);
    return before;
}

void weir__channel_extra_retire(weir__channel_extra *extra, weir__retired *retired)
{
    retired->next = atomic_load_explicit(&extra->retired, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&extra->retired, &retired->next, retired,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static void free_retired(weir__retired *retired)
{
    weir__retired *next;

    for (; retired != NULL; retired = next) {
        next = retired->next;
        if (retired->executor != NULL)
            weir__executor_weak_release(retired->executor);
        weir__config_release(retired->config);
        weir__free(retired);
    }
}

void weir__channel_extra_destroy(weir__channel_extra *extra)
{
    if (extra == NULL)
        return;
    weir_promise_release(atomic_load_explicit(&extra->closed, memory_order_acquire));
    free_retired(atomic_load_explicit(&extra->retired, memory_order_acquire));
    weir__free(atomic_load_explicit(&extra->addresses.local, memory_order_acquire));
    weir__free(atomic_load_explicit(&extra->addresses.remote, memory_order_acquire));
    weir__borders_destroy(extra->borders);
    weir__free(extra->destination);
    weir__free(extra->close_reason);
    weir__free(extra);
}

/* ---- promise lists ---- */

int weir__promise_list_add(weir__promise_list *waiting, weir_promise *promise)
{
    struct weir__promise_node **link = &waiting->first, *waiter;

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

/* A listener may add a promise: it is completed, too. */
void weir__promise_list_complete(weir__promise_list *waiting, int err, const char *detail)
{
    struct weir__promise_node *waiter;
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
