/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/messenger.h"

#include "channel/channel.h"
#include "executor/executor.h"

void weir__messenger_wait(weir__messenger *messenger, weir_channel *channel, weir_promise *promise,
                          weir_listener_fn *fn, void *user_data)
{
    messenger->channel = weir_channel_retain(channel);
    messenger->by.listener = (weir_listener){.fn = fn, .user_data = user_data};
    weir_promise_listen(promise, &messenger->by.listener);
}

/* A channel whose loop has ended stays there: what is left is done elsewhere, by one at a time. */
static bool is_elsewhere(const weir_channel *channel)
{
    return !weir__channel_is_here(channel) &&
           weir__executor_state(weir__channel_executor(channel)) < WEIR_EXECUTOR_SHUTDOWN;
}

bool weir__messenger_goes_on(weir__messenger *messenger, weir_task_fn *fn, void *arg)
{
    weir_task *task = &messenger->by.task;

    if (!is_elsewhere(messenger->channel))
        return false;
    weir_task_init(task, fn, arg);
    return weir__executor_post(weir__channel_executor(messenger->channel), task, WEIR__NOW) == 0 ||
           weir__executor_post(weir_executor_global(), task, WEIR__NOW) == 0;
}
