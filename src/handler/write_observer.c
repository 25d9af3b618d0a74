/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/write_observer.h"

#include "channel/channel.h"
#include "executor/executor.h"

void weir__write_observer_wait(weir__write_observer *messenger, weir_channel *channel,
                               weir_promise *promise, weir_listener_fn *fn, void *user_data)
{
    messenger->channel = weir_channel_retain(channel);
    messenger->by.listener = (weir_listener){.fn = fn, .user_data = user_data};
    weir_promise_listen(promise, &messenger->by.listener);
}

static bool has_ended(const weir_executor *loop)
{
    return weir__executor_state(loop) >= WEIR_EXECUTOR_SHUTDOWN;
}

/* Where the channel is. What is left of one whose loop has ended is done by the global executor. */
static weir_executor *destination(const weir_channel *channel)
{
    weir_executor *loop = weir__channel_executor(channel);

    return has_ended(loop) ? weir_executor_global() : loop;
}

bool weir__write_observer_goes_on(weir__write_observer *messenger, weir_task_fn *fn, void *arg)
{
    weir_task *task = &messenger->by.task;
    weir_executor *there;

    if (weir__channel_in_loop(messenger->channel))
        return false;
    there = destination(messenger->channel);
    if (weir__in_executor(there))
        return false;
    weir_task_init(task, fn, arg);
    return weir__executor_post(there, task, WEIR__NOW) == 0 ||
           weir__executor_post(weir_executor_global(), task, WEIR__NOW) == 0;
}
