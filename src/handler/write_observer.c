/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/write_observer.h"

#include "channel/channel.h"

void weir__write_observer_start(weir__write_observer *observer, weir_channel *channel,
                                weir_promise *promise, weir_listener_fn *fn, void *user_data)
{
    observer->channel = weir_channel_retain(channel);
    observer->as.listener = (weir_listener){.fn = fn, .user_data = user_data};
    weir_promise_listen(promise, &observer->as.listener);
}

/* If the channel's loop has ended, the global executor completes the write. */
bool weir__write_observer_forward(weir__write_observer *observer, weir__mail_fn *fn)
{
    weir_channel *channel = observer->channel;

    if (weir__channel_in_loop(channel))
        return false;
    observer->as.mail.fn = fn;
    weir__mailbox_post(&channel->mailbox, &observer->as.mail);
    return true;
}
