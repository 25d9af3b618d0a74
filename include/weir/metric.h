/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/metric.h - how values are distributed, in 5 KiB, to one part in sixteen.
 *
 * Values below 16 are counted exactly; above, each doubling is cut into 16 equal buckets, so that a
 * percentile is at most 6.25 % above the truth and never below it. Recording is one addition to a
 * bucket and one to the sum; reading locks nobody out.
 */
#ifndef WEIR_METRIC_H
#define WEIR_METRIC_H

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
 * Adds every value of `source` to `target`, for example to combine the histograms of several
 * threads. Values recorded in `source` during the call are added or not.
 * Thread: any.
 */
WEIR_API void weir_histogram_merge(weir_histogram *target, const weir_histogram *source);

/*
 * Forgets all values. Values recorded during the call are kept or not; one that is kept may miss in
 * the sum, and count in min and max as a bound of its bucket.
 * Thread: any.
 */
WEIR_API void weir_histogram_reset(weir_histogram *histogram);

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

/* --- metric ----------------------------------------------------------------------------------- */

/*
 * Figures by name: what the library and its user count, readable at any time.
 *
 * A metric is registered under its name from create to release. Writing one is an atomic addition
 * or store; readers take no lock and hold up nobody but a metric's release. The library's own
 * figures ("executor.weir-1#1.tasks_run") are in the same registry.
 */

/* Room for a name and its end: names have at most 95 bytes. */
#define WEIR_METRIC_NAME_SIZE 96

enum weir_metric_kind {
    WEIR_METRIC_COUNTER,  /* only grows */
    WEIR_METRIC_GAUGE,    /* goes up and down */
    WEIR_METRIC_HISTOGRAM /* a distribution */
};

typedef struct weir_metric weir_metric;

/* A copy of a metric at the time it was read. */
typedef struct weir_metric_value {
    char name[WEIR_METRIC_NAME_SIZE];
    enum weir_metric_kind kind;
    int64_t value;                  /* of a histogram: how many values were recorded */
    weir_histogram_summary summary; /* of a histogram; otherwise zero */
} weir_metric_value;

/* Visits one metric; `value` is lent for the call. No lock is held: it may call anything. */
typedef void weir_metric_fn(const weir_metric_value *value, void *user_data);

/*
 * Makes a metric of value 0 and registers it under a copy of `name`.
 * Thread: any.  Gives: ret_metric.  Fails: -EINVAL for an empty name or an unknown kind,
 * -ENAMETOOLONG, -EEXIST if the name is taken, -ENOMEM.
 */
WEIR_API int weir_metric_create(enum weir_metric_kind kind, const char *name,
                                weir_metric **ret_metric);

/*
 * Takes the metric out of the registry, waits for readers that are copying it, and frees it; NULL
 * is fine.
 * Thread: any.  Takes: metric.
 */
WEIR_API void weir_metric_release(weir_metric *metric);

/*
 * Adds `n` to a counter or gauge.
 * Thread: any.  Fails: -EINVAL for a histogram, and for a negative `n` on a counter.
 */
WEIR_API int weir_metric_add(weir_metric *metric, int64_t n);

/*
 * Sets a gauge.
 * Thread: any.  Fails: -EINVAL for any other kind.
 */
WEIR_API int weir_metric_set(weir_metric *metric, int64_t value);

/*
 * Records a value in a histogram.
 * Thread: any.  Fails: -EINVAL for any other kind.
 */
WEIR_API int weir_metric_record(weir_metric *metric, int64_t value);

/*
 * Reads the metric of that name.
 * Thread: any.  Fails: -ENOENT if there is none, -EINVAL if name is NULL.
 */
WEIR_API int weir_metric_read(const char *name, weir_metric_value *ret_value);

/*
 * Visits every registered metric, in no particular order. One that is registered or released
 * meanwhile may be left out; one that stays is visited once.
 * Thread: any.  Lends until it returns: user_data.
 */
WEIR_API void weir_metrics_foreach(weir_metric_fn *fn, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
