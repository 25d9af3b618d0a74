/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/histogram.h - how values are distributed, in 5 KiB, to one part in sixteen.
 *
 * Values below 16 are counted exactly; above, each doubling is cut into 16 equal buckets, so that a
 * percentile is at most 6.25 % above the truth and never below it. Recording is one addition to a
 * bucket and one to the sum; reading locks nobody out.
 */
#ifndef WEIR_HISTOGRAM_H
#define WEIR_HISTOGRAM_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Larger values are recorded as this one: in nanoseconds, 73 minutes. Negative ones as 0. */
#define WEIR_HISTOGRAM_MAX ((INT64_C(1) << 42) - 1)

typedef struct weir_histogram weir_histogram;

/* All zero if nothing was recorded. */
typedef struct weir_histogram_summary {
    uint64_t count;
    int64_t sum;
    int64_t min;
    int64_t max;
    double mean;
    int64_t p50;
    int64_t p90;
    int64_t p99;
    int64_t p999;
} weir_histogram_summary;

/*
 * Makes an empty histogram.
 * Thread: any.  Gives: ret_histogram.  Fails: -ENOMEM.
 */
WEIR_API int weir_histogram_create(weir_histogram **ret_histogram);

/*
 * Frees the histogram; NULL is fine.
 * Thread: any.  Takes: histogram.
 */
WEIR_API void weir_histogram_release(weir_histogram *histogram);

/*
 * Counts one value.
 * Thread: any.
 */
WEIR_API void weir_histogram_record(weir_histogram *histogram, int64_t value);

/*
 * Sums the histogram up. While others record, the result is one that held at some moment of the
 * call for each bucket, with every percentile between min and max.
 * Thread: any.
 */
WEIR_API void weir_histogram_read(const weir_histogram *histogram,
                                  weir_histogram_summary *ret_summary);

/*
 * The value that `percent` (0 to 100) of the recorded values do not exceed: the upper bound of its
 * bucket, but never more than the largest recorded one. 0 if nothing was recorded.
 * Thread: any.
 */
WEIR_API int64_t weir_histogram_percentile(const weir_histogram *histogram, double percent);

#ifdef __cplusplus
}
#endif

#endif
