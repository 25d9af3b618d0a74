/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_metrics.h - the registry of metrics as text: Prometheus, OpenMetrics, JSON.
 *
 *      static const weir_http_route routes[] = {{"GET", "/metrics", weir_metrics_route}, {0}};
 *
 * In the formats of Prometheus, the library's families begin with "weir_", except "process_"; the
 * user's are as they are: shop.answers{shelf="books"} of weir/metric.h becomes
 * shop_answers_total{shelf="books"}. Characters that are not allowed become "_", names that end in
 * "_ns" are converted to seconds and "_permille" to a ratio, and counters end in "_total". Of names
 * that become the same, one is exported. Histograms have a bucket for each power of two minus one,
 * which is a bound of their own buckets, so the counts are exact.
 */
#ifndef WEIR_HTTP_METRICS_H
#define WEIR_HTTP_METRICS_H

#include <weir/buf.h>
#include <weir/http_server.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_metrics_format {
    WEIR_METRICS_PROMETHEUS,  /* text format 0.0.4 */
    WEIR_METRICS_OPENMETRICS, /* 1.0.0 */
    WEIR_METRICS_JSON,
};

/*
 * Appends all metrics, families in alphabetical order.
 *
 * JSON: {"time":SECONDS,"metrics":[{"name":"executor.tasks_run","labels":{"loop":"http-1#3"},
 * "kind":"counter","value":12}, {..., "kind":"histogram","count":3,"sum":5,"min":..,"max":..,
 * "p50":..,"p90":..,"p99":..,"p999":..,"buckets":[[UPPER,COUNT],...]}, ...]}, with the values as
 * they are in the registry; buckets have the counts of their own, and empty ones are left out.
 * Thread: any.  Fails: -EINVAL (format), -ENOMEM, WEIR_EBOUNDS (the buffer's max); then nothing is
 * appended.
 */
WEIR_API WEIR_MUST_USE int weir_metrics_write(weir_buf *buf, enum weir_metrics_format format);

/*
 * A route's handler: answers with all metrics, in the format that the query (?format=prometheus,
 * openmetrics or json) or else Accept asks for; by default Prometheus. user_data is not used.
 * Thread: the handler's.
 */
WEIR_API void weir_metrics_route(weir_http_exchange *exchange, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
