/* SPDX-License-Identifier: Apache-2.0 */
#include "top/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "top/json.h"

#define METRICS_MAX 100000
#define BUCKETS_MAX 1000

/* ---- parsing ---- */

/* Makes room for one more element. */
static bool grow(void **array, size_t count, size_t *capacity, size_t size, size_t max)
{
    size_t more = *capacity > 0 ? 2 * *capacity : 16;
    void *grown;

    if (count < *capacity)
        return true;
    if (count >= max)
        return false;
    grown = realloc(*array, more * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = more;
    return true;
}

static void read_labels(struct json *json, struct metric *metric)
{
    json_open(json, '{');
    while (json_next(json, '}')) {
        struct label label = {json_key(json), NULL};

        label.value = json_text(json);
        if (metric->label_count < LABELS_MAX)
            metric->labels[metric->label_count++] = label;
    }
}

static struct bucket read_bucket(struct json *json)
{
    struct bucket bucket = {0};

    json_open(json, '[');
    if (json_next(json, ']'))
        bucket.upper = json_int(json);
    if (json_next(json, ']'))
        bucket.count = (uint64_t)json_int(json);
    if (json_next(json, ']'))
        json->failed = true;
    return bucket;
}

static void read_buckets(struct json *json, struct metric *metric)
{
    void *buckets = metric->buckets;
    size_t capacity = 0;

    json_open(json, '[');
    while (json_next(json, ']')) {
        if (buckets != NULL && capacity == 0) { /* buckets twice */
            json->failed = true;
            return;
        }
        if (!grow(&buckets, metric->bucket_count, &capacity, sizeof(struct bucket), BUCKETS_MAX))
            json->failed = true;
        else
            ((struct bucket *)buckets)[metric->bucket_count++] = read_bucket(json);
        metric->buckets = buckets;
    }
}

static void read_metric(struct json *json, struct metric *metric)
{
    json_open(json, '{');
    while (json_next(json, '}')) {
        const char *key = json_key(json);

        if (strcmp(key, "name") == 0)
            metric->name = json_text(json);
        else if (strcmp(key, "labels") == 0)
            read_labels(json, metric);
        else if (strcmp(key, "value") == 0 || strcmp(key, "count") == 0)
            metric->value = json_int(json);
        else if (strcmp(key, "buckets") == 0)
            read_buckets(json, metric);
        else
            json_skip(json);
    }
}

static void read_metrics(struct json *json, struct snapshot *snapshot)
{
    json_open(json, '[');
    while (json_next(json, ']')) {
        void *metrics = snapshot->metrics;

        if (!grow(&metrics, snapshot->count, &snapshot->capacity, sizeof(struct metric),
                  METRICS_MAX)) {
            json->failed = true;
            return;
        }
        snapshot->metrics = metrics;
        snapshot->metrics[snapshot->count] = (struct metric){.name = ""};
        read_metric(json, &snapshot->metrics[snapshot->count++]);
    }
}

/* False without a time and metrics. */
static bool read_snapshot(struct snapshot *snapshot)
{
    struct json json = {.at = snapshot->text};
    bool has_metrics = false;

    json_open(&json, '{');
    while (json_next(&json, '}')) {
        const char *key = json_key(&json);

        if (strcmp(key, "time") == 0) {
            snapshot->time = json_double(&json);
        } else if (strcmp(key, "metrics") == 0) {
            read_metrics(&json, snapshot);
            has_metrics = true;
        } else {
            json_skip(&json);
        }
    }
    return !json.failed && has_metrics && snapshot->time > 0;
}

static int compare_metrics(const void *left, const void *right)
{
    const struct metric *a = left, *b = right;

    return strcmp(a->name, b->name);
}

struct snapshot *snapshot_parse(const void *json, size_t length)
{
    struct snapshot *snapshot;

    if (!weir_span_is_utf8(weir_span_of(json, length)))
        return NULL;
    snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL)
        return NULL;
    snapshot->text = malloc(length + 1);
    if (snapshot->text != NULL) {
        memcpy(snapshot->text, json, length);
        snapshot->text[length] = '\0';
        if (read_snapshot(snapshot)) {
            if (snapshot->count > 0)
                qsort(snapshot->metrics, snapshot->count, sizeof(*snapshot->metrics),
                      compare_metrics);
            return snapshot;
        }
    }
    snapshot_free(snapshot);
    return NULL;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    for (size_t i = 0; i < snapshot->count; i++)
        free(snapshot->metrics[i].buckets);
    free(snapshot->metrics);
    free(snapshot->text);
    free(snapshot);
}

/* ---- reading ---- */

const char *metric_label(const struct metric *metric, const char *key)
{
    for (size_t i = 0; i < metric->label_count; i++)
        if (strcmp(metric->labels[i].key, key) == 0)
            return metric->labels[i].value;
    return NULL;
}

/* The first metric of a name, or the one behind where it would be. */
static size_t find_first(const struct snapshot *snapshot, const char *name)
{
    size_t from = 0, to = snapshot->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (strcmp(snapshot->metrics[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool has_label(const struct metric *metric, const char *key, const char *value)
{
    const char *found = key != NULL ? metric_label(metric, key) : NULL;

    return key == NULL || (found != NULL && strcmp(found, value) == 0);
}

/* The next metric of this name with the label, from an index on; NULL = there is none. */
static const struct metric *find_next(const struct snapshot *snapshot, size_t *index,
                                      const char *name, const char *key, const char *value)
{
    while (*index < snapshot->count && strcmp(snapshot->metrics[*index].name, name) == 0) {
        const struct metric *metric = &snapshot->metrics[(*index)++];

        if (has_label(metric, key, value))
            return metric;
    }
    return NULL;
}

const struct metric *snapshot_find(const struct snapshot *snapshot, const char *name,
                                   const char *key, const char *value)
{
    size_t index = find_first(snapshot, name);

    return find_next(snapshot, &index, name, key, value);
}

int64_t snapshot_sum(const struct snapshot *snapshot, const char *name, const char *key,
                     const char *value)
{
    size_t index = find_first(snapshot, name);
    const struct metric *metric;
    int64_t sum = 0;

    while ((metric = find_next(snapshot, &index, name, key, value)) != NULL)
        sum += metric->value;
    return sum;
}

/* ---- histograms ---- */

/* The values of a bucket that are new. */
static uint64_t count_new(const struct metric *before, const struct bucket *bucket)
{
    uint64_t old = 0;

    for (size_t i = 0; before != NULL && i < before->bucket_count; i++)
        if (before->buckets[i].upper == bucket->upper)
            old = before->buckets[i].count;
    return bucket->count > old ? bucket->count - old : 0;
}

struct spread spread_between(const struct metric *before, const struct metric *now)
{
    struct spread spread = {0};
    uint64_t passed = 0;

    for (size_t i = 0; now != NULL && i < now->bucket_count; i++)
        spread.count += count_new(before, &now->buckets[i]);
    for (size_t i = 0; now != NULL && i < now->bucket_count; i++) {
        uint64_t count = count_new(before, &now->buckets[i]);

        if (count == 0)
            continue;
        if (passed * 100 < spread.count * 50)
            spread.p50 = now->buckets[i].upper;
        if (passed * 100 < spread.count * 99)
            spread.p99 = now->buckets[i].upper;
        spread.max = now->buckets[i].upper;
        passed += count;
    }
    return spread;
}
