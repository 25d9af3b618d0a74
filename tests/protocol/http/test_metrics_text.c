/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in the formats of Prometheus: names, units, escapes, histograms, order, collisions.
 * The families of the tests begin with "m.", so that others of the process do not matter.
 */
#include <weir/http_metrics.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/memory.h"
#include "support/test.h"

static weir_metric *create(enum weir_metric_kind kind, const char *name)
{
    weir_metric *metric = NULL;

    assert_int_equal(weir_metric_create(kind, name, &metric), 0);
    return metric;
}

static weir_metric *create_gauge(const char *name, int64_t value)
{
    weir_metric *metric = create(WEIR_METRIC_GAUGE, name);

    assert_int_equal(weir_metric_set(metric, value), 0);
    return metric;
}

/* All metrics as text, which is to be freed with its buffer. */
static weir_buf *write_text(enum weir_metrics_format format, const char **ret_text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(1024, 0, &buf), 0);
    assert_int_equal(weir_metrics_write(buf, format), 0);
    assert_int_equal(weir_buf_write_u8(buf, 0), 0);
    *ret_text = (const char *)weir_buf_bytes(buf);
    return buf;
}

static bool is_of_test(const char *line)
{
    if (line[0] == '#')
        line += strlen("# HELP ");
    return line[0] == 'm' && line[1] == '_';
}

/* Compares the lines of families that begin with "m_". */
static void assert_lines(enum weir_metrics_format format, const char *expected)
{
    char lines[8192];
    const char *text;
    size_t length = 0;
    weir_buf *buf = write_text(format, &text);

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (is_of_test(line)) {
            assert_true(length + (size_t)(end - line) + 2 < sizeof(lines));
            memcpy(lines + length, line, (size_t)(end - line) + 1);
            length += (size_t)(end - line) + 1;
        }
    lines[length] = '\0';
    assert_string_equal(lines, expected);
    weir_buf_release(buf);
}

static void release_all(weir_metric **metrics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weir_metric_release(metrics[i]);
}

TEST(metrics_text, a_counter_ends_in_total)
{
    weir_metric *metrics[] = {create(WEIR_METRIC_COUNTER, "m.answers"),
                              create(WEIR_METRIC_COUNTER, "m.words_total")};

    weir_metric_add(metrics[0], 12);
    assert_lines(WEIR_METRICS_PROMETHEUS, "# HELP m_answers_total Metric m.answers\n"
                                          "# TYPE m_answers_total counter\n"
                                          "m_answers_total 12\n"
                                          "# HELP m_words_total Metric m.words_total\n"
                                          "# TYPE m_words_total counter\n"
                                          "m_words_total 0\n");
    assert_lines(WEIR_METRICS_OPENMETRICS, "# HELP m_answers Metric m.answers\n"
                                           "# TYPE m_answers counter\n"
                                           "m_answers_total 12\n"
                                           "# HELP m_words Metric m.words_total\n"
                                           "# TYPE m_words counter\n"
                                           "m_words_total 0\n");
    release_all(metrics, 2);
}

TEST(metrics_text, units_are_base_units)
{
    weir_metric *metrics[] = {
        create_gauge("m.a_ns", 1500000000),     create_gauge("m.b_ns", -1),
        create_gauge("m.c_ns", 86400000000000), create_gauge("m.d_permille", 250),
        create_gauge("m.e_bytes", 4096),        create_gauge("m.f_ns", INT64_MIN),
        create(WEIR_METRIC_COUNTER, "m.g_ns"),
    };

    weir_metric_add(metrics[6], 70);
    assert_lines(WEIR_METRICS_OPENMETRICS,
                 "# HELP m_a_seconds Metric m.a_ns\n# TYPE m_a_seconds gauge\n"
                 "# UNIT m_a_seconds seconds\nm_a_seconds 1.5\n"
                 "# HELP m_b_seconds Metric m.b_ns\n# TYPE m_b_seconds gauge\n"
                 "# UNIT m_b_seconds seconds\nm_b_seconds -0.000000001\n"
                 "# HELP m_c_seconds Metric m.c_ns\n# TYPE m_c_seconds gauge\n"
                 "# UNIT m_c_seconds seconds\nm_c_seconds 86400\n"
                 "# HELP m_d_ratio Metric m.d_permille\n# TYPE m_d_ratio gauge\n"
                 "# UNIT m_d_ratio ratio\nm_d_ratio 0.25\n"
                 "# HELP m_e_bytes Metric m.e_bytes\n# TYPE m_e_bytes gauge\n"
                 "# UNIT m_e_bytes bytes\nm_e_bytes 4096\n"
                 "# HELP m_f_seconds Metric m.f_ns\n# TYPE m_f_seconds gauge\n"
                 "# UNIT m_f_seconds seconds\nm_f_seconds -9223372036.854775808\n"
                 "# HELP m_g_seconds Metric m.g_ns\n# TYPE m_g_seconds counter\n"
                 "# UNIT m_g_seconds seconds\nm_g_seconds_total 0.00000007\n");
    release_all(metrics, 7);
}

TEST(metrics_text, odd_characters_of_names_become_underscores)
{
    weir_metric *metrics[] = {create_gauge("m.a-b#c.d", 1), create_gauge("9.lives", 2)};
    const char *text;
    weir_buf *buf;

    assert_lines(WEIR_METRICS_PROMETHEUS,
                 "# HELP m_a_b_c_d Metric m.a-b#c.d\n# TYPE m_a_b_c_d gauge\nm_a_b_c_d 1\n");
    buf = write_text(WEIR_METRICS_PROMETHEUS, &text);
    assert_non_null(strstr(text, "\n_9_lives 2\n"));
    weir_buf_release(buf);
    release_all(metrics, 2);
}

TEST(metrics_text, labels_are_escaped_and_utf8)
{
    weir_metric *metrics[] = {
        create_gauge("m.x{a=\"q\\\"b\\\\s\\n\",b=\"caf\xc3\xa9\"}", 1),
        create_gauge("m.y{a=\"caf\xe9\"}", 2),
    };

    assert_lines(WEIR_METRICS_PROMETHEUS,
                 "# HELP m_x Metric m.x\n# TYPE m_x gauge\n"
                 "m_x{a=\"q\\\"b\\\\s\\n\",b=\"caf\xc3\xa9\"} 1\n"
                 "# HELP m_y Metric m.y\n# TYPE m_y gauge\nm_y{a=\"caf?\"} 2\n");
    release_all(metrics, 2);
}

TEST(metrics_text, a_family_is_described_once_and_sorted)
{
    weir_metric *metrics[] = {create_gauge("m.s{k=\"2\"}", 2), create_gauge("m.t", 4),
                              create_gauge("m.s{k=\"1\"}", 1), create_gauge("m.s", 3)};

    assert_lines(WEIR_METRICS_PROMETHEUS, "# HELP m_s Metric m.s\n# TYPE m_s gauge\n"
                                          "m_s 3\nm_s{k=\"1\"} 1\nm_s{k=\"2\"} 2\n"
                                          "# HELP m_t Metric m.t\n# TYPE m_t gauge\nm_t 4\n");
    release_all(metrics, 4);
}

/* Readers reject a text with two equal series, or with one family of two types. */
TEST(metrics_text, one_of_several_equal_names_is_exported)
{
    weir_metric *metrics[] = {
        create_gauge("m.a.b", 1),         create_gauge("m.a_b", 2),
        create_gauge("m.c.d", 3),         create(WEIR_METRIC_COUNTER, "m.c_d"),
        create_gauge("m.a#b{k=\"\"}", 4),
    };

    assert_lines(WEIR_METRICS_PROMETHEUS,
                 "# HELP m_a_b Metric m.a.b\n# TYPE m_a_b gauge\nm_a_b 1\nm_a_b{k=\"\"} 4\n"
                 "# HELP m_c_d Metric m.c.d\n# TYPE m_c_d gauge\nm_c_d 3\n");
    release_all(metrics, 5);
}

/* ---- histograms ---- */

/* The number behind a series, or -1. */
static long long value_of(const char *text, const char *series)
{
    const char *at = text;
    size_t length = strlen(series);
    long long value;

    while ((at = strstr(at, series)) != NULL) {
        if (at[-1] == '\n' && at[length] == ' ' && sscanf(at + length, "%lld", &value) == 1)
            return value;
        at++;
    }
    return -1;
}

TEST(metrics_text, buckets_are_cumulative)
{
    weir_metric *metric = create(WEIR_METRIC_HISTOGRAM, "m.size{k=\"v\"}");
    const char *text;
    weir_buf *buf;

    for (int64_t i = 0; i < 5; i++)
        weir_metric_record(metric, i); /* 0 1 2 3 4 */
    weir_metric_record(metric, INT64_C(1) << 30);
    buf = write_text(WEIR_METRICS_PROMETHEUS, &text);
    assert_non_null(strstr(text, "\n# TYPE m_size histogram\n"));
    assert_int_equal(value_of(text, "m_size_bucket{k=\"v\",le=\"0.0\"}"), 1);
    assert_int_equal(value_of(text, "m_size_bucket{k=\"v\",le=\"1.0\"}"), 2);
    assert_int_equal(value_of(text, "m_size_bucket{k=\"v\",le=\"3.0\"}"), 4);
    assert_int_equal(value_of(text, "m_size_bucket{k=\"v\",le=\"7.0\"}"), 5);
    assert_int_equal(value_of(text, "m_size_bucket{k=\"v\",le=\"1048575.0\"}"), 5);
    assert_int_equal(value_of(text, "m_size_bucket{k=\"v\",le=\"+Inf\"}"), 6);
    assert_int_equal(value_of(text, "m_size_count{k=\"v\"}"), 6);
    assert_int_equal(value_of(text, "m_size_sum{k=\"v\"}"), 10 + (1 << 30));
    weir_buf_release(buf);
    weir_metric_release(metric);
}

TEST(metrics_text, times_have_bounds_in_seconds)
{
    weir_metric *metric = create(WEIR_METRIC_HISTOGRAM, "m.time_ns");
    const char *text;
    weir_buf *buf;

    weir_metric_record(metric, 1023);
    weir_metric_record(metric, 1024);
    weir_metric_record(metric, INT64_C(3600) * 1000000000);
    buf = write_text(WEIR_METRICS_OPENMETRICS, &text);
    assert_int_equal(value_of(text, "m_time_seconds_bucket{le=\"0.000001023\"}"), 1);
    assert_int_equal(value_of(text, "m_time_seconds_bucket{le=\"0.000002047\"}"), 2);
    assert_int_equal(value_of(text, "m_time_seconds_bucket{le=\"68.719476735\"}"), 2);
    assert_int_equal(value_of(text, "m_time_seconds_bucket{le=\"+Inf\"}"), 3);
    assert_int_equal(value_of(text, "m_time_seconds_count"), 3);
    assert_non_null(strstr(text, "\nm_time_seconds_sum 3600.000002047\n"));
    assert_non_null(strstr(text, "\n# UNIT m_time_seconds seconds\n"));
    weir_buf_release(buf);
    weir_metric_release(metric);
}

/* ---- the whole text ---- */

TEST(metrics_text, openmetrics_has_an_end)
{
    const char *text;
    weir_buf *buf = write_text(WEIR_METRICS_OPENMETRICS, &text);

    assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
    weir_buf_release(buf);
    buf = write_text(WEIR_METRICS_PROMETHEUS, &text);
    assert_null(strstr(text, "# EOF"));
    weir_buf_release(buf);
}

/* A family without a help text of the library is exported as a user's. */
TEST(metrics_text, all_families_of_the_library_have_a_help_text)
{
    const char *text;
    weir_buf *buf = write_text(WEIR_METRICS_PROMETHEUS, &text);
    const char *unknown = strstr(text, " Metric ");

    if (unknown != NULL)
        fail_msg("no help text: %.60s", unknown);
    assert_non_null(strstr(text, "\n# TYPE weir_http_requests_total counter\n"));
    assert_non_null(strstr(text, "\n# TYPE weir_http_request_seconds histogram\n"));
    assert_non_null(strstr(text, "\n# TYPE process_cpu_seconds_total counter\n"));
    assert_non_null(strstr(text, "\n# TYPE process_start_time_seconds gauge\n"));
    assert_non_null(strstr(text, "\n# TYPE weir_watchdog_blocks_total counter\n"));
    assert_non_null(strstr(text, "\nweir_build_info{version=\""));
    weir_buf_release(buf);
}

TEST(metrics_text, appends_or_fails_without_a_change)
{
    weir_buf *buf = NULL, *small = NULL;

    assert_int_equal(weir_buf_create_from("before", 6, &buf), 0);
    assert_int_equal(weir_metrics_write(buf, (enum weir_metrics_format)3), -EINVAL);
    assert_int_equal(weir_buf_readable(buf), 6);
    assert_int_equal(weir_metrics_write(buf, WEIR_METRICS_PROMETHEUS), 0);
    assert_memory_equal(weir_buf_bytes(buf), "before# HELP ", 13);
    weir_buf_release(buf);

    assert_int_equal(weir_buf_create(16, 2000, &small), 0);
    assert_int_equal(weir_buf_write_bytes(small, "before", 6), 0);
    assert_int_equal(weir_metrics_write(small, WEIR_METRICS_PROMETHEUS), WEIR_EBOUNDS);
    assert_int_equal(weir_metrics_write(small, WEIR_METRICS_JSON), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_readable(small), 6);
    weir_buf_release(small);
}

TEST(metrics_text, without_memory_nothing_is_appended)
{
    static const enum weir_metrics_format formats[] = {WEIR_METRICS_PROMETHEUS, WEIR_METRICS_JSON};
    weir_metric *metric = create(WEIR_METRIC_HISTOGRAM, "m.memory");

    weir_metric_record(metric, 5);
    for (int i = 0; i < 2; i++)
        for (unsigned n = 1;; n++) {
            weir_buf *buf = NULL;
            int err;

            assert_int_equal(weir_buf_create(16, 0, &buf), 0);
            test_memory_fail_at(n);
            err = weir_metrics_write(buf, formats[i]);
            if (!test_memory_failed()) {
                test_memory_fail_at(0);
                assert_int_equal(err, 0);
                weir_buf_release(buf);
                break;
            }
            test_memory_fail_at(0);
            assert_int_equal(err, -ENOMEM);
            assert_int_equal(weir_buf_readable(buf), 0);
            weir_buf_release(buf);
            if (n > 20)
                n += 40; /* further metrics are as the first ones */
        }
    weir_metric_release(metric);
}

#define SERIES 2000

TEST(metrics_text, writes_thousands_of_series)
{
    static weir_metric *metrics[SERIES];
    const char *text;
    weir_buf *buf;
    size_t count = 0;
    char name[64];

    for (int i = 0; i < SERIES; i++) {
        snprintf(name, sizeof(name), "m.many{number=\"%d\"}", i);
        metrics[i] = create_gauge(name, i);
    }
    buf = write_text(WEIR_METRICS_PROMETHEUS, &text);
    for (const char *at = text; (at = strstr(at, "\nm_many{")) != NULL; at++)
        count++;
    assert_int_equal(count, SERIES);
    assert_int_equal(value_of(text, "m_many{number=\"1999\"}"), 1999);
    weir_buf_release(buf);
    release_all(metrics, SERIES);
}
