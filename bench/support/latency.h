/* SPDX-License-Identifier: Apache-2.0 */
/*
 * support/latency.h - durations counted in buckets of 1.6 %.
 *
 * Some KiB instead of a list of samples: what shares a core with the measured program also shares
 * its caches.
 */
#ifndef BENCH_SUPPORT_LATENCY_H
#define BENCH_SUPPORT_LATENCY_H

#include <stdint.h>

enum {
    LATENCY_BITS = 6,
    LATENCY_STEPS = 1 << LATENCY_BITS,    /* of each octave */
    LATENCY_BUCKETS = LATENCY_STEPS * 36, /* up to a minute */
};

struct latency {
    uint64_t total;
    uint32_t counts[LATENCY_BUCKETS];
};

/* Durations below 2 * LATENCY_STEPS ns have a bucket each. */
static inline unsigned latency_bucket(uint64_t ns)
{
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns | LATENCY_STEPS) - LATENCY_BITS;
    uint64_t bucket = octave * LATENCY_STEPS + (ns >> octave);

    return bucket < LATENCY_BUCKETS ? (unsigned)bucket : LATENCY_BUCKETS - 1;
}

static inline void latency_record(struct latency *latency, int64_t ns)
{
    latency->counts[latency_bucket(ns > 0 ? (uint64_t)ns : 0)]++;
    latency->total++;
}

/* The shortest duration of a bucket. */
static inline double latency_floor(unsigned bucket)
{
    unsigned octave = bucket < 2 * LATENCY_STEPS ? 0 : bucket / LATENCY_STEPS - 1;

    return (double)(bucket - octave * LATENCY_STEPS) * (double)(UINT64_C(1) << octave);
}

/* The sample that this share of all is shorter than, 0.99 for p99; those of a bucket are taken to
 * lie evenly in it. */
static inline double latency_percentile(const struct latency *latency, double share)
{
    double rank = share * (double)latency->total, below = 0;
    unsigned bucket = 0;

    while (bucket < LATENCY_BUCKETS - 1 && below + latency->counts[bucket] <= rank)
        below += latency->counts[bucket++];
    return latency_floor(bucket) + (latency_floor(bucket + 1) - latency_floor(bucket)) *
                                       (rank - below) / latency->counts[bucket];
}

#endif
