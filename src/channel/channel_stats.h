/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting of channel events, for weir_channel_stats.
 *
 * Each transport has its own counters in each shard (base/sharded_counters.h). The channel layer
 * counts almost everything; a transport calls weir__stats_received or weir__stats_message for what
 * it passes to weir__channel_received. Events are counted before they are delivered.
 */
#ifndef WEIR_CHANNEL_CHANNEL_STATS_H
#define WEIR_CHANNEL_CHANNEL_STATS_H

#include "channel/channel.h"

/*
 * The counters of a transport. Those that are subtracted come before those that they are subtracted
 * from and are summed up first, so a difference is never negative. A counter of listeners follows
 * the one of other channels.
 */
enum weir__stat {
    WEIR__STAT_CLOSED,
    WEIR__STAT_LISTENERS_CLOSED,
    WEIR__STAT_CREATED,
    WEIR__STAT_LISTENERS_CREATED,
    WEIR__STAT_DEACTIVATED,
    WEIR__STAT_LISTENERS_DEACTIVATED,
    WEIR__STAT_ACTIVATED,
    WEIR__STAT_LISTENERS_ACTIVATED,
    WEIR__STAT_MESSAGES_RECEIVED,
    WEIR__STAT_BYTES_RECEIVED,
    WEIR__STAT_MESSAGES_SENT,
    WEIR__STAT_BYTES_SENT,
    WEIR__STAT_ACCEPTED,
    WEIR__STAT_CONNECTED,
    WEIR__STAT_CONNECTS_FAILED,
    WEIR__STAT_ACCEPTS_FAILED,
    WEIR__STAT_TURNED_AWAY,
    WEIR__STAT_WRITES_FAILED,
    WEIR__STAT_UNWRITABLE,
    WEIR__STAT_REFUSED,
    WEIR__STAT_RESET,
    WEIR__STAT_PIPE,
    WEIR__STAT_TIMED_OUT,
    WEIR__STAT_UNREACHABLE,
    WEIR__STAT_ADDRESS,
    WEIR__STAT_DESCRIPTORS,
    WEIR__STAT_MEMORY,
    WEIR__STAT_TOO_LONG,
    WEIR__STAT_REJECTED,
    WEIR__STAT_OTHER,
    WEIR__STAT_COUNT,
};

_Static_assert(WEIR__STAT_COUNT <= WEIR__STATS_SIZE, "the counters of a transport fit");

/* Any thread. */
void weir__stats_count(const weir_channel *channel, enum weir__stat stat, uint64_t n);

/* Any thread: counts an error by its cause; WEIR_ECLOSED and WEIR_ECANCELED are none. */
void weir__stats_error(const weir_channel *channel, int err);

/* A channel was created; its state has changed. */
void weir__stats_created(const weir_channel *channel);
void weir__stats_state(const weir_channel *channel, uint32_t before, uint32_t after);

/* Any thread: counts a received or sent message. */
void weir__stats_message(const weir_channel *channel, enum weir__stat messages, uint64_t bytes);

/*
 * The counters of the channel's transport, on its event loop only: other executors may have no
 * thread of their own. Saves instructions for sockets.
 */
static inline _Atomic uint64_t *weir__stats_of(const weir_channel *channel)
{
    /* Relaxed: on its loop the channel has had its executor for long. */
    return atomic_load_explicit(&channel->executor, memory_order_relaxed)->shard.counters +
           channel->transport->stats;
}

static inline void weir__stats_received(const weir_channel *channel, uint64_t count, uint64_t bytes)
{
    _Atomic uint64_t *counters = weir__stats_of(channel);

    weir__counter_add(counters[WEIR__STAT_MESSAGES_RECEIVED], count);
    weir__counter_add(counters[WEIR__STAT_BYTES_RECEIVED], bytes);
}

#endif
