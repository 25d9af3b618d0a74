/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of the last send of a channel and the bytes sent, for handlers that time out without
 * progress. They are recorded only on request, because that reads the clock.
 */
#ifndef WEIR_CHANNEL_LAST_SENT_H
#define WEIR_CHANNEL_LAST_SENT_H

#include "channel/channel.h"

/* Any thread: starts to record. Fails with -ENOMEM. */
int weir__last_sent_watch(weir_channel *channel);

/* Any thread: the time of the last send of any bytes, or of a complete message, by the clock of
 * the loop; 0 = none since the recording began. */
int64_t weir__last_sent_of_bytes(const weir_channel *channel);
int64_t weir__last_sent_of_messages(const weir_channel *channel);

/* The loop: bytes were sent; `whole` = at least one complete message. */
void weir__last_sent_write_down(weir_channel *channel, size_t bytes, bool whole);

static inline void weir__last_sent_note(weir_channel *channel, size_t bytes, bool whole)
{
    if (__builtin_expect(weir__channel_is(channel, WEIR__IS_WATCHED), 0))
        weir__last_sent_write_down(channel, bytes, whole);
}

#endif
