/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwarding over sockets, on every backend: a server that forwards to a scripted origin, or to
 * another route of its own.
 */
#include <weir/http_forward.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/clock.h>
#include <weir/error.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/protocol/http/client_fixture.h"
#include "support/protocol/http/http_call.h"
#include "support/protocol/http/scripted_server.h"
#include "support/test.h"

#define REPLIES(...) ((const struct scripted_reply[]){__VA_ARGS__, {0}})
#define OK SCRIPTED_OK

/* A server, its client, and the origin behind them. */
struct proxy {
    struct scripted_server origin;
    char url[256];        /* that requests are forwarded to */
    const char *next_url; /* after a failure; NULL = none */
    const char *target;   /* replaces that of the request; NULL = no */
    weir_http_client *client;
    weir_http_server *server;
    weir_http1_options http1;
    weir_group *handlers; /* of the route; NULL = the loop */
    bool collects;        /* the content, in a route that does not stream */
    int64_t tunnel_timeout_ns;
    bool no_websockets;
    const char *const *trusted_proxies;
    int err;
    char detail[512];
    int nexts;
    struct call_counter ends;
};

static int on_request(weir_http_exchange *exchange, weir_http_request *request, void *user_data)
{
    const struct proxy *proxy = user_data;

    (void)exchange;
    return proxy->target != NULL
               ? weir_http_request_set_target(request, weir_span_of_text(proxy->target))
               : 0;
}

static void on_response(weir_http_exchange *exchange, int status, weir_http_headers *headers,
                        void *user_data)
{
    (void)exchange;
    (void)user_data;
    if (status == 200)
        IGNORE_RESULT(weir_http_headers_set_text(headers, WEIR_HTTP_SERVER, "front"));
}

static const char *on_next(weir_http_exchange *exchange, int err, const char *detail,
                           void *user_data)
{
    struct proxy *proxy = user_data;
    const char *url = proxy->next_url;

    (void)exchange;
    (void)detail;
    assert_true(err < 0);
    proxy->nexts++;
    proxy->next_url = NULL;
    return url;
}

static void on_end(weir_http_exchange *exchange, int err, const char *detail, void *user_data)
{
    struct proxy *proxy = user_data;

    (void)exchange;
    proxy->err = err;
    (void)snprintf(proxy->detail, sizeof(proxy->detail), "%s", detail);
    call_counter_add(&proxy->ends);
}

static const weir_http_forward_events events = {
    .request = on_request, .response = on_response, .next = on_next, .end = on_end};

static void forward(weir_http_exchange *exchange, void *user_data)
{
    struct proxy *proxy = user_data;

    int err =
        weir_http_forward(exchange, proxy->client, proxy->url,
                          WEIR_HTTP_FORWARD_OPTIONS(.events = &events, .user_data = proxy,
                                                    .no_websockets = proxy->no_websockets,
                                                    .tunnel_timeout_ns = proxy->tunnel_timeout_ns));

    if (err < 0)
        proxy->err = err;
}

static void repeat(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond(exchange, 200,
                            weir_buf_msg(weir_buf_retain(weir_http_exchange_content(exchange))));
}

static weir_http_handler_fn switch_protocols;

/* `client` without a group. */
static void start(struct proxy *proxy, struct host *host, const weir_http_client_options *client)
{
    const weir_http_route routes[] = {{"*", "/repeat", repeat, .max_content = 1 << 24},
                                      {"GET", "/ws", switch_protocols},
                                      {"*", "/{path*}", forward, proxy,
                                       .streaming = !proxy->collects, .encoded_slashes = true,
                                       .group = proxy->handlers != NULL ? &proxy->handlers : NULL},
                                      {0}};

    proxy->http1.size = sizeof(proxy->http1);
    proxy->client = client_open(host, client);
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                     .workers = host->group, .http1 = &proxy->http1,
                                     .trusted_proxies = proxy->trusted_proxies,
                                     .child_options =
                                         WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200))),
            &proxy->server),
        0);
}

static void open_proxy(struct proxy *proxy, struct host *host,
                       const weir_http_client_options *client, const struct scripted_reply *replies)
{
    scripted_server_open(&proxy->origin, host, replies);
    scripted_server_url(&proxy->origin, "http", "", proxy->url);
    start(proxy, host, client);
}

static void close_proxy(struct proxy *proxy)
{
    client_close(proxy->client);
    weir_http_server_release(proxy->server);
    if (proxy->origin.host != NULL)
        scripted_server_close(&proxy->origin);
}

/* One request, and what the origin got. */
static const char *ask(struct proxy *proxy, const char *text, char answer[HTTP_CALL_SIZE])
{
    http_call(proxy->server, text, answer);
    return proxy->origin.last;
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("\"%s\" contains \"%s\"", text, part);
}

/* ---- what passes ---- */

TEST_EACH_LOOP(http_forward, passes_heads_and_content_both_ways)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL,
               REPLIES({.text = "HTTP/1.1 201 Created\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                                "X-End: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"}));
    seen = ask(&proxy,
               HTTP_CALL("POST /a%2Fb?c=d") "Connection: close, X-Mine\r\nX-Mine: 1\r\n"
                                            "X-End: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                                            "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
               answer);
    assert_contains(seen, "POST /a%2Fb?c=d HTTP/1.1\r\n");
    assert_contains(seen, "Host: test\r\n");
    assert_contains(seen, "X-End: 3\r\n");
    assert_contains(seen, "abc");
    assert_contains(seen, "defg");
    assert_contains(seen, "Forwarded: for=127.0.0.1;host=\"test\";proto=http\r\n");
    assert_contains(seen, "X-Forwarded-For: 127.0.0.1\r\n");
    assert_contains(seen, "X-Forwarded-Proto: http\r\n");
    assert_contains(seen, "X-Forwarded-Host: test\r\n");
    assert_contains(seen, "Via: 1.1 weir\r\n");
    assert_lacks(seen, "X-Mine");
    assert_contains(answer, "HTTP/1.1 201 Created\r\n");
    assert_contains(answer, "X-End: 2\r\n");
    assert_contains(answer, "5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n");
    assert_lacks(answer, "X-Hop");
    assert_true(call_counter_await_for(&proxy.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(proxy.err, 0);
    close_proxy(&proxy);
}

/* Without those that are for one connection only, or that would deceive the other side. */
TEST_EACH_LOOP(http_forward, passes_trailers_both_ways)
{
#define TRAILERS(sum)                                                                          \
    "X-Hop: 1\r\nX-Sum: " sum "\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-Host: forged\r\n"     \
    "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: forged\r\nVia: forged\r\nHost: forged\r\n" \
    "Authorization: forged\r\nConnection: X-Sum\r\n\r\n"
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL,
               REPLIES({.text = "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n"
                                "5\r\nhello\r\n0\r\n" TRAILERS("42")}));
    seen = ask(&proxy,
               HTTP_CALL("POST /") "Connection: close, X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   "3\r\nabc\r\n0\r\n" TRAILERS("43"),
               answer);
    assert_contains(seen, "3\r\nabc\r\n0\r\nX-Sum: 43\r\n\r\n");
    assert_contains(answer, "5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n");
    close_proxy(&proxy);
#undef TRAILERS
}

TEST_EACH_LOOP(http_forward, asks_the_origin_for_paths)
{
    static const char *const rows[][2] = {
        {"GET http://test HTTP/1.1", "GET / HTTP/1.1\r\n"},
        {"GET http://test?a=b HTTP/1.1", "GET /?a=b HTTP/1.1\r\n"},
        {"GET http://test/c?d HTTP/1.1", "GET /c?d HTTP/1.1\r\n"},
        {"QWERTYUIOPASDFGHJKLZXCVBNMQWERTYUIOPASDFGHJKLZXCVBNMQWERTYUIOPASDFGHJKLZ / HTTP/1.1",
         "DFGHJKLZ / HTTP/1.1\r\n"},
    };
    struct proxy proxy = {.err = 0};
    char request[256], answer[HTTP_CALL_SIZE];

    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(request, sizeof(request), "%s\r\nHost: test\r\nConnection: close\r\n\r\n",
                       rows[i][0]);
        assert_contains(ask(&proxy, request, answer), rows[i][1]);
    }
    close_proxy(&proxy);
}

/* A proxy in front may add a line of its own behind the one that a client has forged. */
TEST_EACH_LOOP(http_forward, keeps_all_lines_of_forwarding_fields)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    seen = ask(&proxy,
               HTTP_CALL("GET /") "Connection: close, X-Forwarded-For, Forwarded, Host\r\n"
                                  "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n"
                                  "Via: 1.0 forged\r\nX-Forwarded-For: 192.0.2.1\r\n"
                                  "Forwarded: for=192.0.2.1\r\nVia: 1.1 front\r\n\r\n",
               answer);
    assert_contains(seen, "\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1, 127.0.0.1\r\n");
    assert_contains(
        seen,
        "\r\nForwarded: for=6.6.6.6, for=192.0.2.1, for=127.0.0.1;host=\"test\";proto=http\r\n");
    assert_contains(seen, "\r\nVia: 1.0 forged, 1.1 front, 1.1 weir\r\n");
    assert_contains(seen, "\r\nHost: test\r\n");
    assert_lacks(strstr(seen, "X-Forwarded-For") + 1, "X-Forwarded-For"); /* one line */
    close_proxy(&proxy);
}

/* What the client has asked for is known to a trusted proxy alone. */
TEST_EACH_LOOP(http_forward, keeps_scheme_and_host_of_trusted_proxies)
{
    static const char *const local[] = {"127.0.0.1", NULL};
    static const char request[] =
        HTTP_CALL("GET /") "Connection: close\r\nX-Forwarded-Proto: https\r\n"
                           "X-Forwarded-Host: example.org\r\n\r\n";
    struct proxy proxy = {.trusted_proxies = local}, stranger = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    seen = ask(&proxy, request, answer);
    assert_contains(seen, "\r\nX-Forwarded-Proto: https\r\n");
    assert_contains(seen, "\r\nX-Forwarded-Host: example.org\r\n");
    start(&stranger, host, NULL);
    memcpy(stranger.url, proxy.url, sizeof(stranger.url));
    http_call(stranger.server, request, answer);
    assert_contains(seen, "\r\nX-Forwarded-Proto: http\r\n");
    assert_contains(seen, "\r\nX-Forwarded-Host: test\r\n");
    client_close(stranger.client);
    client_close(proxy.client);
    weir_http_server_release(stranger.server);
    weir_http_server_release(proxy.server);
    scripted_server_close(&proxy.origin);
}

/* An open quote would swallow what a proxy adds. */
TEST_EACH_LOOP(http_forward, replaces_a_malformed_forwarded)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    seen =
        ask(&proxy, HTTP_CALL("GET /") "Connection: close\r\nForwarded: for=6.6.6.6;x=\"\r\n\r\n",
            answer);
    assert_contains(seen, "\r\nForwarded: for=127.0.0.1;host=\"test\";proto=http\r\n");
    close_proxy(&proxy);
}

/* A server that forwards to a route of its own. */
static void open_own_origin(struct proxy *proxy, struct host *host)
{
    weir_address address;

    start(proxy, host, NULL);
    assert_int_equal(weir_channel_local_address(
                         weir_server_listener(weir_http_server_server(proxy->server), 0), &address),
                     0);
    (void)snprintf(proxy->url, sizeof(proxy->url), "http://127.0.0.1:%u",
                   weir_address_port(&address));
}

TEST_EACH_LOOP(http_forward, lets_events_change_request_and_response)
{
    struct proxy proxy = {.target = "/repeat"};
    char answer[HTTP_CALL_SIZE];

    open_own_origin(&proxy, host);
    http_call(proxy.server, HTTP_CALL("PUT /") "Connection: close\r\nContent-Length: 3\r\n\r\nabc",
              answer);
    assert_contains(answer, "Server: front\r\n");
    assert_contains(answer, "\r\n\r\nabc");
    close_proxy(&proxy);
}

/* The client is asked for its content when the origin asks. */
TEST_EACH_LOOP(http_forward, passes_on_that_content_is_expected)
{
    struct proxy proxy = {.target = "/repeat"};
    char answer[HTTP_CALL_SIZE];
    int peer;

    open_own_origin(&proxy, host);
    peer = raw_client_connect(weir_http_server_server(proxy.server));
    raw_client_send(peer, HTTP_CALL("PUT /") "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    http_call_receive_one(peer, 0, answer);
    assert_string_equal(answer, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_client_send(peer, "abc");
    http_call_receive_one(peer, 3, answer);
    assert_contains(answer, "\r\n\r\nabc");
    raw_client_close(peer);
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, asks_for_no_content_that_the_origin_refuses)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL,
               REPLIES({.text = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
                        .at_head = true}));
    seen =
        ask(&proxy, HTTP_CALL("PUT /") "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n", answer);
    assert_contains(seen, "Expect: 100-continue\r\n");
    assert_contains(answer, "HTTP/1.1 401 Unauthorized\r\n");
    assert_contains(answer, "Connection: close\r\n");
    assert_lacks(answer, "100 Continue");
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, passes_interim_responses_on)
{
    static const char hints[] = "HTTP/1.1 103 Early Hints\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                                "Link: </a>\r\n\r\n" OK(2, "ok");
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];

    open_proxy(&proxy, host, NULL, REPLIES({.text = hints}));
    IGNORE_RESULT(ask(&proxy, HTTP_LAST("/"), answer));
    assert_memory_equal(answer, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n",
                        57);
    IGNORE_RESULT(ask(&proxy, "GET / HTTP/1.0\r\nHost: test\r\n\r\n", answer));
    assert_memory_equal(answer, "HTTP/1.1 200 OK\r\n", 17); /* 1.0 does not know them */
    close_proxy(&proxy);
}

/* ---- WebSockets ---- */

#define UPGRADE(protocol) HTTP_CALL("GET /") "Connection: Upgrade\r\nUpgrade: " protocol "\r\n\r\n"
#define MANY ((size_t)64 << 20) /* bytes that no queue of a proxy may hold */

/* The other protocol of the origin: says "hhhhh" and echoes, until it is asked for something else:
 * "flood" never ends, "deaf" stops reading, "bye" closes, "die" resets. */
static struct {
    _Atomic size_t flooded;
    bool floods;
    struct call_counter deaf, ended;
} other;

static void say(weir_ctx *ctx, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(length, 0, &buf), 0);
    assert_int_equal(weir_buf_write_fill(buf, 'h', length), 0);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static void flood(weir_ctx *ctx)
{
    while (weir_ctx_is_writable(ctx) && other.flooded < MANY) {
        other.flooded += 65536;
        say(ctx, 65536);
    }
}

static void other_on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_span bytes = weir_buf_span(weir_buf_of(msg));
    weir_channel *channel = weir_ctx_channel(ctx);

    if (weir_span_equal(bytes, weir_span_of_text("flood"))) {
        other.floods = true;
        flood(ctx);
    } else if (weir_span_equal(bytes, weir_span_of_text("deaf"))) {
        weir_ctx_set_auto_read(ctx, false);
        call_counter_add(&other.deaf);
    } else if (weir_span_equal(bytes, weir_span_of_text("bye"))) {
        weir_close(ctx, NULL);
    } else if (weir_span_equal(bytes, weir_span_of_text("die"))) {
        IGNORE_RESULT(
            weir_channel_set_options(channel, WEIR_CHANNEL_OPTIONS(.reset_on_close = true)));
        weir_channel_abort(channel, NULL);
    } else {
        weir_write_and_flush(ctx, weir_msg_retain(msg), NULL);
    }
    weir_msg_release(msg);
}

static void other_on_writability(weir_ctx *ctx)
{
    if (other.floods)
        flood(ctx);
}

static void other_on_event(weir_ctx *ctx, weir_msg *event)
{
    weir_fire_event(ctx, event);
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL);
}

static void other_on_inactive(weir_ctx *ctx)
{
    call_counter_add(&other.ended);
    weir_fire_inactive(ctx);
}

static void other_on_added(weir_ctx *ctx)
{
    say(ctx, 5);
}

static const weir_handler other_protocol = {.name = "other",
                                            .added = other_on_added,
                                            .read = other_on_read,
                                            .writability = other_on_writability,
                                            .event = other_on_event,
                                            .inactive = other_on_inactive};

static int add_other(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &other_protocol, NULL);
}

static void switch_protocols(weir_http_exchange *exchange, void *user_data)
{
    weir_http_headers *headers = weir_http_exchange_headers(exchange);

    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_UPGRADE, "websocket"), 0);
    assert_int_equal(
        weir_http_headers_add_text(headers, WEIR_HTTP_SEC_WEBSOCKET_ACCEPT, "accepted"), 0);
    assert_int_equal(weir_http_exchange_upgrade(exchange, add_other, user_data), 0);
}

static int open_tunnel(struct proxy *proxy, struct host *host)
{
    char answer[HTTP_CALL_SIZE];
    int peer;

    memset(&other, 0, sizeof(other));
    proxy->target = "/ws";
    open_own_origin(proxy, host);
    peer = raw_client_connect(weir_http_server_server(proxy->server));
    raw_client_send(peer, UPGRADE("websocket"));
    http_call_receive_one(peer, 5, answer);
    assert_contains(answer, "HTTP/1.1 101 Switching Protocols\r\n");
    assert_contains(answer, "Connection: Upgrade\r\n");
    assert_contains(answer, "Upgrade: websocket\r\n");
    assert_contains(answer, "Sec-WebSocket-Accept: accepted\r\n");
    assert_contains(answer, "\r\n\r\nhhhhh");
    return peer;
}

static void close_tunnel(struct proxy *proxy, int peer)
{
    raw_client_close(peer);
    assert_true(call_counter_await_for(&other.ended, 1, TEST_TIMEOUT_NS));
    assert_true(call_counter_await_for(&proxy->ends, 1, TEST_TIMEOUT_NS));
    close_proxy(proxy);
}

TEST_EACH_LOOP(http_forward, passes_websockets_both_ways)
{
    static char block[100000], heard[sizeof(block)];
    struct proxy proxy = {.err = -1};
    int peer = open_tunnel(&proxy, host);

    raw_client_echo(peer, "abc");
    for (int i = 0; i < 10; i++) {
        memset(block, 'a' + i, sizeof(block));
        raw_client_send_bytes(peer, block, sizeof(block));
        raw_client_receive_bytes(peer, heard, sizeof(heard));
        assert_memory_equal(heard, block, sizeof(block));
    }
    close_tunnel(&proxy, peer);
    assert_int_equal(proxy.err, 0);
}

/* A client need not wait for the 101. */
TEST_EACH_LOOP(http_forward, passes_bytes_that_come_with_the_upgrade)
{
    struct proxy proxy = {.target = "/ws"};
    char answer[HTTP_CALL_SIZE];
    int peer;

    memset(&other, 0, sizeof(other));
    open_own_origin(&proxy, host);
    peer = raw_client_connect(weir_http_server_server(proxy.server));
    raw_client_send(peer, UPGRADE("websocket") "abc");
    http_call_receive_one(peer, 8, answer);
    assert_contains(answer, "\r\n\r\nhhhhhabc");
    close_tunnel(&proxy, peer);
}

TEST_EACH_LOOP(http_forward, ends_a_websocket_that_the_origin_closes)
{
    struct proxy proxy = {.err = -1};
    int peer = open_tunnel(&proxy, host);

    raw_client_send(peer, "bye");
    raw_client_receive_end(peer);
    close_tunnel(&proxy, peer);
    assert_int_equal(proxy.err, 0);
}

TEST_EACH_LOOP(http_forward, resets_a_websocket_that_the_origin_resets)
{
    struct proxy proxy = {.err = 0};
    int peer = open_tunnel(&proxy, host);
    char answer[HTTP_CALL_SIZE];

    raw_client_send(peer, "die");
    assert_false(http_call_receive(peer, answer));
    close_tunnel(&proxy, peer);
    assert_true(proxy.err < 0);
}

TEST_EACH_LOOP(http_forward, stops_an_origin_that_floods_a_websocket)
{
    struct proxy proxy = {.err = 0};
    int peer = open_tunnel(&proxy, host);
    size_t before;

    raw_client_send(peer, "flood");
    do { /* until it stands still */
        before = other.flooded;
        host_turn(host, 20);
    } while (other.flooded == 0 || other.flooded > before);
    assert_true(other.flooded < MANY);
    close_tunnel(&proxy, peer);
}

TEST_EACH_LOOP(http_forward, stops_a_client_that_floods_a_websocket)
{
    static char block[65536];
    struct proxy proxy = {.err = 0};
    int peer = open_tunnel(&proxy, host);
    size_t sent = 0;
    int silent = 0;

    raw_client_send(peer, "deaf");
    assert_true(call_counter_await_for(&other.deaf, 1, TEST_TIMEOUT_NS));
    while (sent < MANY && silent < 20) {
        ssize_t count = send(peer, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);

        sent += count > 0 ? (size_t)count : 0;
        silent = count > 0 ? 0 : silent + 1;
        host_turn(host, 5);
    }
    assert_true(sent < MANY);
    raw_client_close(peer);
    client_close(proxy.client); /* the origin does not read */
    assert_true(call_counter_await_for(&proxy.ends, 1, TEST_TIMEOUT_NS));
    weir_http_server_release(proxy.server);
}

TEST_EACH_LOOP(http_forward, closes_a_websocket_that_is_idle)
{
    struct proxy proxy = {.tunnel_timeout_ns = weir_ms(200)};
    int peer = open_tunnel(&proxy, host);

    raw_client_receive_end(peer);
    close_tunnel(&proxy, peer);
}

/* h2c would be a way past the proxy. */
TEST_EACH_LOOP(http_forward, offers_no_other_protocol)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    const char *seen;

    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    seen = ask(&proxy, HTTP_CALL("GET /") "Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n",
               answer);
    assert_lacks(seen, "Upgrade");
    proxy.no_websockets = true;
    seen =
        ask(&proxy, HTTP_CALL("GET /") "Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n",
            answer);
    assert_lacks(seen, "Upgrade");
    close_proxy(&proxy);
}

/* ---- failures ---- */

static void assert_refused(struct proxy *proxy, const char *request, const char *status,
                           const char *text)
{
    char answer[HTTP_CALL_SIZE];
    uint32_t ends = proxy->ends.calls;

    http_call(proxy->server, request, answer);
    assert_contains(answer, status);
    assert_contains(answer, text);
    assert_true(call_counter_await_for(&proxy->ends, ends + 1, TEST_TIMEOUT_NS));
    assert_true(proxy->err < 0);
}

TEST_EACH_LOOP(http_forward, reports_that_the_origin_has_failed)
{
    weir_address nobody = unused_address();
    struct proxy proxy = {.err = 0};
    char origin[256], text[WEIR_ADDRESS_TEXT_SIZE];

    open_proxy(&proxy, host, WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(400)),
               REPLIES({.text = "", .action = SCRIPTED_CLOSE}, {.text = "SMTP\r\n\r\n"},
                       {.text = "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\nX-Leak: 1\r\n\r\n"},
                       {.text = ""}));
    assert_refused(&proxy, HTTP_LAST("/"), "502 Bad Gateway", "no response of the origin");
    assert_refused(&proxy, HTTP_LAST("/"), "502 Bad Gateway", "malformed");
    assert_refused(&proxy, HTTP_LAST("/"), "502 Bad Gateway", "malformed");
    assert_refused(&proxy, HTTP_LAST("/"), "504 Gateway Timeout", "not answered in time");
    memcpy(origin, proxy.url, sizeof(origin));
    (void)snprintf(proxy.url, sizeof(proxy.url), "http://%s",
                   weir_address_format(&nobody, text, sizeof(text)));
    assert_refused(&proxy, HTTP_LAST("/"), "502 Bad Gateway", "cannot be reached");
    assert_int_equal(proxy.err, -ECONNREFUSED);
    assert_contains(proxy.detail, ": connect: ");
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, tries_another_origin)
{
    weir_address nobody = unused_address();
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE], text[WEIR_ADDRESS_TEXT_SIZE], good[256];

    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    memcpy(good, proxy.url, sizeof(good));
    proxy.next_url = good;
    (void)snprintf(proxy.url, sizeof(proxy.url), "http://%s",
                   weir_address_format(&nobody, text, sizeof(text)));
    http_call(proxy.server, HTTP_CALL("POST /") "Connection: close\r\nContent-Length: 3\r\n\r\nabc",
              answer);
    assert_contains(answer, "\r\n\r\nok");
    assert_contains(proxy.origin.last, "\r\n\r\nabc");
    assert_int_equal(proxy.nexts, 1);
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, repeats_no_content_that_is_gone)
{
    struct proxy proxy = {.err = 0};
    char good[256];

    open_proxy(&proxy, host, NULL, REPLIES({.text = "", .action = SCRIPTED_CLOSE}));
    memcpy(good, proxy.url, sizeof(good));
    proxy.next_url = good;
    assert_refused(&proxy, HTTP_CALL("PUT /") "Connection: close\r\nContent-Length: 3\r\n\r\nabc",
                   "502 Bad Gateway", "no response");
    assert_int_equal(proxy.nexts, 0);
    assert_int_equal(proxy.origin.requests, 1);
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, resets_when_the_origin_breaks_off)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];
    int peer;

    open_proxy(&proxy, host, NULL,
               REPLIES({.text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
                        .action = SCRIPTED_CLOSE}));
    peer = raw_client_connect(weir_http_server_server(proxy.server));
    raw_client_send(peer, HTTP_LAST("/"));
    assert_false(http_call_receive(peer, answer)); /* a reset */
    raw_client_close(peer);
    assert_true(call_counter_await_for(&proxy.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(proxy.err, WEIR_ECUTOFF);
    close_proxy(&proxy);
}

/* Its own limits are not the origin's fault. */
TEST_EACH_LOOP(http_forward, says_that_fields_are_too_long)
{
    enum { LENGTH = 65500 };
    struct proxy proxy = {.http1 = {.max_header_bytes = 1 << 17}};
    char *request = malloc(LENGTH + 200);

    assert_non_null(request);
    (void)snprintf(request, LENGTH + 200,
                   HTTP_CALL("GET /") "Connection: close\r\nX-Long: %0*d\r\n\r\n", LENGTH, 1);
    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    assert_refused(&proxy, request, "431 Request Header Fields Too Large",
                   "too long to be forwarded");
    assert_int_equal(proxy.origin.requests, 0);
    free(request);
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, answers_requests_that_wait_too_long)
{
    struct proxy proxy = {.err = 0};
    int first;

    open_proxy(&proxy, host,
               WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 1, .connect_timeout_ns = weir_ms(400)),
               REPLIES({.text = ""}));
    first = raw_client_connect(weir_http_server_server(proxy.server));
    raw_client_send(first, HTTP_GET("/"));
    while (proxy.origin.requests == 0)
        host_turn(host, 1);
    assert_refused(&proxy, HTTP_LAST("/"), "503 Service Unavailable", "all connections");
    raw_client_close(first);
    close_proxy(&proxy);
}

TEST_EACH_LOOP(http_forward, ends_the_call_of_a_client_that_has_gone)
{
    const struct linger now = {.l_onoff = 1}; /* a reset */
    struct proxy proxy = {.err = 0};
    int peer;

    open_proxy(&proxy, host, NULL, REPLIES({.text = ""}));
    peer = raw_client_connect(weir_http_server_server(proxy.server));
    raw_client_send(peer, HTTP_GET("/"));
    while (proxy.origin.requests == 0)
        host_turn(host, 1);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    raw_client_close(peer);
    assert_true(call_counter_await_for(&proxy.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(proxy.err, WEIR_ECANCELED);
    assert_int_equal(client_stats(proxy.client).calls, 0);
    close_proxy(&proxy);
}

static const char post[] =
    HTTP_CALL("POST /") "Connection: close\r\nX-Forwarded-For: 192.0.2.1\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";

/* The client gets an answer, or notices that it does not. */
static bool ask_without_memory(struct proxy *proxy, unsigned n)
{
    int peer = raw_client_connect(weir_http_server_server(proxy->server));
    char answer[HTTP_CALL_SIZE];
    bool has_failed;

    test_memory_fail_at(n);
    IGNORE_RESULT(send(peer, post, strlen(post), MSG_NOSIGNAL));
    IGNORE_RESULT(http_call_receive(peer, answer));
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    raw_client_close(peer);
    if (!has_failed)
        assert_contains(answer, "ok\r\n");
    return has_failed;
}

TEST_EACH_LOOP(http_forward, survives_allocation_failures)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];

    open_proxy(&proxy, host, NULL,
               REPLIES({.text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "2\r\nok\r\n0\r\nX-Sum: 42\r\n\r\n"}));
    log_capture_start();
    for (unsigned n = 1; ask_without_memory(&proxy, n); n++)
        ;
    http_call(proxy.server, post, answer);
    assert_contains(answer, "ok\r\n0\r\nX-Sum: 42\r\n\r\n");
    close_proxy(&proxy);
}

/* ---- slow clients ---- */

/* With no limit of connections, and with content that is collected first. */
static void assert_serves_others(struct proxy *proxy, struct host *host,
                                 const weir_http_client_options *options)
{
    enum { COUNT = 20 };
    char answer[HTTP_CALL_SIZE];
    int slow[COUNT];

    open_proxy(proxy, host, options, REPLIES({.text = OK(2, "ok")}));
    for (int i = 0; i < COUNT; i++) {
        slow[i] = raw_client_connect(weir_http_server_server(proxy->server));
        raw_client_send(slow[i], HTTP_CALL("POST /") "Content-Length: 3\r\n\r\na");
    }
    host_turn(host, 3);
    http_call(proxy->server, HTTP_LAST("/"), answer);
    assert_contains(answer, "\r\n\r\nok");
    for (int i = 0; i < COUNT; i++) {
        raw_client_send(slow[i], "bc");
        http_call_receive_one(slow[i], 2, answer);
        raw_client_close(slow[i]);
    }
    close_proxy(proxy);
}

TEST_EACH_LOOP(http_forward, serves_others_while_clients_are_slow)
{
    struct proxy proxy = {.err = 0};

    assert_serves_others(&proxy, host,
                         WEIR_HTTP_CLIENT_OPTIONS(.max_connections = WEIR_OFF, .max_idle = 1));
}

TEST_EACH_LOOP(http_forward, collects_content_before_it_takes_a_connection)
{
    struct proxy proxy = {.collects = true};

    assert_serves_others(&proxy, host, WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 1));
}

/* ---- misuse ---- */

TEST_EACH_LOOP(http_forward, runs_on_the_loop_only)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &proxy.handlers), 0);
    open_proxy(&proxy, host, NULL, REPLIES({.text = OK(2, "ok")}));
    log_capture_start();
    http_call(proxy.server, HTTP_LAST("/"), answer);
    assert_contains(answer, "500 Internal Server Error");
    assert_int_equal(proxy.err, -EINVAL);
    close_proxy(&proxy);
    assert_int_equal(weir_group_shutdown(proxy.handlers, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(proxy.handlers, TEST_TIMEOUT_NS), 0);
    weir_group_release(proxy.handlers);
}

TEST_EACH_LOOP(http_forward, refuses_what_is_no_origin)
{
    struct proxy proxy = {.err = 0};
    char answer[HTTP_CALL_SIZE];

    start(&proxy, host, NULL);
    log_capture_start();
    (void)snprintf(proxy.url, sizeof(proxy.url), "127.0.0.1:80");
    http_call(proxy.server, HTTP_LAST("/"), answer);
    assert_contains(answer, "500 Internal Server Error");
    assert_int_equal(proxy.ends.calls, 0);
    close_proxy(&proxy);
}
