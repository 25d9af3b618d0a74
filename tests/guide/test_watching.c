/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/35-watching.md shows.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/dashboard.h>
#include <weir/http_metrics.h>
#include <weir/http_server.h>
#include <weir/watchdog.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, "Hello, World!\n");
}

/* doc:begin route */
static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/hello", hello),
                                         WEIR_HTTP_ROUTE("GET", "/metrics", weir_metrics_route),
                                         WEIR_HTTP_ROUTES_END};
/* doc:end */

/* doc:begin watch */
static int start_watched(const char *address, weir_http_server **ret_server)
{
    int err = weir_watchdog_start(NULL); /* logs turns of event loops that take over 100 ms */

    if (!err)
        err = weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = address, .routes = routes),
                                     ret_server);
    if (!err)
        err = weir_dashboard_add(*ret_server, NULL); /* the live page, at /weir/ */
    return err;
}
/* doc:end */

/* doc:begin protect */
static void metrics_for_monitoring(weir_http_exchange *exchange, void *user_data)
{
    const char *expected = user_data; /* "Bearer " and a secret */
    weir_span given = weir_http_headers_get(
        weir_http_request_headers(weir_http_exchange_request(exchange)), WEIR_HTTP_AUTHORIZATION);

    if (weir_span_equal(given, weir_span_of_text(expected)))
        weir_metrics_route(exchange, NULL);
    else
        (void)weir_http_respond_error(exchange, 401, NULL);
}
/* doc:end */

/* doc:begin labels */
static weir_metric *orders_by_card, *orders_by_invoice;

static int create_order_metrics(void)
{
    int err =
        weir_metric_create(WEIR_METRIC_COUNTER, "shop.orders{payment=\"card\"}", &orders_by_card);

    if (!err)
        err = weir_metric_create(WEIR_METRIC_COUNTER, "shop.orders{payment=\"invoice\"}",
                                 &orders_by_invoice);
    return err;
}
/* doc:end */

static void ask(weir_http_server *server, const char *request, char *answer, size_t size)
{
    int peer = raw_client_connect(weir_http_server_server(server));

    raw_client_send(peer, request);
    (void)raw_client_receive_all(peer, answer, size);
    raw_client_close(peer);
}

#define ANSWER_SIZE ((size_t)1 << 20)

TEST(guide_watching, metrics_and_the_page)
{
    char *answer = calloc(1, ANSWER_SIZE);
    weir_http_server *server = NULL;

    assert_non_null(answer);
    assert_int_equal(create_order_metrics(), 0);
    (void)weir_metric_add(orders_by_card, 3);
    assert_int_equal(start_watched("127.0.0.1:0", &server), 0);
    ask(server, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer,
        ANSWER_SIZE);
    assert_non_null(strstr(answer, "\nshop_orders_total{payment=\"card\"} 3\n"));
    assert_non_null(strstr(answer, "\nshop_orders_total{payment=\"invoice\"} 0\n"));
    assert_non_null(strstr(answer, "\nweir_watchdog_is_running 1\n"));
    memset(answer, 0, ANSWER_SIZE);
    ask(server, "GET /weir/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", answer,
        ANSWER_SIZE);
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
    weir_http_server_release(server);
    weir_watchdog_stop();
    weir_metric_release(orders_by_card);
    weir_metric_release(orders_by_invoice);
    free(answer);
}

TEST(guide_watching, metrics_behind_a_secret)
{
    static char secret[] = "Bearer s3cret";
    const weir_http_route own[] = {
        WEIR_HTTP_ROUTE("GET", "/metrics", metrics_for_monitoring, secret), WEIR_HTTP_ROUTES_END};
    char *answer = calloc(1, ANSWER_SIZE);
    weir_http_server *server = NULL;

    assert_non_null(answer);
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = own),
                               &server),
        0);
    ask(server, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", answer,
        ANSWER_SIZE);
    assert_non_null(strstr(answer, "HTTP/1.1 401 "));
    memset(answer, 0, ANSWER_SIZE);
    ask(server,
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer s3cret\r\n"
        "Connection: close\r\n\r\n",
        answer, ANSWER_SIZE);
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
    weir_http_server_release(server);
    free(answer);
}
