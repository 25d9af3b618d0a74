/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting what channels do, for weir/channel.h.
 *
 * Each kind of transport has figures of its own in each account (base/sharded_counters.h). The
 * channel layer counts almost everything; a transport calls weir__stats_received, or
 * weir__stats_message, for what it tells weir__channel_received. What is counted is counted before
 * anybody is told of it.
 */
#ifndef WEIR_CHANNEL_CHANNEL_STATS_H
#define WEIR_CHANNEL_CHANNEL_STATS_H

#include "channel/channel.h"

/*
 * The figures of one kind. What is taken away comes before what it is taken from, and is summed up
 * first: so the difference is never negative. Those of listeners follow those of other channels.
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

_Static_assert(WEIR__STAT_COUNT <= WEIR__STATS_SIZE, "the figures of a kind have room");

/* Any thread. */
void weir__stats_count(const weir_channel *channel, enum weir__stat stat, uint64_t n);

/* Any thread: an error of the channel's, by its cause; not of who has closed it. */
void weir__stats_error(const weir_channel *channel, int err);

/* A channel has been made; its state changes: for the figures that count channels. */
void weir__stats_created(const weir_channel *channel);
void weir__stats_state(const weir_channel *channel, uint32_t before, uint32_t after);

/* Any thread: one message has been received; or sent. */
void weir__stats_message(const weir_channel *channel, enum weir__stat messages, uint64_t bytes);

/*
 * The channel's loop, which is an event loop: other executors may have no thread of their own. For
 * sockets, where each instruction counts.
 */
static inline void weir__stats_moved(const weir_channel *channel, enum weir__stat messages,
                                     uint64_t count, uint64_t bytes)
{
    /* Relaxed: on its loop a channel has had it for long. */
    _Atomic uint64_t *figures =
        atomic_load_explicit(&channel->executor, memory_order_relaxed)->shard.counters +
        channel->stats;

    weir__counter_add(figures[messages], count);
    weir__counter_add(figures[messages + 1], bytes);
}

static inline void weir__stats_received(const weir_channel *channel, uint64_t count, uint64_t bytes)
{
    weir__stats_moved(channel, WEIR__STAT_MESSAGES_RECEIVED, count, bytes);
}

static inline void weir__stats_sent(const weir_channel *channel, uint64_t count, uint64_t bytes)
{
    weir__stats_moved(channel, WEIR__STAT_MESSAGES_SENT, count, bytes);
}

#endif
