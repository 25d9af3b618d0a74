/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/write_observer.h"

#include "channel/channel.h"
#include "executor/executor.h"

void weir__write_observer_start(weir__write_observer *observer, weir_channel *channel,
                                weir_promise *promise, weir_listener_fn *fn, void *user_data)
{
    observer->channel = weir_channel_retain(channel);
    observer->as.listener = (weir_listener){.fn = fn, .user_data = user_data};
    weir_promise_listen(promise, &observer->as.listener);
}

static bool has_ended(const weir_executor *loop)
{
    return weir__executor_state(loop) >= WEIR_EXECUTOR_SHUTDOWN;
}

/* The channel's loop, or the global executor if that loop has ended. */
static weir_executor *destination(const weir_channel *channel)
{
    weir_executor *loop = weir__channel_executor(channel);

    return has_ended(loop) ? weir_executor_global() : loop;
}

bool weir__write_observer_forward(weir__write_observer *observer, weir_task_fn *fn, void *arg)
{
    weir_task *task = &observer->as.task;
    weir_executor *target;

    if (weir__channel_in_loop(observer->channel))
        return false;
    target = destination(observer->channel);
    if (weir__in_executor(target))
        return false;
    weir_task_init(task, fn, arg);
    return weir__executor_post(target, task, WEIR__NOW) == 0 ||
           weir__executor_post(weir_executor_global(), task, WEIR__NOW) == 0;
}
