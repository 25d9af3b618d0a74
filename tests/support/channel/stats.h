/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the channels of a kind have counted since a moment, all of it:
 *
 *     struct stats stats = stats_from_now("tcp");
 *     ...
 *     assert_stats(&stats, .created = 1, .open = 1);
 */
#ifndef WEIR_TEST_STATS_H
#define WEIR_TEST_STATS_H

#include <weir/channel.h>

struct stats {
    const char *kind; /* NULL = all channels */
    weir_channel_stats before;
};

struct stats stats_from_now(const char *kind);

/* What has been counted since. */
weir_channel_stats stats_since(const struct stats *stats);

/* So much has been counted since, and nothing else. */
#define assert_stats(stats, ...) \
    stats_check(stats, &(const weir_channel_stats){__VA_ARGS__}, __FILE__, __LINE__)

void stats_check(const struct stats *stats, const weir_channel_stats *expected, const char *file,
                 int line);

#endif
