/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that a handler does executor. It holds the channel, and the handler's context stays in
 * memory until it is back: removed or not, its executor can then look.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "channel/channel.h"
#include "channel/remote_handler.h"
#include "executor/group.h"

struct offload {
    weir_task task;
    weir_ctx *ctx;
    weir_channel *channel;   /* kept */
    weir_executor *executor; /* the handler's own, if it is not the channel's loop */
    weir_offload_work_fn *work;
    weir_offload_done_fn *done;
    void *arg;
    void *result;
    int err;
};

static weir_task_fn on_work, on_back;

static void finish(struct offload *offload, weir_ctx *ctx)
{
    weir_channel *channel = offload->channel;

    offload->done(ctx, offload->err, offload->result, offload->arg);
    weir__free(offload);
    weir_channel_release(channel);
}

/* An executor that has ended is stood for by the global one, as in due.c and hop.c. If nobody runs
 * the context any more it is gone for all that matters, and is freed with the channel. */
static void post_back(struct offload *offload)
{
    weir_executor *executor =
        offload->executor != NULL ? offload->executor : weir__channel_executor(offload->channel);

    weir__executor_weak_retain(executor); /* it may be through before us, and gone */
    weir_task_init(&offload->task, on_back, offload);
    if (weir__executor_post(executor, &offload->task, WEIR__NOW) < 0 &&
        weir__executor_post(weir_executor_global(), &offload->task, WEIR__NOW) < 0)
        finish(offload, NULL);
    weir__executor_weak_release(executor);
}

static void on_work(void *arg, int status)
{
    struct offload *offload = arg;

    if (status == 0)
        offload->result = offload->work(offload->arg);
    else
        offload->err = WEIR_ECANCELED;
    post_back(offload);
}

static void on_back(void *arg, int status)
{
    struct offload *offload = arg;
    weir_ctx *ctx = offload->ctx;

    if (status == 0 && !weir__ctx_in_executor(ctx)) {
        post_back(offload); /* the channel has moved */
        return;
    }
    ctx->offloads--;
    if (!weir_ctx_is_removed(ctx)) {
        finish(offload, ctx);
        return;
    }
    if (weir__ctx_is_remote(ctx))
        weir__remote_look(ctx);
    else
        weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
    finish(offload, NULL);
}

int weir_ctx_offload(weir_ctx *ctx, weir_group *group, weir_offload_work_fn *work,
                     weir_offload_done_fn *done, void *arg)
{
    struct offload *offload;
    int err;

    assert(weir__ctx_in_executor(ctx));
    if (group == NULL || work == NULL || done == NULL)
        return -EINVAL;
    if (weir__group_grows(group))
        return -ENOTSUP;
    offload = weir__zalloc(sizeof(*offload));
    if (offload == NULL)
        return -ENOMEM;
    offload->ctx = ctx;
    offload->channel = weir_channel_retain(ctx->channel);
    if (weir__ctx_is_remote(ctx))
        offload->executor = weir__remote_of(ctx)->executor;
    offload->work = work;
    offload->done = done;
    offload->arg = arg;
    weir_task_init(&offload->task, on_work, offload);
    ctx->offloads++;
    err = weir_execute_task(weir_group_next(group), &offload->task);
    if (err == 0)
        return 0;
    ctx->offloads--;
    weir_channel_release(offload->channel);
    weir__free(offload);
    return err;
}
