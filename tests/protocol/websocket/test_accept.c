/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_ws_accept on sockets: the opening handshake, refusals, and the end of a server.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
#define OPENING HTTP_CALL("GET /ws") UPGRADE KEY "Sec-WebSocket-Version: 13\r\n"
#define HELLO "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58" /* RFC 6455, 5.7 */

struct site {
    weir_http_server *server;
    weir_group *group; /* of the route */
    _Atomic int result;
    struct call_counter accepted, opened, closed;
    _Atomic unsigned code;
    _Atomic bool has_protocol, has_path;
};

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct site *site = *(struct site **)weir_ctx_state(ctx);
    const weir_ws_opened *opened = weir_ws_opened_of(event);
    const weir_ws_closed *closed = weir_ws_closed_of(event);

    if (opened != NULL) {
        site->has_protocol = strcmp(opened->protocol, "chat") == 0;
        site->has_path =
            weir_span_equal(weir_http_request_path(opened->request), weir_span_of_text("/ws"));
        call_counter_add(&site->opened);
    }
    if (closed != NULL) {
        site->code = closed->code;
        call_counter_add(&site->closed);
    }
    weir_fire_event(ctx, event);
}

static int init_echo(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct site *));
    return 0;
}

static const weir_handler echo = {.name = "echo",
                                  .state_size = sizeof(struct site *),
                                  .init = init_echo,
                                  .read = on_read,
                                  .event = on_event};

static int add_echo(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, &user_data);
}

static void accept_here(weir_http_exchange *exchange, void *user_data)
{
    char chat[] = "chat"; /* is gone when the handler has returned */
    const char *const protocols[] = {chat, "other", NULL};
    struct site *site = user_data;

    (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_SERVER,
                                     "test");
    site->result = weir_ws_accept(
        exchange, WEIR_WS_OPTIONS(.init = add_echo, .user_data = site, .protocols = protocols));
    memset(chat, 'x', sizeof(chat) - 1);
    call_counter_add(&site->accepted);
}

static void open_site(struct host *host, struct site *site, bool is_remote)
{
    const weir_http_route routes[] = {
        {"GET", "/ws", accept_here, site, .group = is_remote ? &site->group : NULL}, {0}};

    if (is_remote)
        assert_int_equal(
            weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &site->group),
            0);
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group),
                               &site->server),
        0);
}

static void close_site(struct site *site)
{
    weir_http_server_release(site->server);
    weir_group_release(site->group);
}

static int connect_to(struct site *site, const char *text, size_t length)
{
    int peer = raw_client_connect(weir_http_server_server(site->server));

    raw_client_send_bytes(peer, text, length);
    return peer;
}

static void assert_received(int peer, const char *bytes, size_t length)
{
    char received[64];

    raw_client_receive_bytes(peer, received, length);
    assert_memory_equal(received, bytes, length);
}

/* The first message arrives together with the request, in one piece. */
static void open_and_close(struct host *host, bool is_remote)
{
    static const char opening[] = OPENING "Sec-WebSocket-Protocol: a, chat\r\n\r\n" HELLO;
    static const char bye[] = "\x88\x82\x00\x00\x00\x00\x03\xe8";
    struct site site = {0};
    char answer[HTTP_CALL_SIZE];
    int peer;

    open_site(host, &site, is_remote);
    peer = connect_to(&site, opening, sizeof(opening) - 1);
    http_call_receive_one(peer, 7, answer);
    assert_contains(answer, "HTTP/1.1 101 Switching Protocols\r\n");
    assert_contains(answer, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
    assert_contains(answer, "Sec-WebSocket-Protocol: chat\r\n");
    assert_contains(answer, "Server: test\r\n");
    assert_contains(answer, "\r\n\r\n\x81\x05Hello");
    assert_true(call_counter_await(&site.accepted, 1));
    assert_int_equal(site.result, 0);
    assert_true(site.has_protocol);
    assert_true(site.has_path);
    raw_client_send_bytes(peer, HELLO, sizeof(HELLO) - 1);
    assert_received(peer, "\x81\x05Hello", 7);
    raw_client_send_bytes(peer, bye, sizeof(bye) - 1);
    assert_received(peer, "\x88\x02\x03\xe8", 4);
    raw_client_receive_end(peer);
    close(peer);
    assert_true(call_counter_await(&site.closed, 1));
    assert_int_equal(site.code, 1000);
    close_site(&site);
}

TEST_EACH_HOST(accept, opens_and_closes)
{
    open_and_close(host, false);
}

TEST_EACH_HOST(accept, opens_from_a_route_of_a_group)
{
    open_and_close(host, true);
}

TEST_EACH_HOST(accept, goes_away_when_the_server_stops)
{
    static const char opening[] = OPENING "\r\n";
    struct site site = {0};
    char answer[HTTP_CALL_SIZE];
    int peer;

    open_site(host, &site, false);
    peer = connect_to(&site, opening, sizeof(opening) - 1);
    http_call_receive_one(peer, 0, answer);
    assert_true(call_counter_await(&site.opened, 1));
    assert_int_equal(weir_group_shutdown(host->group, 0, weir_seconds(10)), 0);
    assert_received(peer, "\x88\x02\x03\xe9", 4);
    close(peer);
    assert_true(call_counter_await(&site.closed, 1));
    assert_int_equal(site.code, WEIR_WS_LOST);
    assert_int_equal(weir_group_await_termination(host->group, weir_seconds(10)), 0);
    close_site(&site);
}

TEST_EACH_HOST(accept, refuses_other_requests)
{
    static const struct {
        const char *request, *answer;
    } rows[] = {
        {HTTP_LAST("/ws"), " 426 "},
        {HTTP_CALL("GET /ws") UPGRADE KEY "Sec-WebSocket-Version: 8\r\n\r\n",
         "Sec-WebSocket-Version: 13\r\n"},
        {HTTP_CALL("GET /ws") UPGRADE "Sec-WebSocket-Version: 13\r\n\r\n", " 400 "},
        {OPENING "Origin: http://evil.example\r\n\r\n", " 403 "},
    };

    struct site site = {0};
    char answer[HTTP_CALL_SIZE];

    open_site(host, &site, false);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int peer = connect_to(&site, rows[i].request, strlen(rows[i].request));

        shutdown(peer, SHUT_WR);
        (void)http_call_receive(peer, answer);
        assert_contains(answer, rows[i].answer);
        assert_true(call_counter_await(&site.accepted, i + 1));
        assert_int_equal(site.result, WEIR_EMALFORMED);
        close(peer);
    }
    close_site(&site);
}
