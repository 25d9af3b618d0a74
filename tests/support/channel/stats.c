/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics as text.
 */
#include "support/channel/stats.h"

#include <string.h>

#include "support/test.h"

enum { WORDS = sizeof(weir_channel_stats) / sizeof(uint64_t) };

static const char *const names[] = {
    "open",
    "active",
    "listeners",
    "listeners_active",
    "created",
    "closed",
    "accepted",
    "connected",
    "connects_failed",
    "accepts_failed",
    "turned_away",
    "messages_received",
    "bytes_received",
    "messages_sent",
    "bytes_sent",
    "writes_failed",
    "unwritable",
    "refused",
    "reset",
    "pipe",
    "timed_out",
    "unreachable",
    "address",
    "descriptors",
    "memory",
    "rejected",
    "other",
};

static const char *name_of(size_t word)
{
    return word < sizeof(names) / sizeof(names[0]) ? names[word] : "reserved";
}

static weir_channel_stats read_now(const char *kind)
{
    weir_channel_stats now;

    if (kind == NULL)
        weir_channel_read_stats(&now);
    else
        assert_int_equal(weir_channel_read_stats_of(kind, &now), 0);
    return now;
}

struct stats stats_from_now(const char *kind)
{
    return (struct stats){.kind = kind, .before = read_now(kind)};
}

weir_channel_stats stats_since(const struct stats *stats)
{
    weir_channel_stats now = read_now(stats->kind), since;
    uint64_t after[WORDS], before[WORDS];

    memcpy(after, &now, sizeof(now));
    memcpy(before, &stats->before, sizeof(now));
    for (size_t i = 0; i < WORDS; i++)
        after[i] -= before[i];
    memcpy(&since, after, sizeof(since));
    return since;
}

void stats_check(const struct stats *stats, const weir_channel_stats *expected, const char *file,
                 int line)
{
    weir_channel_stats since = stats_since(stats);
    uint64_t found[WORDS], wanted[WORDS];
    unsigned different = 0;

    memcpy(found, &since, sizeof(since));
    memcpy(wanted, expected, sizeof(since));
    for (size_t i = 0; i < WORDS; i++) {
        if (found[i] == wanted[i])
            continue;
        print_error("%s is %lld, not %lld\n", name_of(i), (long long)found[i],
                    (long long)wanted[i]);
        different++;
    }
    if (different > 0)
        _fail(file, line);
}
