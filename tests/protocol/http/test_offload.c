/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes that block run on the group of offload_when_blocking. One test has the watchdog find a
 * route that really sleeps; the others give its verdict themselves, so that no time passes.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/http_body.h>
#include <weir/watchdog.h>

#include "protocol/http/blocking_routes.h"
#include "protocol/http/exchange.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"

#define LIMIT 3 /* blocks */

/* ---- routes ---- */

/* Answers with the place that it runs on. */
static void answer(weir_http_exchange *exchange)
{
    weir_channel *channel = weir_http_exchange_channel(exchange);

    (void)weir_http_respond_text(
        exchange, 200, weir_in_executor(weir_channel_executor(channel)) ? "loop." : "group");
}

static void slow(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    answer(exchange);
}

static void quick(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    answer(exchange);
    (void)weir_http_exchange_route(exchange); /* keeps the linker from folding it with `slow` */
}

/* Waits at a gate, on the group. */
static void wait_then_answer(weir_http_exchange *exchange, void *user_data)
{
    if (!weir_in_executor(weir_channel_executor(weir_http_exchange_channel(exchange))))
        gate_task(user_data, 0);
    answer(exchange);
}

static void echo(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *content = weir_http_exchange_content(exchange);
    bool is_loop = weir_in_executor(weir_channel_executor(weir_http_exchange_channel(exchange)));

    (void)user_data;
    (void)weir_http_headers_add_named(weir_http_exchange_headers(exchange),
                                      weir_span_of_text("ran-on"),
                                      weir_span_of_text(is_loop ? "loop" : "group"));
    (void)weir_http_respond_bytes(exchange, 200, "text/plain", weir_buf_bytes(content),
                                  weir_buf_readable(content));
}

/* Discards the content, and answers with the place of its end. Releases the exchange then. */
static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    (void)user_data;
    if (msg != NULL) {
        weir_msg_release(msg);
        weir_http_exchange_read(exchange);
        return;
    }
    if (err == 0)
        answer(exchange);
    weir_http_exchange_release(exchange);
}

static void stream(weir_http_exchange *exchange, void *user_data)
{
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, user_data);
    weir_http_exchange_read(exchange);
}

static void on_upload(weir_http_exchange *exchange, weir_http_upload *upload, int err,
                      void *user_data)
{
    (void)user_data;
    if (err == 0 && weir_http_upload_count(upload) == 1)
        answer(exchange);
    weir_http_upload_release(upload);
}

/* Every part is written to a file. */
static void upload(weir_http_exchange *exchange, void *user_data)
{
    weir_http_upload_read(exchange, WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = WEIR_OFF),
                          on_upload, user_data);
}

static void give_up(weir_http_exchange *exchange, void *user_data)
{
    (void)exchange;
    (void)user_data;
}

/* Sleeps, but only where that harms. */
static void sleep_then_answer(weir_http_exchange *exchange, void *user_data)
{
    struct timespec left = {.tv_nsec = 25000000};

    (void)user_data;
    if (weir_in_executor(weir_channel_executor(weir_http_exchange_channel(exchange))))
        while (nanosleep(&left, &left) < 0 && errno == EINTR)
            ;
    answer(exchange);
}

/* ---- servers ---- */

struct site {
    weir_http_server *server;
    weir_group *aside;
    struct gate gate;
};

static void open_site(struct site *site, struct host *host, bool is_cured)
{
    const weir_http_route routes[] = {{"GET", "/slow", slow},
                                      {"GET", "/quick", quick},
                                      {"GET", "/wait", wait_then_answer, &site->gate},
                                      {"GET", "/sleep", sleep_then_answer},
                                      {"GET", "/give-up", give_up},
                                      {"POST", "/echo", echo},
                                      {"POST", "/stream", stream, .streaming = true},
                                      {"POST", "/upload", upload, .streaming = true},
                                      {"GET", "/own", slow, .group = &site->aside},
                                      {0}};

    memset(site, 0, sizeof(*site));
    log_capture_start();
    site->aside = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2, .name = "aside"));
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                     .workers = host->group,
                                     .compression = WEIR_HTTP_COMPRESSION_OPTIONS(.min_length = 64),
                                     .request_ids = true,
                                     .offload_when_blocking = is_cured ? site->aside : NULL),
            &site->server),
        0);
}

static void close_site(struct site *site)
{
    weir_http_server_release(site->server);
    end_group(site->aside);
}

/* The verdict: the function has blocked. Returns the number of routes that moved. */
static size_t block(const void *function, unsigned times)
{
    const void *stack[] = {NULL, &stack, function};
    size_t moved = 0;

    while (times-- > 0)
        moved += weir__http_exchange_handler.blocked(stack, 3, LIMIT);
    return moved;
}

#define FUNCTION(name) ((const void *)(uintptr_t)(name))

static void assert_runs_on(struct site *site, const char *request, const char *place)
{
    char result[HTTP_CALL_SIZE];

    http_call(site->server, request, result);
    assert_contains(result, "HTTP/1.1 200 ");
    assert_contains(result, place);
}

static void send_on(int peer, const char *request, const char *place)
{
    char result[HTTP_CALL_SIZE];

    raw_client_send(peer, request);
    http_call_receive_one(peer, 5, result);
    assert_contains(result, place);
}

/* ---- the watchdog's verdict ---- */

/* Not with a thread per channel: there a handler may block. */
TEST_EACH_LOOP(offload, moves_a_route_that_sleeps)
{
    struct gate *gate;
    weir_handler_stats stats;
    char result[HTTP_CALL_SIZE];
    unsigned calls = 0;
    struct site site;
    int other;

    open_site(&site, host, true);
    gate = &site.gate;
    other = raw_client_connect(weir_http_server_server(site.server));
    assert_int_equal(
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(5), .logged_blocks = 1)),
        0);
    do
        http_call(site.server, HTTP_LAST("/sleep"), result);
    while (strstr(result, "\r\n\r\nloop.") != NULL && ++calls < 200);
    weir_watchdog_stop();
    assert_contains(result, "\r\n\r\ngroup");
    assert_true(calls > LIMIT);
    assert_log_contains("the handler has blocked its loop 4 times: from now on it runs on the "
                        "group of \"aside-1\"");
    assert_int_equal(weir_handler_read_stats(&weir__http_exchange_handler, &stats), 0);
    assert_true(stats.blocks > LIMIT);
    assert_true(stats.is_offloaded);
    assert_true(stats.moved >= 1);
    assert_runs_on(&site, HTTP_LAST("/quick"), "\r\n\r\nloop.");

    /* Others are answered while a moved one blocks. */
    (void)block(FUNCTION(wait_then_answer), LIMIT + 1);
    raw_client_send(other, HTTP_GET("/wait"));
    assert_true(gate_await_arrivals(gate, 1));
    assert_runs_on(&site, HTTP_LAST("/quick"), "\r\n\r\nloop.");
    gate_open(gate);
    http_call_receive_one(other, 5, result);
    assert_contains(result, "group");
    raw_client_close(other);
    close_site(&site);
}

/* ---- routes ---- */

TEST_EACH_HOST(offload, moves_only_routes_with_the_function)
{
    struct site site;
    int peer;

    open_site(&site, host, true);
    peer = raw_client_connect(weir_http_server_server(site.server));
    assert_int_equal(block(FUNCTION(slow), LIMIT), 0);
    assert_int_equal(block(FUNCTION(open_site), LIMIT + 1), 0);
    send_on(peer, HTTP_GET("/slow"), "\r\n\r\nloop.");
    assert_int_equal(block(FUNCTION(slow), 1), 1);
    send_on(peer, HTTP_GET("/slow"), "\r\n\r\ngroup"); /* the same connection */
    assert_log_contains("the handler has blocked its loop 4 times");
    send_on(peer, HTTP_GET("/quick"), "\r\n\r\nloop.");
    send_on(peer, HTTP_GET("/own"), "\r\n\r\ngroup");
    assert_int_equal(block(FUNCTION(slow), LIMIT + 1), 0); /* it has moved */
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    raw_client_close(peer);
    close_site(&site);
}

TEST_EACH_HOST(offload, the_innermost_route_is_the_one_that_blocks)
{
    const void *stack[] = {FUNCTION(open_site), FUNCTION(quick), FUNCTION(slow)};
    struct site site;

    open_site(&site, host, true);
    for (unsigned i = 0; i <= LIMIT; i++)
        (void)weir__http_routes_blocked(stack, 3, LIMIT);
    assert_runs_on(&site, HTTP_LAST("/slow"), "\r\n\r\nloop.");
    assert_runs_on(&site, HTTP_LAST("/quick"), "\r\n\r\ngroup");
    close_site(&site);
}

TEST_EACH_HOST(offload, stays_on_the_loop_without_the_option)
{
    struct site site;

    open_site(&site, host, false);
    assert_int_equal(block(FUNCTION(slow), LIMIT + 1), 1);
    assert_runs_on(&site, HTTP_LAST("/slow"), "\r\n\r\nloop.");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    close_site(&site);
}

TEST_EACH_HOST(offload, stays_on_the_loop_if_the_group_has_ended)
{
    struct site site;

    open_site(&site, host, true);
    assert_int_equal(block(FUNCTION(slow), LIMIT + 1), 1);
    assert_int_equal(weir_group_shutdown(site.aside, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(site.aside, weir_seconds(10)), 0);
    assert_runs_on(&site, HTTP_LAST("/slow"), "\r\n\r\nloop.");
    assert_runs_on(&site, HTTP_LAST("/slow"), "\r\n\r\nloop.");
    assert_log_contains("the handler blocks and runs on the loop");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 2);
    weir_http_server_release(site.server);
    weir_group_release(site.aside);
}

TEST_EACH_HOST(offload, routes_that_are_added_later_have_the_mark)
{
    static const weir_http_route more[] = {{"GET", "/more", slow}, {"GET", "/new", quick}, {0}};
    struct site site;

    open_site(&site, host, true);
    assert_int_equal(block(FUNCTION(slow), LIMIT + 1), 1);
    assert_int_equal(block(FUNCTION(quick), LIMIT), 0);
    assert_int_equal(weir_http_server_add_routes(site.server, more, NULL, NULL), 0);
    assert_runs_on(&site, HTTP_LAST("/slow"), "\r\n\r\ngroup");
    assert_runs_on(&site, HTTP_LAST("/more"), "\r\n\r\ngroup");
    assert_runs_on(&site, HTTP_LAST("/new"), "\r\n\r\nloop.");
    assert_int_equal(block(FUNCTION(quick), 1), 3); /* in both routers */
    assert_runs_on(&site, HTTP_LAST("/new"), "\r\n\r\ngroup");
    assert_runs_on(&site, HTTP_LAST("/own"), "\r\n\r\ngroup");
    close_site(&site);
}

/* ---- requests ---- */

TEST_EACH_HOST(offload, answers_pipelined_requests_in_order)
{
    struct site site;
    char result[HTTP_CALL_SIZE];
    const char *at;

    open_site(&site, host, true);
    (void)block(FUNCTION(slow), LIMIT + 1);
    http_call(site.server,
              HTTP_GET("/slow") HTTP_GET("/quick") HTTP_GET("/slow") HTTP_GET("/give-up")
                  HTTP_GET("/slow") HTTP_LAST("/quick"),
              result);
    at = result;
    for (const char *const *place =
             (const char *const[]){"group", "loop.", "group", "500", "group", "loop.", NULL};
         *place != NULL; place++) {
        at = strstr(at, *place);
        if (at == NULL)
            fail_msg("\"%s\" is not in order: %s", *place, result);
        at += strlen(*place);
    }
    close_site(&site);
}

#define TEXT64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST_EACH_HOST(offload, delivers_content_to_the_group)
{
    struct site site;
    char result[HTTP_CALL_SIZE];

    open_site(&site, host, true);
    (void)block(FUNCTION(echo), LIMIT + 1);
    http_call(
        site.server,
        HTTP_CALL("POST /echo") "Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc" HTTP_CALL(
            "POST /echo") "Connection: close\r\nAccept-Encoding: gzip\r\n"
                          "Content-Length: 64\r\n\r\n" TEXT64,
        result);
    assert_contains(result, "HTTP/1.1 100 ");
    assert_contains(result, "ran-on: group\r\n");
    assert_contains(result, "\r\n\r\nabcHTTP/1.1 200 ");
    assert_contains(strstr(result, "abcHTTP"), "ran-on: group\r\n");
    assert_contains(result, "Content-Encoding: gzip\r\n");
    close_site(&site);
}

#define STREAM                \
    HTTP_CALL("POST /stream") \
    "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

/* The function for the content blocks, not the handler. */
TEST_EACH_HOST(offload, streams_content_to_the_group)
{
    struct site site;

    open_site(&site, host, true);
    assert_int_equal(block(FUNCTION(on_content), LIMIT), 0); /* no route is known to have it */
    assert_runs_on(&site, STREAM, "\r\n\r\nloop.");
    assert_int_equal(block(FUNCTION(on_content), LIMIT + 1), 1);
    assert_runs_on(&site, STREAM, "\r\n\r\ngroup");
    close_site(&site);
}

#define UPLOAD                                                                 \
    HTTP_CALL("POST /upload")                                                  \
    "Connection: close\r\nContent-Type: multipart/form-data; boundary=xYz\r\n" \
    "Content-Length: 74\r\n\r\n"                                               \
    "--xYz\r\nContent-Disposition: form-data; name=a\r\n\r\n0123456789abcd\r\n--xYz--\r\n"

TEST_EACH_HOST(offload, uploads_to_the_group)
{
    struct site site;

    open_site(&site, host, true);
    assert_runs_on(&site, UPLOAD, "\r\n\r\nloop.");
    assert_int_equal(block(FUNCTION(upload), LIMIT + 1), 1);
    assert_runs_on(&site, UPLOAD, "\r\n\r\ngroup");
    close_site(&site);
}

TEST_EACH_HOST(offload, drains_a_request_on_the_group)
{
    struct site site;
    char result[HTTP_CALL_SIZE];
    int peer;

    open_site(&site, host, true);
    (void)block(FUNCTION(wait_then_answer), LIMIT + 1);
    peer = raw_client_connect(weir_http_server_server(site.server));
    raw_client_send(peer, HTTP_GET("/wait"));
    assert_true(gate_await_arrivals(&site.gate, 1));
    assert_int_equal(weir_group_shutdown(host->group, 0, weir_seconds(10)), 0);
    gate_open(&site.gate);
    assert_true(http_call_receive(peer, result));
    assert_contains(result, "\r\n\r\ngroup");
    raw_client_close(peer);
    close_site(&site);
}

/* ---- upgrades ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo_bytes = {.name = "echo-bytes", .read = on_read};

static int add_echo(weir_channel *channel, void *user_data)
{
    assert_true(weir_in_executor(weir_channel_executor(channel)));
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo_bytes, NULL);
}

static void upgrade(weir_http_exchange *exchange, void *user_data)
{
    bool is_loop = weir_in_executor(weir_channel_executor(weir_http_exchange_channel(exchange)));

    (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_UPGRADE,
                                     is_loop ? "loop" : "group");
    (void)weir_http_exchange_upgrade(exchange, add_echo, user_data);
}

TEST_EACH_HOST(offload, upgrades_from_the_group)
{
    static const weir_http_route routes[] = {{"GET", "/up", upgrade}, {0}};
    struct site site;
    char result[HTTP_CALL_SIZE];
    int peer;

    open_site(&site, host, true);
    assert_int_equal(weir_http_server_add_routes(site.server, routes, NULL, NULL), 0);
    assert_int_equal(block(FUNCTION(upgrade), LIMIT + 1), 1);
    peer = raw_client_connect(weir_http_server_server(site.server));
    raw_client_send(peer, HTTP_CALL("GET /up") "Connection: Upgrade\r\nUpgrade: group\r\n\r\n");
    http_call_receive_one(peer, 0, result);
    assert_contains(result, "HTTP/1.1 101 ");
    assert_contains(result, "Upgrade: group\r\n");
    raw_client_echo(peer, "abc");
    raw_client_close(peer);
    close_site(&site);
}
