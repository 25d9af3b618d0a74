/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of weir/http_metrics.h. */
#include <weir/http_metrics.h>

#include <errno.h>

#include <weir/http_body.h>

#include "protocol/http/metric_samples.h"

int weir_metrics_write(weir_buf *buf, enum weir_metrics_format format)
{
    size_t index = weir_buf_write_index(buf);
    weir__metric_samples samples;
    int err;

    if (format < WEIR_METRICS_PROMETHEUS || format > WEIR_METRICS_JSON)
        return -EINVAL;
    err = weir__metric_samples_read(&samples);
    if (err < 0)
        return err;
    err = format == WEIR_METRICS_JSON
              ? weir__metrics_write_json(buf, &samples)
              : weir__metrics_write_text(buf, &samples, format == WEIR_METRICS_OPENMETRICS);
    weir__metric_samples_deinit(&samples);
    if (err < 0)
        (void)weir_buf_set_write_index(buf, index);
    return err;
}

/* ---- the route ---- */

static const struct {
    const char *name;
    const char *content_type;
} formats[] = {
    [WEIR_METRICS_PROMETHEUS] = {"prometheus", "text/plain; version=0.0.4; charset=utf-8"},
    [WEIR_METRICS_OPENMETRICS] = {"openmetrics",
                                  "application/openmetrics-text; version=1.0.0; charset=utf-8"},
    [WEIR_METRICS_JSON] = {"json", "application/json"},
};

/* The format that the query names, or -EINVAL. */
static int format_by_name(weir_span name)
{
    for (int i = WEIR_METRICS_PROMETHEUS; i <= WEIR_METRICS_JSON; i++)
        if (weir_span_equal(name, weir_span_of_text(formats[i].name)))
            return i;
    return -EINVAL;
}

/* An Accept that excludes all three gets the first one nevertheless: there is nothing better to
 * answer with. */
static int choose_format(weir_http_exchange *exchange)
{
    const char *types[] = {
        formats[WEIR_METRICS_PROMETHEUS].content_type,
        formats[WEIR_METRICS_OPENMETRICS].content_type,
        formats[WEIR_METRICS_JSON].content_type,
        NULL,
    };
    weir_span name = weir_http_exchange_query(exchange, "format");
    int format;

    if (name.data != NULL)
        return format_by_name(name);
    format = weir_http_accept_type(weir_http_request_headers(weir_http_exchange_request(exchange)),
                                   types);
    return format >= 0 ? format : WEIR_METRICS_PROMETHEUS;
}

static int set_headers(weir_http_exchange *exchange, const char *content_type)
{
    weir_http_headers *headers = weir_http_exchange_headers(exchange);
    int err = weir_http_headers_set_text(headers, WEIR_HTTP_CONTENT_TYPE, content_type);

    if (!err)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_CACHE_CONTROL, "no-store");
    if (!err)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_VARY, "Accept");
    return err;
}

void weir_metrics_route(weir_http_exchange *exchange, void *user_data)
{
    int format = choose_format(exchange), err;
    weir_buf *body = NULL;

    (void)user_data;
    if (format < 0) {
        weir_http_respond_error(exchange, 400, "format: expected prometheus, openmetrics or json");
        return;
    }
    err = weir_buf_create(65536, 0, &body);
    if (!err)
        err = weir_metrics_write(body, (enum weir_metrics_format)format);
    if (!err)
        err = set_headers(exchange, formats[format].content_type);
    if (!err) {
        weir_http_respond(exchange, 200, weir_buf_msg(body));
        return;
    }
    weir_buf_release(body);
    weir_http_respond_error(exchange, 500, "no memory");
}
