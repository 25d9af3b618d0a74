/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The route of metrics on an embedded channel; and scrapes while metrics come and go.
 */
#include <weir/http_metrics.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http_body.h>

#include "os/thread.h"
#include "support/protocol/http/exchange_fixture.h"
#include "support/protocol/http/http_text.h"

static const weir_http_route routes[] = {{"GET", "/metrics", weir_metrics_route}, {0}};

/* Compares the status and the Content-Type of an answer; `accept` may be NULL. */
static void assert_type(const char *target, const char *accept, int status, const char *expected)
{
    weir_embedded *embedded = exchange_open(routes);
    weir_http_request *request = NULL;
    weir_http_response *response;
    weir_msg *msg;

    assert_int_equal(weir_http_request_create("GET", target, &request), 0);
    if (accept != NULL)
        assert_int_equal(weir_http_headers_set_text(weir_http_request_headers(request),
                                                    WEIR_HTTP_ACCEPT, accept),
                         0);
    (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
    exchange_put_end(embedded);
    msg = weir_embedded_read_outbound(embedded);
    assert_non_null(msg);
    response = weir_http_response_of(msg);
    assert_int_equal(weir_http_response_status(response), status);
    assert_span_text(
        weir_http_headers_get(weir_http_response_headers(response), WEIR_HTTP_CONTENT_TYPE),
        expected);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

#define TEXT "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define JSON "application/json"

TEST(metrics, accept_selects_the_format)
{
    assert_type("/metrics", NULL, 200, TEXT);
    assert_type("/metrics", "*/*", 200, TEXT);
    assert_type("/metrics", "text/plain", 200, TEXT);
    assert_type("/metrics", "application/json", 200, JSON);
    assert_type("/metrics", "text/plain;q=0.3, application/json;q=0.7", 200, JSON);
    assert_type("/metrics", "image/png", 200, TEXT);
    /* As Prometheus 2 sends it. */
    assert_type("/metrics",
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
                "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                200, OPENMETRICS);
}

TEST(metrics, the_query_wins_over_accept)
{
    assert_type("/metrics?format=prometheus", "application/json", 200, TEXT);
    assert_type("/metrics?format=openmetrics", NULL, 200, OPENMETRICS);
    assert_type("/metrics?format=json", "text/plain", 200, JSON);
    assert_type("/metrics?format=xml", NULL, 400, "text/plain; charset=utf-8");
    assert_type("/metrics?format=", NULL, 400, "text/plain; charset=utf-8");
}

/* ---- other threads ---- */

static _Atomic bool is_done;

static void write_until_done(void *arg)
{
    const enum weir_metrics_format *format = arg;

    while (!atomic_load(&is_done)) {
        weir_buf *buf = NULL;

        if (weir_buf_create(65536, 0, &buf) == 0 && weir_metrics_write(buf, *format) < 0)
            abort();
        weir_buf_release(buf);
    }
}

TEST(metrics, metrics_are_created_and_released_during_scrapes)
{
    static const enum weir_metrics_format formats[] = {WEIR_METRICS_OPENMETRICS, WEIR_METRICS_JSON};
    weir__thread readers[2];
    char name[64];

    atomic_store(&is_done, false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__thread_start("reader", write_until_done,
                                            (void *)(uintptr_t)&formats[i], &readers[i]),
                         0);
    for (int i = 0; i < 300; i++) {
        weir_metric *counter = NULL, *histogram = NULL;

        snprintf(name, sizeof(name), "m.counter{number=\"%d\"}", i % 7);
        assert_int_equal(weir_metric_create(WEIR_METRIC_COUNTER, name, &counter), 0);
        assert_int_equal(weir_metric_create(WEIR_METRIC_HISTOGRAM, "m.histogram", &histogram), 0);
        weir_metric_add(counter, i);
        weir_metric_record(histogram, i);
        weir_metric_release(counter);
        weir_metric_release(histogram);
    }
    atomic_store(&is_done, true);
    for (int i = 0; i < 2; i++)
        weir__thread_join(&readers[i]);
}
