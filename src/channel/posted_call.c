/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls from other threads. A thread's calls keep their order, which is that of the executor's
 * queue. Across a move the order holds for calls after the registration's promise has completed:
 * those go to the new loop directly, earlier ones through the old.
 */
#include "channel/posted_call.h"

#include <errno.h>

#include <weir/error.h>

#include "channel/channel.h"
#include "channel/node_pool.h"

_Static_assert(sizeof(weir__posted_call) <= WEIR__NODE_SIZE, "a call is a node");

static void finish(weir__posted_call *call, int status)
{
    weir_channel *channel = call->channel;
    weir_promise *done = call->done;
    weir__subject subject;

    weir__channel_enter(channel, &subject);
    call->fn(channel, call, status);
    weir__channel_leave(&subject);
    weir__node_free(call);
    weir_promise_release(done);
    weir_channel_release(channel);
}

/* Not subject to the bound of the queue: the call was accepted before. */
static int forward(weir__posted_call *call)
{
    weir_channel *channel =
        weir_channel_retain(call->channel); /* the call may finish before the post returns */
    int err = weir__executor_post(weir__channel_executor(channel), &call->task, WEIR__NOW);

    weir_channel_release(channel);
    return err;
}

static void on_call(void *arg, int status)
{
    weir__posted_call *call = arg;
    int err = 0;

    if (!weir__channel_in_loop(call->channel)) { /* also if the previous loop ends */
        err = forward(call);
        if (err == 0)
            return;
    }
    finish(call, status < 0 ? status : err);
}

int weir__posted_call_post(weir_channel *channel, const weir__posted_call *call, bool lazily)
{
    weir__posted_call *node = weir__node_alloc();
    weir_executor *executor = weir__channel_executor(channel);
    int err;

    if (node == NULL)
        return -ENOMEM;
    *node = *call;
    weir_task_init(&node->task, on_call, node);
    node->channel = weir_channel_retain(channel);
    if (node->done != NULL)
        weir_promise_retain(node->done);
    err = lazily ? weir_execute_task_lazy(executor, &node->task)
                 : weir_execute_task(executor, &node->task);
    if (err < 0)
        finish(node, err);
    return 0;
}

void weir__posted_call_fail(weir_channel *channel, weir_promise *done, int err)
{
    if (done == NULL)
        return;
    if (weir__channel_phase(channel) == WEIR__CLOSED)
        err = WEIR_ECLOSED;
    (void)weir_promise_fail(done, err, NULL);
}
