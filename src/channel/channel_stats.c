/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of channels.
 *
 * Counters are in the shard of the executor that runs on this thread, whichever loop owns the
 * channel: only this thread writes that shard. Threads without an executor share one with many
 * writers.
 *
 * A difference of two counters is never negative: a channel is counted as created before it is
 * counted as closed, on whichever threads, because it was handed from one to the other. A reader
 * sums up `closed` first; every channel that it finds there was created before, and it sees that,
 * too (weir__counter_shard_add).
 */
#include "channel/channel_stats.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "base/metric.h"

/* ---- counting ---- */

static weir__counter_shard *current_shard(void)
{
    return weir__current != NULL ? &weir__current->shard : NULL;
}

void weir__stats_count(const weir_channel *channel, enum weir__stat stat, uint64_t n)
{
    weir__counter_shard_add(current_shard(), channel->transport->stats + stat, n);
}

void weir__stats_message(const weir_channel *channel, enum weir__stat messages, uint64_t bytes)
{
    weir__stats_count(channel, messages, 1);
    weir__stats_count(channel, messages + 1, bytes);
}

static enum weir__stat cause_of(int err)
{
    switch (err) {
    case -ECONNREFUSED:
        return WEIR__STAT_REFUSED;
    case -ECONNRESET:
    case -ECONNABORTED:
        return WEIR__STAT_RESET;
    case -EPIPE:
        return WEIR__STAT_PIPE;
    case -ETIMEDOUT:
        return WEIR__STAT_TIMED_OUT;
    case -ENETUNREACH:
    case -EHOSTUNREACH:
    case -ENETDOWN:
    case -EHOSTDOWN:
        return WEIR__STAT_UNREACHABLE;
    case -EADDRINUSE:
    case -EADDRNOTAVAIL:
        return WEIR__STAT_ADDRESS;
    case -EMFILE:
    case -ENFILE:
        return WEIR__STAT_DESCRIPTORS;
    case -ENOMEM:
    case -ENOBUFS:
        return WEIR__STAT_MEMORY;
    case -EMSGSIZE:
        return WEIR__STAT_TOO_LONG;
    case WEIR_EREJECTED:
    case WEIR_ETOOMANY:
        return WEIR__STAT_REJECTED;
    default:
        return WEIR__STAT_OTHER;
    }
}

void weir__stats_error(const weir_channel *channel, int err)
{
    if (err < 0 && err != WEIR_ECLOSED && err != WEIR_ECANCELED)
        weir__stats_count(channel, cause_of(err), 1);
}

/* The second counter of a pair is the listeners'. */
static void count_channel(const weir_channel *channel, enum weir__stat stat)
{
    weir__stats_count(channel, stat + (channel->transport->accepts ? 1 : 0), 1);
}

void weir__stats_state(const weir_channel *channel, uint32_t before, uint32_t after)
{
    if ((after & ~before & WEIR__IS_ACTIVE) != 0)
        count_channel(channel, WEIR__STAT_ACTIVATED);
    if ((before & ~after & WEIR__IS_ACTIVE) != 0)
        count_channel(channel, WEIR__STAT_DEACTIVATED);
    if ((after & WEIR__PHASE) == WEIR__CLOSED && (before & WEIR__PHASE) != WEIR__CLOSED)
        count_channel(channel, WEIR__STAT_CLOSED);
}

void weir__stats_created(const weir_channel *channel)
{
    count_channel(channel, WEIR__STAT_CREATED);
    if (channel->parent != NULL)
        weir__stats_count(channel, WEIR__STAT_ACCEPTED, 1);
}

/* ---- reading ---- */

#define WEIR__STAT_NONE WEIR__STAT_COUNT

/* NUMBER(transport, field of weir_channel_stats, kind of metric, counter, counter to subtract)
 * ERROR(transport, field of weir_channel_errors, counter) */
#define ROWS(NUMBER, ERROR, transport)                                                     \
    NUMBER(transport, open, GAUGE, CREATED, CLOSED)                                        \
    NUMBER(transport, active, GAUGE, ACTIVATED, DEACTIVATED)                               \
    NUMBER(transport, listeners, GAUGE, LISTENERS_CREATED, LISTENERS_CLOSED)               \
    NUMBER(transport, listeners_active, GAUGE, LISTENERS_ACTIVATED, LISTENERS_DEACTIVATED) \
    NUMBER(transport, created, COUNTER, CREATED, NONE)                                     \
    NUMBER(transport, closed, COUNTER, CLOSED, NONE)                                       \
    NUMBER(transport, accepted, COUNTER, ACCEPTED, NONE)                                   \
    NUMBER(transport, connected, COUNTER, CONNECTED, NONE)                                 \
    NUMBER(transport, connects_failed, COUNTER, CONNECTS_FAILED, NONE)                     \
    NUMBER(transport, accepts_failed, COUNTER, ACCEPTS_FAILED, NONE)                       \
    NUMBER(transport, turned_away, COUNTER, TURNED_AWAY, NONE)                             \
    NUMBER(transport, messages_received, COUNTER, MESSAGES_RECEIVED, NONE)                 \
    NUMBER(transport, bytes_received, COUNTER, BYTES_RECEIVED, NONE)                       \
    NUMBER(transport, messages_sent, COUNTER, MESSAGES_SENT, NONE)                         \
    NUMBER(transport, bytes_sent, COUNTER, BYTES_SENT, NONE)                               \
    NUMBER(transport, writes_failed, COUNTER, WRITES_FAILED, NONE)                         \
    NUMBER(transport, unwritable, COUNTER, UNWRITABLE, NONE)                               \
    ERROR(transport, refused, REFUSED)                                                     \
    ERROR(transport, reset, RESET)                                                         \
    ERROR(transport, pipe, PIPE)                                                           \
    ERROR(transport, timed_out, TIMED_OUT)                                                 \
    ERROR(transport, unreachable, UNREACHABLE)                                             \
    ERROR(transport, address, ADDRESS)                                                     \
    ERROR(transport, descriptors, DESCRIPTORS)                                             \
    ERROR(transport, memory, MEMORY)                                                       \
    ERROR(transport, too_long, TOO_LONG)                                                   \
    ERROR(transport, rejected, REJECTED)                                                   \
    ERROR(transport, other, OTHER)

static const struct {
    size_t offset;
    enum weir__stat stat;
    enum weir__stat minus;
} rows[] = {
#define NUMBER(transport, field, kind, stat, minus) \
    {offsetof(weir_channel_stats, field), WEIR__STAT_##stat, WEIR__STAT_##minus},
#define ERROR(transport, cause, stat) NUMBER(transport, errors.cause, COUNTER, stat, NONE)
    ROWS(NUMBER, ERROR, all)
#undef ERROR
#undef NUMBER
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static const struct {
    const char *name;
    unsigned stats;
} kinds[] = {
    {"tcp", WEIR__STATS_TCP},           {"udp", WEIR__STATS_UDP},
    {"unix", WEIR__STATS_UNIX},         {"inproc", WEIR__STATS_INPROC},
    {"embedded", WEIR__STATS_EMBEDDED}, {"other", WEIR__STATS_OTHER},
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

_Static_assert(KIND_COUNT *WEIR__STATS_SIZE <= WEIR__SHARD_COUNTERS,
               "the counters of all transports fit");

static uint64_t sum_of_kinds(enum weir__stat stat)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < KIND_COUNT; i++)
        sum += weir__counter_shard_sum(kinds[i].stats + stat);
    return sum;
}

static void fill(const uint64_t *sums, weir_channel_stats *ret_stats)
{
    memset(ret_stats, 0, sizeof(*ret_stats));
    for (size_t i = 0; i < ROW_COUNT; i++)
        *(uint64_t *)(void *)((char *)ret_stats + rows[i].offset) =
            sums[rows[i].stat] - sums[rows[i].minus];
}

void weir_channel_read_stats(weir_channel_stats *ret_stats)
{
    uint64_t sums[WEIR__STAT_COUNT + 1] = {[WEIR__STAT_NONE] = 0};

    for (unsigned i = 0; i < WEIR__STAT_COUNT; i++)
        sums[i] = sum_of_kinds(i);
    fill(sums, ret_stats);
}

int weir_channel_read_stats_of(const char *kind, weir_channel_stats *ret_stats)
{
    uint64_t sums[WEIR__STAT_COUNT + 1] = {[WEIR__STAT_NONE] = 0};
    size_t k = 0;

    while (k < KIND_COUNT && (kind == NULL || strcmp(kinds[k].name, kind) != 0))
        k++;
    if (k == KIND_COUNT)
        return -EINVAL;
    for (unsigned i = 0; i < WEIR__STAT_COUNT; i++)
        sums[i] = weir__counter_shard_sum(kinds[k].stats + i);
    fill(sums, ret_stats);
    return 0;
}

/* ---- the metric registry ---- */

static const weir_metric_row metric_rows[] = {
#define NUMBER(transport, field, kind, stat, minus) \
    {"channels." #field "{transport=\"" transport "\"}", WEIR_METRIC_##kind},
#define ERROR(transport, cause, stat) \
    {"channels.errors{transport=\"" transport "\",cause=\"" #cause "\"}", WEIR_METRIC_COUNTER},
    /* In the order of `kinds`. */
    ROWS(NUMBER, ERROR, "tcp") ROWS(NUMBER, ERROR, "udp") ROWS(NUMBER, ERROR, "unix")
        ROWS(NUMBER, ERROR, "inproc") ROWS(NUMBER, ERROR, "embedded") ROWS(NUMBER, ERROR, "other")
#undef ERROR
#undef NUMBER
};

static int64_t read_row(unsigned row)
{
    unsigned stats = kinds[row / ROW_COUNT].stats;
    enum weir__stat stat = rows[row % ROW_COUNT].stat, minus = rows[row % ROW_COUNT].minus;
    uint64_t less = minus != WEIR__STAT_NONE ? weir__counter_shard_sum(stats + minus) : 0;

    return (int64_t)(weir__counter_shard_sum(stats + stat) - less);
}

_Static_assert(sizeof(metric_rows) / sizeof(metric_rows[0]) == KIND_COUNT * ROW_COUNT,
               "each transport has its metrics");

static weir_metric_table table = {
    .rows = metric_rows, .count = KIND_COUNT * ROW_COUNT, .read = read_row};

__attribute__((constructor)) static void add_table(void)
{
    weir__metric_table_add(&table);
}
