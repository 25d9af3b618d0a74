/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of HTTP agree exactly with a scripted load, on every backend.
 */
#include "protocol/http/http_counters.h"

#include <string.h>
#include <unistd.h>

#include <weir/embedded.h>
#include <weir/http_server.h>
#include <weir/metric.h>
#include <weir/thread.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/bootstrap/raw_client.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/protocol/http/http_call.h"

/* ---- values ---- */

static const char *const names[] = {
    "http.connections",
    "http.connections_open",
    "http.requests{method=\"GET\"}",
    "http.requests{method=\"HEAD\"}",
    "http.requests{method=\"POST\"}",
    "http.requests{method=\"other\"}",
    "http.responses{status=\"1xx\"}",
    "http.responses{status=\"2xx\"}",
    "http.responses{status=\"3xx\"}",
    "http.responses{status=\"4xx\"}",
    "http.responses{status=\"5xx\"}",
    "http.requests_refused",
    "http.upgrades",
    "http.bytes_received",
    "http.bytes_sent",
    "http.request_ns",
};

enum {
    CONNECTIONS,
    OPEN,
    GET,
    HEAD,
    POST,
    OTHER,
    INFORMATIONAL,
    SUCCESS,
    REDIRECTION,
    CLIENT_ERROR,
    SERVER_ERROR,
    REFUSED,
    UPGRADES,
    RECEIVED,
    SENT,
    TIMED,
    NAME_COUNT,
};

struct values {
    int64_t of[NAME_COUNT];
};

static struct values read_values(void)
{
    struct values values;
    weir_metric_value value;

    for (int i = 0; i < NAME_COUNT; i++) {
        assert_int_equal(weir_metric_read(names[i], &value), 0);
        values.of[i] = value.value;
    }
    return values;
}

static int64_t request_ns(void)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read("http.request_ns", &value), 0);
    return value.summary.sum;
}

static void assert_change(const struct values *before, const struct values *expected)
{
    struct values after = read_values();

    for (int i = 0; i < NAME_COUNT; i++)
        if (after.of[i] - before->of[i] != expected->of[i])
            fail_msg("%s has changed by %lld instead of %lld", names[i],
                     (long long)(after.of[i] - before->of[i]), (long long)expected->of[i]);
}

/* ---- the load ---- */

static void answer(weir_http_exchange *exchange, void *user_data)
{
    weir_span status = weir_http_exchange_parameter(exchange, "status");

    (void)user_data;
    (void)weir_http_respond_text(exchange,
                                 (status.data[0] - '0') * 100 + (status.data[1] - '0') * 10 +
                                     (status.data[2] - '0'),
                                 "answer");
}

static void answer_unless_repeated(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH);
    (void)weir_http_exchange_end(exchange, NULL);
}

static int keep_channel(weir_channel *channel, void *user_data)
{
    (void)user_data;
    weir_channel_close(channel, NULL);
    return 0;
}

static void upgrade(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_headers_set_text(weir_http_exchange_headers(exchange), WEIR_HTTP_UPGRADE,
                                     "other");
    (void)weir_http_exchange_upgrade(exchange, keep_channel, NULL);
}

static const weir_http_route routes[] = {{"*", "/status/{status}", answer},
                                         {"GET", "/streamed", answer_unless_repeated},
                                         {"GET", "/upgrade", upgrade},
                                         {0}};

static void call(weir_http_server *server, struct values *expected, const char *text)
{
    char received[HTTP_CALL_SIZE];

    http_call(server, text, received);
    expected->of[CONNECTIONS]++;
    expected->of[RECEIVED] += (int64_t)strlen(text);
    expected->of[SENT] += (int64_t)strlen(received);
}

TEST_EACH_HOST(http_counters, agree_with_what_was_sent)
{
    struct values before = read_values(), expected = {0};
    int64_t sum_ns = request_ns(), start_ns = weir__monotonic_now(), most_ns;
    weir_http_server *server = NULL;

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group),
                               &server),
        0);
    call(server, &expected,
         HTTP_GET("/status/200") HTTP_GET("/status/302") HTTP_GET("/status/404")
             HTTP_CALL("HEAD /status/200") "\r\n" HTTP_CALL("BREW /status/200") "\r\n" HTTP_CALL(
                 "POST /status/500") "Content-Length: 5\r\n\r\nhello" HTTP_LAST("/streamed"));
    call(server, &expected, HTTP_LAST("/none"));
    call(server, &expected,
         HTTP_CALL("GET /upgrade") "Connection: Upgrade\r\nUpgrade: other\r\n\r\n");
    call(server, &expected, "no request\r\n\r\n");
    weir_http_server_release(server); /* every connection has ended */
    most_ns = weir__monotonic_now() - start_ns;

    expected.of[GET] = 6;
    expected.of[HEAD] = expected.of[OTHER] = expected.of[POST] = 1;
    expected.of[INFORMATIONAL] = expected.of[UPGRADES] = expected.of[REFUSED] = 1;
    expected.of[SUCCESS] = 4;
    expected.of[REDIRECTION] = expected.of[SERVER_ERROR] = 1;
    expected.of[CLIENT_ERROR] = 3;
    expected.of[TIMED] = 9; /* without the refused one */
    assert_change(&before, &expected);
    assert_true(request_ns() > sum_ns);
    assert_true(request_ns() - sum_ns < 9 * most_ns);
}

static void hold(weir_http_exchange *exchange, void *user_data)
{
    *(weir_http_exchange **)user_data = weir_http_exchange_retain(exchange);
}

static void write_text(weir_embedded *embedded, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
}

static weir_embedded *open_embedded(const weir_http_route *own)
{
    weir_embedded *embedded = NULL;
    weir_http_router *router = NULL;

    assert_int_equal(weir_http_router_create(own, &router), 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), NULL), 0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
    weir_http_router_release(router);
    return embedded;
}

TEST(http_counters, the_time_of_a_request_ends_with_its_response)
{
    weir_http_exchange *exchange = NULL;
    const weir_http_route own[] = {{"GET", "/", hold, &exchange}, {0}};
    weir_embedded *embedded = open_embedded(own);
    weir_metric_value before, after;

    assert_int_equal(weir_metric_read("http.request_ns", &before), 0);
    write_text(embedded, HTTP_GET("/"));
    assert_int_equal(read_values().of[OPEN], 1);
    weir_embedded_advance(embedded, 5000);
    assert_int_equal(weir_http_respond_text(exchange, 200, "late"), 0);
    weir_http_exchange_release(exchange);
    assert_int_equal(weir_metric_read("http.request_ns", &after), 0);
    assert_int_equal(after.summary.count - before.summary.count, 1);
    assert_int_equal(after.summary.sum - before.summary.sum, 5000);

    /* A response that never comes is not counted. */
    write_text(embedded, HTTP_GET("/"));
    weir_channel_close(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    weir_http_exchange_release(exchange);
    assert_int_equal(weir_metric_read("http.request_ns", &after), 0);
    assert_int_equal(after.summary.count - before.summary.count, 1);
    assert_int_equal(read_values().of[OPEN], 0);
    weir_embedded_release(embedded);
}

/* ---- shards ---- */

static void count_on_thread(void *arg)
{
    (void)arg;
    weir__http_count(WEIR__WS_MESSAGES_SENT, 3);
    weir__http_record_requests(7, 2);
}

static int64_t messages(void)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read("websocket.messages_sent{side=\"server\"}", &value), 0);
    return value.value;
}

TEST(http_counters, counts_of_ended_threads_are_kept)
{
    int64_t before = messages(), timed = read_values().of[TIMED];
    weir__thread thread;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__thread_start("counting", count_on_thread, NULL, &thread), 0);
        weir__thread_join(&thread);
    }
    count_on_thread(NULL);
    assert_int_equal(messages(), before + 9);
    assert_int_equal(read_values().of[TIMED], timed + 6);
}

TEST(http_counters, without_memory_nothing_is_lost)
{
    int64_t before = messages(), timed = read_values().of[TIMED];

    weir_locals_remove_all(); /* also ends the shard of this thread */
    test_memory_fail_all(true);
    count_on_thread(NULL);
    assert_null(weir__http_counts_own);
    test_memory_fail_all(false);
    assert_int_equal(messages(), before + 3);
    assert_int_equal(read_values().of[TIMED], timed + 2);
}
