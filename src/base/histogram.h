/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of a weir_histogram: to embed one, and to record without locked instructions.
 *
 *     value      0 1 2 ... 15 | 16 17 ... 31 | 32-33 34-35 ... 62-63 | 64-67 ...
 *     bucket     0 1 2 ... 15 | 16 17 ... 31 | 32    33    ... 47    | 48    ...
 *
 * Memory order: a writer updates sum, min and max first and its bucket last, with release; a reader
 * reads the buckets first, with acquire. So min and max include every value that the reader counts.
 */
#ifndef WEIR_BASE_HISTOGRAM_H
#define WEIR_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/metric.h>

/* 16 exact buckets, then 16 for each power of two from 2^4 to 2^42. */
#define WEIR__HISTOGRAM_BUCKETS 624

struct weir_histogram {
    _Atomic int64_t sum;
    _Atomic int64_t min; /* INT64_MAX while empty */
    _Atomic int64_t max; /* -1 while empty */
    _Atomic uint64_t buckets[WEIR__HISTOGRAM_BUCKETS];
};

void weir__histogram_init(weir_histogram *histogram);

static inline int64_t weir__histogram_clamp(int64_t value)
{
    return value < 0 ? 0 : value > WEIR_HISTOGRAM_MAX ? WEIR_HISTOGRAM_MAX : value;
}

/* `value` must be clamped. */
static inline unsigned weir__histogram_bucket(int64_t value)
{
    unsigned doubling;

    if (value < 16)
        return (unsigned)value;
    doubling = 59u - (unsigned)__builtin_clzll((unsigned long long)value);
    return doubling * 16 + (unsigned)(value >> doubling);
}

/* Records a value `times` times in a histogram with a single writer thread. */
static inline void weir__histogram_record_many(weir_histogram *histogram, int64_t value,
                                               uint64_t times)
{
    int64_t clamped = weir__histogram_clamp(value);
    _Atomic uint64_t *bucket = &histogram->buckets[weir__histogram_bucket(clamped)];
    int64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(bucket, memory_order_relaxed);

    atomic_store_explicit(&histogram->sum, sum + clamped * (int64_t)times, memory_order_relaxed);
    if (clamped < atomic_load_explicit(&histogram->min, memory_order_relaxed))
        atomic_store_explicit(&histogram->min, clamped, memory_order_relaxed);
    if (clamped > atomic_load_explicit(&histogram->max, memory_order_relaxed))
        atomic_store_explicit(&histogram->max, clamped, memory_order_relaxed);
    atomic_store_explicit(bucket, count + times, memory_order_release);
}

static inline void weir__histogram_record(weir_histogram *histogram, int64_t value)
{
    weir__histogram_record_many(histogram, value, 1);
}

#endif
