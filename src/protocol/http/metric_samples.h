/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of all metrics, sorted, to be written in one of the formats of weir/http_metrics.h.
 */
#ifndef WEIR_PROTOCOL_HTTP_METRIC_SAMPLES_H
#define WEIR_PROTOCOL_HTTP_METRIC_SAMPLES_H

#include <weir/buf.h>
#include <weir/metric.h>

typedef struct weir__metric_bucket {
    int64_t upper;
    uint64_t count; /* of this bucket alone */
} weir__metric_bucket;

typedef struct weir__metric_sample {
    enum weir_metric_kind kind;
    int64_t value;
    weir_histogram_summary summary;
    const char *exported; /* the family in the formats of Prometheus, without "_total" */
    const char *help;
    size_t family_length;
    size_t bucket_count;
    const weir__metric_bucket *buckets; /* those that are not empty, ascending */
    char name[];                        /* with its labels; then `exported` */
} weir__metric_sample;

typedef struct weir__metric_samples {
    size_t count;
    size_t capacity;
    int err;
    weir__metric_sample **all; /* by `exported`, then by labels */
} weir__metric_samples;

/* Copies all metrics. Fails: -ENOMEM. */
int weir__metric_samples_read(weir__metric_samples *ret_samples);
void weir__metric_samples_deinit(weir__metric_samples *samples);

/* The labels of a sample, "" or "{...}". */
static inline const char *weir__metric_sample_labels(const weir__metric_sample *sample)
{
    return sample->name + sample->family_length;
}

/* A label. `value` is as in the name: with escapes. */
typedef struct weir__metric_label {
    weir_span key;
    weir_span value;
} weir__metric_label;

/* Reads the label at `*at`, which begins at the labels of a sample, and moves it to the next. False
 * if there is none. */
bool weir__metric_label_next(const char **at, weir__metric_label *ret_label);

/* Writes the value without escapes; the result is not longer. Returns its length. */
size_t weir__metric_label_unescape(weir_span value, char *ret_text);

/* The help text of a family of the library, or NULL. */
const char *weir__metric_help(weir_span family);

/* The writers of the formats. They fail as weir_metrics_write. */
int weir__metrics_write_json(weir_buf *buf, const weir__metric_samples *samples);
int weir__metrics_write_text(weir_buf *buf, const weir__metric_samples *samples,
                             bool is_openmetrics);

#endif
