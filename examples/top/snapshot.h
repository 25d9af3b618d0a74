/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a program at one time, as weir_metrics_write wrote them in JSON.
 */
#ifndef EXAMPLES_TOP_SNAPSHOT_H
#define EXAMPLES_TOP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABELS_MAX 4

struct label {
    const char *key;
    const char *value;
};

struct bucket {
    int64_t upper;
    uint64_t count; /* of this bucket alone */
};

struct metric {
    const char *name; /* "executor.pending" */
    struct label labels[LABELS_MAX];
    size_t label_count;
    int64_t value;          /* of a histogram: the number of values */
    struct bucket *buckets; /* of a histogram, in ascending order */
    size_t bucket_count;
};

struct snapshot {
    double time;            /* seconds since 1970 */
    struct metric *metrics; /* in the order of their names */
    size_t count, capacity;
    char *text; /* the strings */
};

/* NULL if the text is not such JSON, or there is no memory. */
struct snapshot *snapshot_parse(const void *json, size_t length);

/* NULL is ignored. */
void snapshot_free(struct snapshot *snapshot);

/* The value of a label, or NULL. */
const char *metric_label(const struct metric *metric, const char *key);

/* The metric of this name whose label has this value, or NULL; `key` NULL = any. */
const struct metric *snapshot_find(const struct snapshot *snapshot, const char *name,
                                   const char *key, const char *value);

/* The sum of the metrics of this name whose label has this value; `key` NULL = of all. */
int64_t snapshot_sum(const struct snapshot *snapshot, const char *name, const char *key,
                     const char *value);

/* A distribution: upper bounds of buckets. */
struct spread {
    uint64_t count; /* 0 = no values: the rest is 0 */
    int64_t p50, p99, max;
};

/* Of the values that a histogram recorded since `before`, which may be NULL, as may `now`. */
struct spread spread_between(const struct metric *before, const struct metric *now);

#endif
