/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics, one message per interval:
 *
 *      {"type":"stats","time":MS,
 *       "loops":[{"name":"http-1#3","group":"http","is_loop":true,"utilisation":PERMILLE,
 *                 "pending":..,"tasks":..,..., "turn_ns":HISTOGRAM,"queue":HISTOGRAM}, ...],
 *       "metrics":{"channels.active{transport=\"tcp\"}":3, ...},
 *       "histograms":{"http.request_ns":{"count":..,"sum":..,"p50":..,"p99":..,"max":..,
 *                                        "buckets":HISTOGRAM}, ...},
 *       "handlers":[...]}
 *
 * HISTOGRAM is [B, N, N, ...]: N values of B bits, of B + 1 bits, and so on; [] without values.
 * All counts are totals, so a visitor that missed a message computes the same rates from the next.
 */
#include <string.h>

#include <weir/memory.h>
#include <weir/watchdog.h>

#include "dashboard/dashboard.h"
#include "dashboard/json_message.h"
#include "os/clock.h"
#include "protocol/http/metric_samples.h"

#define METRICS_MAX 500 /* without those of loops */
#define BITS_MAX 64

/* ---- histograms ---- */

/* The number of bits of a value. */
static size_t bits_of(int64_t value)
{
    return value > 0 ? (size_t)(64 - __builtin_clzll((unsigned long long)value)) : 0;
}

static void write_buckets(weir__json *json, const weir__metric_sample *sample)
{
    uint64_t counts[BITS_MAX + 1] = {0};
    size_t first = BITS_MAX, last = 0, bits;

    weir__json_open(json, '[');
    for (size_t i = 0; sample != NULL && i < sample->bucket_count; i++) {
        bits = bits_of(sample->buckets[i].upper);
        counts[bits] += sample->buckets[i].count;
        first = bits < first ? bits : first;
        last = bits;
    }
    if (first <= last)
        weir__json_int(json, (int64_t)first);
    for (size_t i = first; i <= last; i++)
        weir__json_int(json, (int64_t)counts[i]);
    weir__json_close(json, ']');
}

static void write_histogram(weir__json *json, const weir__metric_sample *sample)
{
    weir__json_open(json, '{');
    weir__json_put_int(json, "count", (int64_t)sample->summary.count);
    weir__json_put_int(json, "sum", sample->summary.sum);
    weir__json_put_int(json, "p50", sample->summary.p50);
    weir__json_put_int(json, "p99", sample->summary.p99);
    weir__json_put_int(json, "max", sample->summary.max);
    weir__json_key(json, "buckets");
    write_buckets(json, sample);
    weir__json_close(json, '}');
}

/* ---- executors ---- */

/* What is shown of an executor. */
static const struct {
    const char *family;
    const char *key;
} columns[] = {
    {"executor.utilisation_permille", "utilisation"},
    {"executor.pending", "pending"},
    {"executor.tasks_run", "tasks"},
    {"executor.timers", "timers"},
    {"executor.wakeups", "wakeups"},
    {"executor.queue_latency_ns", "queue"},
    {"executor.run_time_ns", "run"},
    {"loop.handles", "handles"},
    {"loop.events", "events"},
    {"loop.turns", "turns"},
    {"loop.turn_ns", "turn_ns"},
};

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))
#define FIRST_LOOP_COLUMN 7

struct row {
    weir_span name;  /* as in the metric: with escapes */
    weir_span group; /* data is NULL: none */
    const weir__metric_sample *samples[COLUMN_COUNT];
};

struct rows {
    struct row *all;
    size_t count;
    size_t capacity;
    size_t last; /* that was found: the next one is likely the row behind it */
};

static weir_span find_label(const weir__metric_sample *sample, const char *key)
{
    const char *at = weir__metric_sample_labels(sample);
    weir__metric_label label;

    while (weir__metric_label_next(&at, &label))
        if (weir_span_equal(label.key, weir_span_of_text(key)))
            return label.value;
    return (weir_span){0};
}

/* NULL without memory. */
static struct row *add_row(struct rows *rows, weir_span name, weir_span group)
{
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity * 2 + 16;
        struct row *all = weir_memory_realloc(rows->all, capacity * sizeof(*all));

        if (all == NULL)
            return NULL;
        rows->all = all;
        rows->capacity = capacity;
    }
    rows->last = rows->count++;
    rows->all[rows->last] = (struct row){.name = name, .group = group};
    return &rows->all[rows->last];
}

static struct row *find_row(struct rows *rows, const weir__metric_sample *sample)
{
    weir_span name = find_label(sample, "loop"), group = find_label(sample, "group");

    if (name.data == NULL)
        name = find_label(sample, "executor");
    if (name.data == NULL)
        return NULL;
    for (size_t i = 1; i <= rows->count; i++) {
        size_t at = (rows->last + i) % rows->count;

        if (weir_span_equal(rows->all[at].name, name) &&
            weir_span_equal(rows->all[at].group, group)) {
            rows->last = at;
            return &rows->all[at];
        }
    }
    return add_row(rows, name, group);
}

/* Ignores samples of other things. */
static void add_to_row(struct rows *rows, const weir__metric_sample *sample)
{
    weir_span family = weir_span_of(sample->name, sample->family_length);
    struct row *row;

    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (weir_span_equal(family, weir_span_of_text(columns[i].family))) {
            row = find_row(rows, sample);
            if (row != NULL)
                row->samples[i] = sample;
        }
}

static void write_label(weir__json *json, const char *key, weir_span value)
{
    char text[WEIR_METRIC_NAME_SIZE];

    weir__json_key(json, key);
    weir__json_span(json, value.data != NULL
                              ? weir_span_of(text, weir__metric_label_unescape(value, text))
                              : weir_span_of_text(""));
}

static void write_row(weir__json *json, const struct row *row)
{
    bool is_loop = false;

    for (size_t i = FIRST_LOOP_COLUMN; i < COLUMN_COUNT; i++)
        is_loop = is_loop || row->samples[i] != NULL;
    weir__json_open(json, '{');
    write_label(json, "name", row->name);
    write_label(json, "group", row->group);
    weir__json_put_bool(json, "is_loop", is_loop);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (row->samples[i] == NULL)
            continue;
        weir__json_key(json, columns[i].key);
        if (row->samples[i]->kind == WEIR_METRIC_HISTOGRAM)
            write_buckets(json, row->samples[i]);
        else
            weir__json_int(json, row->samples[i]->value);
    }
    weir__json_close(json, '}');
}

/* ---- everything else ---- */

static void write_metrics(weir__json *json, const weir__metric_samples *samples, bool histograms)
{
    size_t count = 0;

    weir__json_open(json, '{');
    for (size_t i = 0; i < samples->count && count < METRICS_MAX; i++) {
        const weir__metric_sample *sample = samples->all[i];

        if ((sample->kind == WEIR_METRIC_HISTOGRAM) != histograms ||
            strncmp(sample->name, "executor.", 9) == 0 || strncmp(sample->name, "loop.", 5) == 0)
            continue;
        weir__json_key_text(json, sample->name);
        if (histograms)
            write_histogram(json, sample);
        else
            weir__json_int(json, sample->value);
        count++;
    }
    weir__json_close(json, '}');
}

static void write_handler(const weir_handler_stats *stats, void *user_data)
{
    weir__json *json = user_data;

    weir__json_open(json, '{');
    weir__json_put_text(json, "name", stats->name);
    weir__json_put_int(json, "blocks", (int64_t)stats->blocks);
    weir__json_put_int(json, "blocked_ns", stats->blocked_ns);
    weir__json_put_int(json, "longest_ns", stats->longest_ns);
    weir__json_put_bool(json, "is_offloaded", stats->is_offloaded);
    weir__json_put_int(json, "moved", (int64_t)stats->moved);
    weir__json_close(json, '}');
}

static void write_samples(weir__json *json, const weir__metric_samples *samples)
{
    struct rows rows = {NULL};

    for (size_t i = 0; i < samples->count; i++)
        add_to_row(&rows, samples->all[i]);
    weir__json_key(json, "loops");
    weir__json_open(json, '[');
    for (size_t i = 0; i < rows.count; i++)
        write_row(json, &rows.all[i]);
    weir__json_close(json, ']');
    weir_memory_free(rows.all);
    weir__json_key(json, "metrics");
    write_metrics(json, samples, false);
    weir__json_key(json, "histograms");
    write_metrics(json, samples, true);
}

weir_ws_message *weir__dashboard_stats_message(void)
{
    weir__metric_samples samples;
    weir__json json;

    if (weir__json_message_begin(&json, "stats") < 0)
        return NULL;
    weir__json_put_int(&json, "time", weir_time_of_day() / 1000000);
    json.err = weir__metric_samples_read(&samples);
    if (json.err == 0) {
        write_samples(&json, &samples);
        weir__metric_samples_deinit(&samples);
    }
    weir__json_key(&json, "handlers");
    weir__json_open(&json, '[');
    weir_handler_stats_foreach(write_handler, &json);
    weir__json_close(&json, ']');
    return weir__json_message_end(&json);
}
