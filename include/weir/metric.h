/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/metric.h - histograms, and the registry of metrics.
 */
#ifndef WEIR_METRIC_H
#define WEIR_METRIC_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- histogram -------------------------------------------------------------------------------- */

/*
 * The distribution of values, in 5 KiB. Values below 16 are counted exactly; above, each power of
 * two is divided into 16 equal buckets, so that a percentile is at most 6.25 % above the true value
 * and never below it. Recording adds to a bucket and to the sum; reading does not block recording.
 */

/* Larger values are recorded as this maximum (73 minutes in nanoseconds), negative values as 0. */
#define WEIR_HISTOGRAM_MAX ((INT64_C(1) << 42) - 1)

typedef struct weir_histogram weir_histogram;

/* All members are 0 if no value was recorded. */
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
 * Creates an empty histogram.
 * Thread: any.  Gives: ret_histogram.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_histogram_create(weir_histogram **ret_histogram);

/*
 * Frees the histogram. NULL is ignored.
 * Thread: any.  Takes: histogram.
 */
WEIR_API void weir_histogram_release(weir_histogram *histogram);

/*
 * Records a value.
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
 * Removes all values. A value recorded during the call is kept or removed; one that is kept may be
 * missing in the sum, and min and max are then bounds of its bucket.
 * Thread: any.
 */
WEIR_API void weir_histogram_reset(weir_histogram *histogram);

/*
 * Reads count, sum, extremes and percentiles. During concurrent records each bucket is read
 * atomically, and every percentile lies between min and max.
 * Thread: any.
 */
WEIR_API void weir_histogram_read(const weir_histogram *histogram,
                                  weir_histogram_summary *ret_summary);

/*
 * The value that `percent` (0 to 100) percent of the recorded values do not exceed: the upper bound
 * of its bucket, but at most the largest recorded value. 0 if no value was recorded.
 * Thread: any.
 */
WEIR_API int64_t weir_histogram_percentile(const weir_histogram *histogram, double percent);

/* Called for one bucket: `count` values above the bucket before it and at most `upper`. */
typedef void weir_histogram_bucket_fn(int64_t upper, uint64_t count, void *user_data);

/*
 * Calls `fn` for every bucket that is not empty, in ascending order. Every power of two minus one
 * is the upper bound of a bucket.
 * Thread: any.  Lends until it returns: user_data.
 */
WEIR_API void weir_histogram_foreach_bucket(const weir_histogram *histogram,
                                            weir_histogram_bucket_fn *fn, void *user_data);

/* --- metric ----------------------------------------------------------------------------------- */

/*
 * Named counters, gauges and histograms of the library and of its user, readable at any time.
 *
 * A name is a family, and optionally labels in the notation of Prometheus:
 *
 *      shop.answers
 *      shop.answers{shelf="books",language="en"}
 *
 * A family has letters, digits, "_", ".", "#" and "-". A label's key has letters, digits and "_",
 * does not begin with a digit or "__", and is not "le"; keys of a name differ. Within the quotes of
 * a value, \\, \" and \n stand for a backslash, a quote and a line feed. The metrics of the library
 * are in the same registry, such as "executor.tasks_run{group="weir",loop="weir-1#1"}".
 *
 * A metric is registered under its name from create to release. Writing one is an atomic addition
 * or store. Readers take no lock; only the release of a metric waits for them.
 */

/* Size of a name with its NUL: names have at most 191 bytes. */
#define WEIR_METRIC_NAME_SIZE 192

enum weir_metric_kind {
    WEIR_METRIC_COUNTER,  /* only grows */
    WEIR_METRIC_GAUGE,    /* goes up and down */
    WEIR_METRIC_HISTOGRAM /* a distribution */
};

typedef struct weir_metric weir_metric;

/* A copy of a metric at the time it was read. */
typedef struct weir_metric_value {
    char name[WEIR_METRIC_NAME_SIZE];
    size_t family_length; /* labels, if any, begin at name + family_length with "{" */
    enum weir_metric_kind kind;
    int64_t value;                   /* of a histogram: the number of values */
    weir_histogram_summary summary;  /* of a histogram; otherwise 0 */
    const weir_histogram *histogram; /* a copy, during a weir_metric_fn; otherwise NULL */
} weir_metric_value;

/* Called for one metric; `value` is valid during the call. No lock is held: it may call any
 * function. */
typedef void weir_metric_fn(const weir_metric_value *value, void *user_data);

/*
 * Creates a metric with value 0 and registers it under a copy of `name`.
 * Thread: any.  Gives: ret_metric.  Fails: -EINVAL for an invalid name or kind, -ENAMETOOLONG,
 * -EEXIST if the name is taken, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_metric_create(enum weir_metric_kind kind, const char *name,
                                              weir_metric **ret_metric);

/*
 * Unregisters the metric, waits for readers that are copying it, and frees it. NULL is ignored.
 * Thread: any.  Takes: metric.
 */
WEIR_API void weir_metric_release(weir_metric *metric);

/*
 * Adds `n` to a counter or gauge.
 * Thread: any.  Fails: -EINVAL for a histogram, and for a negative `n` on a counter.
 */
WEIR_API int weir_metric_add(weir_metric *metric, int64_t n);

/*
 * Sets the value of a gauge.
 * Thread: any.  Fails: -EINVAL for any other kind.
 */
WEIR_API int weir_metric_set(weir_metric *metric, int64_t value);

/*
 * Records a value in a histogram.
 * Thread: any.  Fails: -EINVAL for any other kind.
 */
WEIR_API int weir_metric_record(weir_metric *metric, int64_t value);

/*
 * Reads the metric with the given name.
 * Thread: any.  Fails: -ENOENT if there is none, -EINVAL if name is NULL.
 */
WEIR_API int weir_metric_read(const char *name, weir_metric_value *ret_value);

/*
 * Calls `fn` for every registered metric, in no particular order. Metrics that are registered or
 * released meanwhile may be left out; all others are reported once.
 * Thread: any.  Lends until it returns: user_data.
 */
WEIR_API void weir_metrics_foreach(weir_metric_fn *fn, void *user_data);

/* Metrics whose values are computed when they are read: for example from counters of each thread,
 * which are added up. */
typedef struct weir_metric_row {
    const char *name; /* with its labels */
    enum weir_metric_kind kind;
} weir_metric_row;

/* A table exists as long as the process: its memory is static, and so are its rows. The functions
 * run on the threads of readers; they must not register or release metrics. */
typedef struct weir_metric_table {
    const weir_metric_row *rows; /* whose names differ */
    unsigned count;
    int64_t (*read)(unsigned row);                          /* the value of a counter or gauge */
    void (*merge)(unsigned row, weir_histogram *histogram); /* adds the values of a histogram to an
                                                               empty one; NULL if there are none */
    struct weir_metric_table *next;                         /* for the registry */
} weir_metric_table;

/*
 * Registers the metrics of a table for the rest of the process.
 * Thread: any.  Keeps: table.  Fails: -EINVAL for an invalid name or kind or a missing function,
 * -ENAMETOOLONG, -EEXIST if a name is taken; then none is registered.
 */
WEIR_API int weir_metric_table_add(weir_metric_table *table);

#ifdef __cplusplus
}
#endif

#endif
