/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that a handler offloads to another executor.
 *
 * Each offload holds a reference to the context, and so to the channel. Until it is back it is also
 * in the channel's list: a handler that is removed meanwhile is not deinitialized before that,
 * since the work may use its state.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "channel/border.h"
#include "channel/channel.h"
#include "executor/group.h"

struct weir__offload {
    weir_task task;
    struct weir__offload *next;
    weir_ctx *ctx;           /* retained */
    weir_executor *executor; /* the handler's own; NULL = the channel's loop, which may change */
    weir_offload_work_fn *work;
    weir_offload_done_fn *done;
    void *arg;
    void *result;
    int err;
};

static weir_task_fn on_work, on_back;

/* ---- the channel's list ---- */

/*
 * The lock is for the executors of other handlers of the channel. Relaxed: the entries of a context
 * are added and removed on one executor, which finds a list that is not empty while one is in it.
 */
static void link_offload(weir__channel_extra *extra, struct weir__offload *offload)
{
    weir__channel_lock(extra->channel);
    offload->next = atomic_load_explicit(&extra->offloads, memory_order_relaxed);
    atomic_store_explicit(&extra->offloads, offload, memory_order_relaxed);
    weir__channel_unlock(extra->channel);
}

static void unlink_offload(weir__channel_extra *extra, const struct weir__offload *offload)
{
    struct weir__offload *first, **link;

    weir__channel_lock(extra->channel);
    first = atomic_load_explicit(&extra->offloads, memory_order_relaxed);
    for (link = &first; *link != offload; link = &(*link)->next)
        ;
    *link = offload->next;
    atomic_store_explicit(&extra->offloads, first, memory_order_relaxed);
    weir__channel_unlock(extra->channel);
}

bool weir__ctx_has_offloads(const weir_ctx *ctx)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(ctx->channel);
    const struct weir__offload *offload;

    if (extra == NULL || atomic_load_explicit(&extra->offloads, memory_order_relaxed) == NULL)
        return false;
    weir__channel_lock(ctx->channel);
    offload = atomic_load_explicit(&extra->offloads, memory_order_relaxed);
    while (offload != NULL && offload->ctx != ctx)
        offload = offload->next;
    weir__channel_unlock(ctx->channel);
    return offload != NULL;
}

/* ---- there and back ---- */

static void finish(struct weir__offload *offload, weir_ctx *ctx)
{
    weir__subject subject;

    weir__channel_enter(offload->ctx->channel, &subject);
    offload->done(ctx, offload->err, offload->result, offload->arg);
    weir__channel_leave(&subject);
    weir_ctx_release(offload->ctx);
    weir__free(offload);
}

/*
 * The global executor replaces one that has ended, as in executor/mailbox.c. If that takes no task
 * either, no thread runs the handler any more: it is freed with the channel.
 */
static void post_back(struct weir__offload *offload)
{
    weir_channel *channel = offload->ctx->channel;
    weir_executor *executor =
        offload->executor != NULL ? offload->executor : weir__channel_executor(channel);

    weir__executor_weak_retain(executor); /* the task may free it before the post returns */
    weir_task_init(&offload->task, on_back, offload);
    if (weir__executor_post(executor, &offload->task, WEIR__NOW) < 0 &&
        weir__executor_post(weir_executor_global(), &offload->task, WEIR__NOW) < 0) {
        unlink_offload(weir__channel_extra_if_any(channel), offload);
        finish(offload, NULL);
    }
    weir__executor_weak_release(executor);
}

static void on_work(void *arg, int status)
{
    struct weir__offload *offload = arg;

    if (status == 0)
        offload->result = offload->work(offload->arg);
    else
        offload->err = WEIR_ECANCELED;
    post_back(offload);
}

static void on_back(void *arg, int status)
{
    struct weir__offload *offload = arg;
    weir_ctx *ctx = offload->ctx;

    if (status == 0 && !weir__ctx_in_executor(ctx)) {
        post_back(offload); /* the channel has moved to another loop */
        return;
    }
    unlink_offload(weir__channel_extra_if_any(ctx->channel), offload);
    if (!weir_ctx_is_removed(ctx)) {
        finish(offload, ctx);
        return;
    }
    if (!weir__ctx_is_remote(ctx))
        weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
    else if (!weir__ctx_has_offloads(ctx))
        weir__border_let_free(ctx);
    finish(offload, NULL);
}

/* ---- public ---- */

int weir_ctx_offload_to(weir_ctx *ctx, weir_executor *executor, weir_offload_work_fn *work,
                        weir_offload_done_fn *done, void *arg)
{
    weir__channel_extra *extra;
    struct weir__offload *offload;
    int err;

    assert(weir__ctx_in_executor(ctx));
    if (executor == NULL || work == NULL || done == NULL)
        return -EINVAL;
    extra = weir__channel_extra_get(ctx->channel);
    offload = extra != NULL ? weir__zalloc(sizeof(*offload)) : NULL;
    if (offload == NULL)
        return -ENOMEM;
    offload->ctx = weir_ctx_retain(ctx);
    if (weir__ctx_is_remote(ctx))
        offload->executor = weir_ctx_executor(ctx);
    offload->work = work;
    offload->done = done;
    offload->arg = arg;
    weir_task_init(&offload->task, on_work, offload);
    link_offload(extra, offload);
    err = weir_execute_task(executor, &offload->task);
    if (err == 0)
        return 0;
    unlink_offload(extra, offload);
    weir_ctx_release(ctx);
    weir__free(offload);
    return err;
}

int weir_ctx_offload(weir_ctx *ctx, weir_group *group, weir_offload_work_fn *work,
                     weir_offload_done_fn *done, void *arg)
{
    if (group == NULL)
        return -EINVAL;
    if (weir__group_grows(group))
        return -ENOTSUP;
    return weir_ctx_offload_to(ctx, weir_group_next(group), work, done, arg);
}
