/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording, merging and resetting from many threads, and reading.
 *
 * A reader copies the buckets and works on the copy, so that count and percentiles agree. It
 * trusts min and max only within the first and the last bucket in use: a concurrent reset may have
 * overwritten them between the two halves of a record.
 */
#include "base/histogram.h"

#include <errno.h>

#include "base/memory.h"

struct snapshot {
    uint64_t count;
    int64_t sum;
    int64_t min;
    int64_t max;
    uint64_t buckets[WEIR__HISTOGRAM_BUCKETS];
};

void weir__histogram_init(weir_histogram *histogram)
{
    atomic_init(&histogram->sum, 0);
    atomic_init(&histogram->min, INT64_MAX);
    atomic_init(&histogram->max, -1);
    for (int i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++)
        atomic_init(&histogram->buckets[i], 0);
}

int weir_histogram_create(weir_histogram **ret_histogram)
{
    weir_histogram *histogram = weir__alloc(sizeof(*histogram));

    if (histogram == NULL)
        return -ENOMEM;
    weir__histogram_init(histogram);
    *ret_histogram = histogram;
    return 0;
}

void weir_histogram_release(weir_histogram *histogram)
{
    weir__free(histogram);
}

static void lower_to(_Atomic int64_t *least, int64_t value)
{
    int64_t seen = atomic_load_explicit(least, memory_order_relaxed);

    while (value < seen && !atomic_compare_exchange_weak_explicit(
                               least, &seen, value, memory_order_relaxed, memory_order_relaxed))
        continue;
}

static void raise_to(_Atomic int64_t *most, int64_t value)
{
    int64_t seen = atomic_load_explicit(most, memory_order_relaxed);

    while (value > seen && !atomic_compare_exchange_weak_explicit(
                               most, &seen, value, memory_order_relaxed, memory_order_relaxed))
        continue;
}

void weir_histogram_record(weir_histogram *histogram, int64_t value)
{
    int64_t clamped = weir__histogram_clamp(value);
    unsigned bucket = weir__histogram_bucket(clamped);

    atomic_fetch_add_explicit(&histogram->sum, clamped, memory_order_relaxed);
    lower_to(&histogram->min, clamped);
    raise_to(&histogram->max, clamped);
    atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_release);
}

static int64_t upper_bound(unsigned bucket)
{
    unsigned doubling;

    if (bucket < 16)
        return bucket;
    doubling = bucket / 16 - 1;
    return ((int64_t)(bucket % 16 + 17) << doubling) - 1;
}

static int64_t lower_bound(unsigned bucket)
{
    return bucket > 0 ? upper_bound(bucket - 1) + 1 : 0;
}

static bool is_in_bucket(int64_t value, unsigned bucket)
{
    return value >= lower_bound(bucket) && value <= upper_bound(bucket);
}

/* Without values all members are 0. The sum may be ahead of the buckets. */
static void take_snapshot(const weir_histogram *histogram, struct snapshot *ret_snapshot)
{
    unsigned first = WEIR__HISTOGRAM_BUCKETS, last = 0;
    int64_t min, max;

    *ret_snapshot = (struct snapshot){0};
    for (unsigned i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&histogram->buckets[i], memory_order_acquire);

        ret_snapshot->buckets[i] = count;
        ret_snapshot->count += count;
        if (count > 0) {
            first = first < i ? first : i;
            last = i;
        }
    }
    if (ret_snapshot->count == 0)
        return;
    ret_snapshot->sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    min = atomic_load_explicit(&histogram->min, memory_order_relaxed);
    max = atomic_load_explicit(&histogram->max, memory_order_relaxed);
    ret_snapshot->min = is_in_bucket(min, first) ? min : lower_bound(first);
    ret_snapshot->max = is_in_bucket(max, last) ? max : upper_bound(last);
    if (ret_snapshot->max < ret_snapshot->min)
        ret_snapshot->max = ret_snapshot->min; /* in one bucket: each from another record */
}

/* In the order of a record: the buckets last, with release. */
void weir_histogram_merge(weir_histogram *target, const weir_histogram *source)
{
    struct snapshot snapshot;

    take_snapshot(source, &snapshot);
    if (snapshot.count == 0)
        return;
    atomic_fetch_add_explicit(&target->sum, snapshot.sum, memory_order_relaxed);
    lower_to(&target->min, snapshot.min);
    raise_to(&target->max, snapshot.max);
    for (unsigned i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++)
        if (snapshot.buckets[i] > 0)
            atomic_fetch_add_explicit(&target->buckets[i], snapshot.buckets[i],
                                      memory_order_release);
}

void weir_histogram_reset(weir_histogram *histogram)
{
    for (unsigned i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++)
        atomic_store_explicit(&histogram->buckets[i], 0, memory_order_relaxed);
    atomic_store_explicit(&histogram->sum, 0, memory_order_relaxed);
    atomic_store_explicit(&histogram->min, INT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&histogram->max, -1, memory_order_relaxed);
}

/* The number of values that the percentile covers: ceil(count * percent / 100), at least 1. */
static uint64_t rank_of(uint64_t count, double percent)
{
    double exact = (double)count * percent / 100;
    uint64_t rank;

    if (!(exact > 1)) /* a NaN too */
        return 1;
    if (exact >= (double)count)
        return count;
    rank = (uint64_t)exact;
    return (double)rank < exact ? rank + 1 : rank;
}

static int64_t percentile(const struct snapshot *snapshot, double percent)
{
    uint64_t rank, below = 0;
    unsigned bucket = 0;
    int64_t bound;

    if (snapshot->count == 0)
        return 0;
    rank = rank_of(snapshot->count, percent);
    while ((below += snapshot->buckets[bucket]) < rank)
        bucket++;
    bound = upper_bound(bucket);
    return bound < snapshot->max ? bound : snapshot->max;
}

/* Clamped to min and max, because the sum may be ahead of the buckets. */
static double mean_of(const struct snapshot *snapshot)
{
    double mean = (double)snapshot->sum / (double)snapshot->count;

    if (mean < (double)snapshot->min)
        return (double)snapshot->min;
    return mean > (double)snapshot->max ? (double)snapshot->max : mean;
}

void weir_histogram_read(const weir_histogram *histogram, weir_histogram_summary *ret_summary)
{
    struct snapshot snapshot;

    *ret_summary = (weir_histogram_summary){0};
    take_snapshot(histogram, &snapshot);
    if (snapshot.count == 0)
        return;
    *ret_summary = (weir_histogram_summary){
        .count = snapshot.count,
        .sum = snapshot.sum,
        .min = snapshot.min,
        .max = snapshot.max,
        .mean = mean_of(&snapshot),
        .p50 = percentile(&snapshot, 50),
        .p90 = percentile(&snapshot, 90),
        .p99 = percentile(&snapshot, 99),
        .p999 = percentile(&snapshot, 99.9),
    };
}

void weir_histogram_foreach_bucket(const weir_histogram *histogram, weir_histogram_bucket_fn *fn,
                                   void *user_data)
{
    for (unsigned i = 0; i < WEIR__HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&histogram->buckets[i], memory_order_acquire);

        if (count > 0)
            fn(upper_bound(i), count, user_data);
    }
}

int64_t weir_histogram_percentile(const weir_histogram *histogram, double percent)
{
    struct snapshot snapshot;

    take_snapshot(histogram, &snapshot);
    return percentile(&snapshot, percent);
}
