/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a channel has last sent something: for handlers that wait until nothing moves. It is
 * written down only where somebody asks, because it costs a look at the clock.
 */
#ifndef WEIR_CHANNEL_LAST_SENT_H
#define WEIR_CHANNEL_LAST_SENT_H

#include "channel/channel.h"

/* Any thread: from now on, or soon if this is not the loop. Fails with -ENOMEM. */
int weir__last_sent_watch(weir_channel *channel);

/* Any thread: when some bytes, or all bytes of a message, were last sent; 0 = not since the watch
 * began. By the clock of the channel's loop. */
int64_t weir__last_sent_of_bytes(const weir_channel *channel);
int64_t weir__last_sent_of_messages(const weir_channel *channel);

/* The loop: something was sent, at least one message whole, or not. */
void weir__last_sent_write_down(weir_channel *channel, bool whole);

static inline void weir__last_sent_note(weir_channel *channel, bool whole)
{
    if (weir__channel_has(channel, WEIR__WATCHED))
        weir__last_sent_write_down(channel, whole);
}

#endif
