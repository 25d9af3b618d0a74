/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as JSON, for programs that show them: the values are those of the registry. */
#include "protocol/http/metric_samples.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "protocol/http/json_writer.h"

static void write_int(weir__json *json, const char *key, int64_t value)
{
    weir__json_key(json, key);
    weir__json_int(json, value);
}

static void write_labels(weir__json *json, const char *labels)
{
    char text[WEIR_METRIC_NAME_SIZE];
    weir__metric_label label;

    weir__json_key(json, "labels");
    weir__json_open(json, '{');
    while (weir__metric_label_next(&labels, &label)) {
        (void)snprintf(text, sizeof(text), "%.*s", (int)label.key.length,
                       (const char *)label.key.data);
        weir__json_key(json, text);
        weir__json_span(json, weir_span_of(text, weir__metric_label_unescape(label.value, text)));
    }
    weir__json_close(json, '}');
}

static void write_histogram(weir__json *json, const weir__metric_sample *sample)
{
    write_int(json, "count", (int64_t)sample->summary.count);
    write_int(json, "sum", sample->summary.sum);
    write_int(json, "min", sample->summary.min);
    write_int(json, "max", sample->summary.max);
    write_int(json, "p50", sample->summary.p50);
    write_int(json, "p90", sample->summary.p90);
    write_int(json, "p99", sample->summary.p99);
    write_int(json, "p999", sample->summary.p999);
    weir__json_key(json, "buckets");
    weir__json_open(json, '[');
    for (size_t i = 0; i < sample->bucket_count; i++) {
        weir__json_open(json, '[');
        weir__json_int(json, sample->buckets[i].upper);
        weir__json_int(json, (int64_t)sample->buckets[i].count);
        weir__json_close(json, ']');
    }
    weir__json_close(json, ']');
}

static void write_sample(weir__json *json, const weir__metric_sample *sample)
{
    static const char *const kinds[] = {
        [WEIR_METRIC_COUNTER] = "counter",
        [WEIR_METRIC_GAUGE] = "gauge",
        [WEIR_METRIC_HISTOGRAM] = "histogram",
    };

    weir__json_open(json, '{');
    weir__json_key(json, "name");
    weir__json_span(json, weir_span_of(sample->name, sample->family_length));
    write_labels(json, weir__metric_sample_labels(sample));
    weir__json_key(json, "kind");
    weir__json_text(json, kinds[sample->kind]);
    if (sample->kind == WEIR_METRIC_HISTOGRAM)
        write_histogram(json, sample);
    else
        write_int(json, "value", sample->value);
    weir__json_close(json, '}');
}

static void write_time(weir__json *json)
{
    int64_t now_ns = weir_time_of_day();
    char text[32];
    int length = snprintf(text, sizeof(text), "%lld.%03lld", (long long)(now_ns / 1000000000),
                          (long long)(now_ns / 1000000 % 1000));

    weir__json_key(json, "time");
    weir__json_raw(json, weir_span_of(text, (size_t)length));
}

int weir__metrics_write_json(weir_buf *buf, const weir__metric_samples *samples)
{
    weir__json json = {buf};

    weir__json_open(&json, '{');
    write_time(&json);
    weir__json_key(&json, "metrics");
    weir__json_open(&json, '[');
    for (size_t i = 0; i < samples->count; i++)
        write_sample(&json, samples->all[i]);
    weir__json_close(&json, ']');
    weir__json_close(&json, '}');
    return json.err;
}
