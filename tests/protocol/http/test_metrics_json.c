/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry as JSON: values, escapes, names.
 */
#include <weir/http_metrics.h>

#include <stdio.h>
#include <string.h>

#include "support/test.h"

static weir_buf *write_json(const char **ret_text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(1024, 0, &buf), 0);
    assert_int_equal(weir_metrics_write(buf, WEIR_METRICS_JSON), 0);
    assert_int_equal(weir_buf_write_u8(buf, 0), 0);
    *ret_text = (const char *)weir_buf_bytes(buf);
    return buf;
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no %s in %s", part, text);
}

TEST(metrics_json, values_are_those_of_the_registry)
{
    weir_metric *gauge = NULL, *histogram = NULL;
    const char *text;
    weir_buf *buf;

    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE,
                                        "m.time_ns{a=\"q\\\"b\\\\s\\n\",b=\"caf\xe9\"}", &gauge),
                     0);
    assert_int_equal(weir_metric_create(WEIR_METRIC_HISTOGRAM, "m.size", &histogram), 0);
    weir_metric_set(gauge, -1500);
    weir_metric_record(histogram, 3);
    weir_metric_record(histogram, 3);
    weir_metric_record(histogram, 100);
    buf = write_json(&text);
    assert_contains(text, "{\"name\":\"m.time_ns\",\"labels\":{\"a\":\"q\\\"b\\\\s\\u000a\","
                          "\"b\":\"caf?\"},\"kind\":\"gauge\",\"value\":-1500}");
    assert_contains(text, "{\"name\":\"m.size\",\"labels\":{},\"kind\":\"histogram\",\"count\":3,"
                          "\"sum\":106,\"min\":3,\"max\":100,\"p50\":3,\"p90\":100,\"p99\":100,"
                          "\"p999\":100,\"buckets\":[[3,2],[103,1]]}");
    assert_memory_equal(text, "{\"time\":", 8);
    assert_string_equal(text + strlen(text) - 2, "]}");
    weir_buf_release(buf);
    weir_metric_release(gauge);
    weir_metric_release(histogram);
}

TEST(metrics_json, names_that_are_equal_in_text_are_all_here)
{
    weir_metric *first = NULL, *second = NULL;
    const char *text;
    weir_buf *buf;

    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, "m.a.b", &first), 0);
    assert_int_equal(weir_metric_create(WEIR_METRIC_COUNTER, "m.a_b", &second), 0);
    buf = write_json(&text);
    assert_contains(text, "{\"name\":\"m.a.b\",\"labels\":{},\"kind\":\"gauge\",\"value\":0}");
    assert_contains(text, "{\"name\":\"m.a_b\",\"labels\":{},\"kind\":\"counter\",\"value\":0}");
    weir_buf_release(buf);
    weir_metric_release(first);
    weir_metric_release(second);
}
