/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in the text format 0.0.4 of Prometheus, and in OpenMetrics 1.0.0, which differs in
 * little: the metadata of a counter is without "_total", there are units, and there is an end.
 */
#include "protocol/http/metric_samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct text {
    weir_buf *buf;
    bool is_openmetrics;
    int err;
};

/* The unit of a family: the last part of its name. */
struct unit {
    const char *suffix;
    const char *name;
    unsigned digits;                  /* of the registry's value behind the decimal point */
    unsigned first_power, last_power; /* bounds of a histogram: a power of two minus 1 */
};

static const struct unit units[] = {
    {"_seconds", "seconds", 9, 10, 36}, /* 1 us to 68 s */
    {"_ratio", "ratio", 3, 0, 10},
    {"_bytes", "bytes", 0, 6, 30},
};

static const struct unit no_unit = {"", NULL, 0, 0, 20};

static const struct unit *unit_of(const char *exported)
{
    size_t length = strlen(exported);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t suffix = strlen(units[i].suffix);

        if (length > suffix && strcmp(exported + length - suffix, units[i].suffix) == 0)
            return &units[i];
    }
    return &no_unit;
}

static void append(struct text *text, const char *bytes, size_t length)
{
    if (text->err == 0)
        text->err = weir_buf_write_bytes(text->buf, bytes, length);
}

static void append_text(struct text *text, const char *string)
{
    append(text, string, strlen(string));
}

/* Room for a number of 64 bits, a sign and a decimal point. */
#define NUMBER_SIZE 32

/* Writes a number with up to `digits` digits behind the decimal point, without loss. */
static size_t format_number(char ret_text[NUMBER_SIZE], int64_t value, unsigned digits)
{
    uint64_t scale = 1, magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int length;

    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    length = snprintf(ret_text, NUMBER_SIZE, "%s%" PRIu64, value < 0 ? "-" : "", magnitude / scale);
    if (magnitude % scale == 0)
        return (size_t)length;
    length += snprintf(ret_text + length, NUMBER_SIZE - (size_t)length, ".%0*" PRIu64, (int)digits,
                       magnitude % scale);
    while (ret_text[length - 1] == '0')
        length--;
    return (size_t)length;
}

/* ---- metadata ---- */

static void write_metadata(struct text *text, const weir__metric_sample *sample)
{
    static const char *const types[] = {
        [WEIR_METRIC_COUNTER] = " counter\n",
        [WEIR_METRIC_GAUGE] = " gauge\n",
        [WEIR_METRIC_HISTOGRAM] = " histogram\n",
    };
    const char *unit = unit_of(sample->exported)->name;
    const char *total =
        sample->kind == WEIR_METRIC_COUNTER && !text->is_openmetrics ? "_total" : "";

    append_text(text, "# HELP ");
    append_text(text, sample->exported);
    append_text(text, total);
    if (sample->help != NULL) {
        append_text(text, " ");
        append_text(text, sample->help);
    } else {
        append_text(text, " Metric ");
        append(text, sample->name, sample->family_length);
    }
    append_text(text, "\n# TYPE ");
    append_text(text, sample->exported);
    append_text(text, total);
    append_text(text, types[sample->kind]);
    if (text->is_openmetrics && unit != NULL) {
        append_text(text, "# UNIT ");
        append_text(text, sample->exported);
        append_text(text, " ");
        append_text(text, unit);
        append_text(text, "\n");
    }
}

/* ---- samples ---- */

/* Appends "name{labels} ", with the label `le` unless it is NULL. */
static void write_series(struct text *text, const weir__metric_sample *sample, const char *suffix,
                         const char *le)
{
    const char *labels = weir__metric_sample_labels(sample);
    size_t length = strlen(labels);

    append_text(text, sample->exported);
    append_text(text, suffix);
    if (le == NULL) {
        append(text, labels, length);
    } else {
        append(text, length > 0 ? labels : "{", length > 0 ? length - 1 : 1);
        append_text(text, length > 0 ? ",le=\"" : "le=\"");
        append_text(text, le);
        append_text(text, "\"}");
    }
    append_text(text, " ");
}

static void write_value(struct text *text, int64_t value, unsigned digits)
{
    char number[NUMBER_SIZE];

    append(text, number, format_number(number, value, digits));
    append_text(text, "\n");
}

/* Bounds are written as floating-point numbers in both formats: they identify a series. */
static void format_bound(char ret_le[NUMBER_SIZE + 2], int64_t bound, unsigned digits)
{
    size_t length = format_number(ret_le, bound, digits);

    ret_le[length] = '\0';
    if (strchr(ret_le, '.') == NULL)
        memcpy(ret_le + length, ".0", sizeof(".0"));
}

static void write_histogram(struct text *text, const weir__metric_sample *sample)
{
    const struct unit *unit = unit_of(sample->exported);
    char le[NUMBER_SIZE + 2];
    uint64_t count = 0;
    size_t next = 0;

    for (unsigned power = unit->first_power; power <= unit->last_power; power++) {
        int64_t bound = (INT64_C(1) << power) - 1;

        for (; next < sample->bucket_count && sample->buckets[next].upper <= bound; next++)
            count += sample->buckets[next].count;
        format_bound(le, bound, unit->digits);
        write_series(text, sample, "_bucket", le);
        write_value(text, (int64_t)count, 0);
    }
    write_series(text, sample, "_bucket", "+Inf");
    write_value(text, sample->value, 0);
    write_series(text, sample, "_sum", NULL);
    write_value(text, sample->summary.sum, unit->digits);
    write_series(text, sample, "_count", NULL);
    write_value(text, sample->value, 0);
}

static void write_sample(struct text *text, const weir__metric_sample *sample)
{
    if (sample->kind == WEIR_METRIC_HISTOGRAM) {
        write_histogram(text, sample);
        return;
    }
    write_series(text, sample, sample->kind == WEIR_METRIC_COUNTER ? "_total" : "", NULL);
    write_value(text, sample->value, unit_of(sample->exported)->digits);
}

/*
 * Names that differ in the registry may be the same when exported: "a.b" and "a_b". The first one
 * is written; the others are left out if they are of another kind or have the same labels, which
 * readers would reject together with everything else.
 */
int weir__metrics_write_text(weir_buf *buf, const weir__metric_samples *samples,
                             bool is_openmetrics)
{
    struct text text = {.buf = buf, .is_openmetrics = is_openmetrics};
    const weir__metric_sample *first = NULL, *last = NULL; /* of the family that is written */

    for (size_t i = 0; i < samples->count; i++) {
        const weir__metric_sample *sample = samples->all[i];

        if (first == NULL || strcmp(first->exported, sample->exported) != 0) {
            write_metadata(&text, sample);
            first = sample;
        } else if (sample->kind != first->kind || strcmp(weir__metric_sample_labels(sample),
                                                         weir__metric_sample_labels(last)) == 0) {
            continue;
        }
        write_sample(&text, sample);
        last = sample;
    }
    if (is_openmetrics)
        append_text(&text, "# EOF\n");
    return text.err;
}
