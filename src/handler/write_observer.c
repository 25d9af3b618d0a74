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

/* If the channel's loop has ended, the global executor completes the write. */
bool weir__write_observer_forward(weir__write_observer *observer, weir_task_fn *fn, void *arg)
{
    weir_task *task = &observer->as.task;
    weir_executor *target;

    if (weir__channel_in_loop(observer->channel))
        return false;
    target = weir__channel_executor(observer->channel);
    if (weir__executor_state(target) >= WEIR_EXECUTOR_SHUTDOWN)
        target = weir_executor_global();
    if (weir__in_executor(target))
        return false;
    weir_task_init(task, fn, arg);
    return weir__executor_post(target, task, WEIR__NOW) == 0 ||
           weir__executor_post(weir_executor_global(), task, WEIR__NOW) == 0;
}
