/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_ws_connect on sockets: against a server of weir, and against a script that refuses.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include <weir/clock.h>
#include <weir/error.h>

#include "protocol/websocket/client.h"
#include "protocol/websocket/handshake.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/protocol/http/http_call.h"
#include "support/protocol/http/scripted_server.h"
#include "support/resolver/fake_dns.h"

/* ---- the application of the client ---- */

struct caller {
    weir_promise *done;
    struct call_counter opened, messages, closed;
    char protocol[16], text[64], server[16];
    _Atomic unsigned code;
    bool has_deflate, init_fails;
};

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct caller *caller = *(struct caller **)weir_ctx_state(ctx);
    weir_span bytes = weir_ws_message_bytes(weir_ws_message_of(msg));

    memcpy(caller->text, bytes.data, bytes.length);
    call_counter_add(&caller->messages);
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct caller *caller = *(struct caller **)weir_ctx_state(ctx);
    const weir_ws_opened *opened = weir_ws_opened_of(event);
    const weir_ws_closed *closed = weir_ws_closed_of(event);

    if (opened != NULL) {
        weir_span server =
            weir_http_headers_get(weir_http_response_headers(opened->response), WEIR_HTTP_SERVER);

        assert_false(weir_promise_is_done(caller->done));
        (void)snprintf(caller->protocol, sizeof(caller->protocol), "%s", opened->protocol);
        (void)snprintf(caller->server, sizeof(caller->server), "%.*s", (int)server.length,
                       (const char *)server.data);
        caller->has_deflate = opened->has_deflate;
        call_counter_add(&caller->opened);
    }
    if (closed != NULL) {
        caller->code = closed->code;
        call_counter_add(&caller->closed);
    }
    weir_fire_event(ctx, event);
}

static int init_app(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct caller *));
    return 0;
}

static const weir_handler app = {.name = "app",
                                 .state_size = sizeof(struct caller *),
                                 .init = init_app,
                                 .read = on_read,
                                 .event = on_event};

static int add_app(weir_channel *channel, void *user_data)
{
    struct caller *caller = user_data;

    if (caller->init_fails)
        return -EIO;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &app, &user_data);
}

static const char *const protocols[] = {"best", "chat", NULL};

/* Begins to connect. The names of the protocols are gone when it does. */
static void begin(struct host *host, struct caller *caller, const char *url,
                  const weir_ws_client_options *options)
{
    weir_ws_client_options own = *options;
    static char best[8], chat[8];
    const char *const names[] = {strcpy(best, "best"), strcpy(chat, "chat"), NULL};

    caller->done = new_promise(host->loop);
    own.url = url;
    own.group = own.loop == NULL ? host->group : NULL;
    own.ws = WEIR_WS_OPTIONS(.init = add_app, .user_data = caller, .protocols = names,
                             .deflate = true, .deflate_min = 1);
    assert_int_equal(weir_ws_connect(&own, caller->done), 0);
    memset(best, 'x', 4);
    memset(chat, 'x', 4);
}

/* Waits for a failure, and checks what its detail says behind the URL. */
static void assert_fails(struct caller *caller, const char *url, int err, const char *detail)
{
    char expected[512];

    assert_int_equal(weir_promise_sync(caller->done, weir_seconds(10)), err);
    (void)snprintf(expected, sizeof(expected), "%s: %s", url, detail);
    assert_string_equal(weir_promise_detail(caller->done), expected);
    assert_int_equal(caller->opened.calls, 0);
    weir_promise_release(caller->done);
}

/* ---- the server ---- */

static void on_echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = on_echo};

/* The greeting is behind the 101, most likely in one piece with it. */
static int add_echo(weir_channel *channel, void *user_data)
{
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);

    (void)user_data;
    if (err == 0)
        weir_ws_send_text(channel, "welcome", NULL);
    return err;
}

static void accept_here(weir_http_exchange *exchange, void *user_data)
{
    static const char *const known[] = {"other", "chat", NULL};

    (void)user_data;
    (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_SERVER,
                                     "test");
    if (weir_ws_accept(exchange,
                       WEIR_WS_OPTIONS(.init = add_echo, .deflate = true, .protocols = known)) < 0)
        (void)weir_http_respond_error(exchange, 503, "no memory");
}

static int add_nothing(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

/* A 101 with the right Sec-WebSocket-Accept, and with a field that the request does not allow. */
static void upgrade_with(weir_http_exchange *exchange, enum weir_http_name name, const char *value)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    weir_http_headers *headers = weir_http_exchange_headers(exchange);

    assert_int_equal(
        weir__ws_add_response_fields(headers, request, &(weir__ws_agreed){.protocol = NULL}), 0);
    assert_int_equal(weir_http_headers_set_text(headers, name, value), 0);
    assert_int_equal(weir_http_exchange_upgrade(exchange, add_nothing, NULL), 0);
}

static void select_protocol(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    upgrade_with(exchange, WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL, "other");
}

static void select_extension(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    upgrade_with(exchange, WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS, "permessage-snappy");
}

static void select_window(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    upgrade_with(exchange, WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS,
                 "permessage-deflate; client_max_window_bits=15");
}

static weir_http_server *open_server(struct host *host, char url[64])
{
    const weir_http_route routes[] = {{"GET", "/ws", accept_here},
                                      {"GET", "/protocol", select_protocol},
                                      {"GET", "/extension", select_extension},
                                      {"GET", "/window", select_window},
                                      {0}};
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_http_server *server = NULL;
    weir_address local;

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group),
                               &server),
        0);
    assert_int_equal(weir_channel_local_address(
                         weir_server_listener(weir_http_server_server(server), 0), &local),
                     0);
    (void)snprintf(url, 64, "ws://%s/ws?a=b",
                   weir_address_format(&local, address, sizeof(address)));
    return server;
}

TEST_EACH_LOOP(client, opens_echoes_and_closes)
{
    struct caller caller = {0};
    weir_channel *channel;
    char url[64];
    weir_http_server *server = open_server(host, url);

    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
    assert_int_equal(weir_promise_sync(caller.done, weir_seconds(10)), 0);
    assert_int_equal(caller.opened.calls, 1);
    assert_string_equal(caller.protocol, "chat");
    assert_string_equal(caller.server, "test");
    assert_true(caller.has_deflate);
    assert_true(call_counter_await(&caller.messages, 1));
    assert_string_equal(caller.text, "welcome");
    channel = weir_promise_value(caller.done);
    weir_ws_send_text(channel, "hello, hello, hello", NULL);
    assert_true(call_counter_await(&caller.messages, 2));
    assert_string_equal(caller.text, "hello, hello, hello");
    assert_int_equal(weir_ws_close(channel, WEIR_WS_NORMAL, "bye", NULL), 0);
    assert_true(call_counter_await(&caller.closed, 1));
    assert_int_equal(caller.code, WEIR_WS_NORMAL);
    weir_promise_release(caller.done);
    weir_http_server_release(server);
}

/* On another thread than its loop's. */
TEST_EACH_LOOP(client, cannot_close_other_channels)
{
    char url[64];
    weir_http_server *server = open_server(host, url);
    weir_channel *listener = weir_server_listener(weir_http_server_server(server), 0);
    weir_promise *done = new_promise(host->loop);

    assert_int_equal(weir_ws_close(listener, WEIR_WS_NORMAL, NULL, done), 0);
    assert_int_equal(weir_promise_sync(done, weir_seconds(10)), -EINVAL);
    assert_true(weir_channel_is_open(listener));
    log_capture_start();
    assert_int_equal(weir_ws_close(listener, WEIR_WS_NORMAL, NULL, NULL), 0);
    host_turn(host, 2);
    assert_log_contains("weir_ws_close: the channel is not a WebSocket");
    assert_true(weir_channel_is_open(listener));
    weir_promise_release(done);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(client, connects_on_a_loop)
{
    struct caller caller = {0};
    char url[64];
    weir_http_server *server = open_server(host, url);

    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.loop = host->loop));
    assert_int_equal(weir_promise_sync(caller.done, weir_seconds(10)), 0);
    assert_ptr_equal(weir_channel_executor(weir_promise_value(caller.done)), host->loop);
    weir_channel_abort(weir_promise_value(caller.done), NULL);
    weir_promise_release(caller.done);
    weir_http_server_release(server);
}

static struct call_counter passed; /* of any protocol */

static void count_passed(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_buf_of(msg) != NULL) /* bytes of the WebSocket */
        call_counter_add(&passed);
    weir_fire_read(ctx, msg);
}

static const weir_handler counter_of_passed = {.name = "passed", .read = count_passed};

static int add_counter(weir_channel *channel, void *user_data)
{
    assert_ptr_equal(user_data, &passed);
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &counter_of_passed, NULL);
}

TEST_EACH_LOOP(client, has_handlers_before_those_of_the_websocket)
{
    struct caller caller = {0};
    char url[64];
    weir_http_server *server = open_server(host, url);

    memset(&passed, 0, sizeof(passed));
    begin(host, &caller, url,
          WEIR_WS_CLIENT_OPTIONS(.init_connection = add_counter, .user_data = &passed));
    assert_int_equal(weir_promise_sync(caller.done, weir_seconds(10)), 0);
    assert_true(call_counter_await(&caller.messages, 1));
    assert_string_equal(caller.text, "welcome");
    assert_true(passed.calls > 0);
    weir_channel_abort(weir_promise_value(caller.done), NULL);
    weir_promise_release(caller.done);
    weir_http_server_release(server);
}

static int refuse(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return -EIO;
}

TEST_EACH_LOOP(client, fails_if_its_connection_is_refused)
{
    struct caller caller = {0};
    char url[64];
    weir_http_server *server = open_server(host, url);

    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.init_connection = refuse));
    assert_int_equal(weir_promise_sync(caller.done, weir_seconds(10)), -EIO);
    assert_int_equal(caller.opened.calls, 0);
    weir_promise_release(caller.done);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(client, reads_on_demand)
{
    struct caller caller = {0};
    weir_channel *channel;
    char url[64];
    weir_http_server *server = open_server(host, url);

    begin(host, &caller, url,
          WEIR_WS_CLIENT_OPTIONS(.channel_options = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)));
    assert_int_equal(weir_promise_sync(caller.done, weir_seconds(10)), 0);
    host_turn(host, 3);
    assert_int_equal(caller.messages.calls, 0);
    channel = weir_promise_value(caller.done);
    weir_channel_request_read(channel);
    assert_true(call_counter_await(&caller.messages, 1));
    assert_string_equal(caller.text, "welcome");
    weir_channel_abort(channel, NULL);
    assert_true(call_counter_await(&caller.closed, 1));
    assert_int_equal(caller.code, WEIR_WS_LOST);
    weir_promise_release(caller.done);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(client, fails_if_init_fails)
{
    struct caller caller = {.init_fails = true};
    char url[64];
    weir_http_server *server = open_server(host, url);

    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
    assert_fails(&caller, url, -EIO, "cannot add the handlers: Input/output error");
    weir_http_server_release(server);
}

TEST_EACH_LOOP(client, accepts_only_what_it_offered)
{
    static const struct {
        const char *path;
        int err;
        const char *detail;
    } rows[] = {
        {"/none", -ECONNREFUSED, "the server answered 404, expected 101"},
        {"/protocol", WEIR_EMALFORMED, "the server selected a subprotocol that was not offered"},
        {"/extension", WEIR_EMALFORMED, "the server selected an extension that was not offered"},
        {"/window", WEIR_EMALFORMED, "the server selected an extension that was not offered"},
    };
    char url[64];
    weir_http_server *server = open_server(host, url);
    char *path = strstr(url, "/ws");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct caller caller = {0};

        strcpy(path, rows[i].path);
        begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
        assert_fails(&caller, url, rows[i].err, rows[i].detail);
    }
    weir_http_server_release(server);
}

/* ---- a script instead of a server ---- */

#define SWITCHING "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE SWITCHING "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define LINE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LINES LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE

TEST_EACH_LOOP(client, fails_with_the_reason)
{
    static const struct {
        struct scripted_reply reply;
        int err;
        const char *detail;
    } rows[] = {
        {{"HTTP/1.1 302 Found\r\nLocation: /ws\r\nContent-Length: 0\r\n\r\n"},
         -ECONNREFUSED,
         "the server answered 302, expected 101"},
        {{SCRIPTED_OK(5, "hello")}, -ECONNREFUSED, "the server answered 200, expected 101"},
        {{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 Unauthorized\r\n\r\nwho?"},
         -EACCES,
         "the server answered 401, expected 101"},
        {{"HTTP/1.1 403 Forbidden\r\n\r\nno"}, -EACCES, "the server answered 403, expected 101"},
        {{UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"},
         WEIR_EMALFORMED,
         "Sec-WebSocket-Accept does not match the key"},
        {{UPGRADE "\r\n"}, WEIR_EMALFORMED, "Sec-WebSocket-Accept does not match the key"},
        {{SWITCHING "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"},
         WEIR_EMALFORMED,
         "the response has no Connection: Upgrade and Upgrade: websocket"},
        {{"", SCRIPTED_CLOSE}, WEIR_ECLOSED, "the server closed the connection"},
        {{UPGRADE, SCRIPTED_CLOSE}, WEIR_ECUTOFF, "connection closed in the middle of a response"},
        {{"HTTP/1.1 101 and so on, and on: " LINES, .repeats = 99}, WEIR_ETOOLONG, NULL},
        {{"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"}, WEIR_EMALFORMED, NULL},
    };
    struct scripted_reply replies[sizeof(rows) / sizeof(rows[0]) + 1] = {0};
    struct scripted_server server;
    char url[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        replies[i] = rows[i].reply;
    scripted_server_open(&server, host, replies);
    (void)scripted_server_url(&server, "ws", "/", url);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct caller caller = {0};

        begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
        if (weir_promise_sync(caller.done, weir_seconds(10)) != rows[i].err)
            fail_msg("row %zu: %s", i, weir_promise_detail(caller.done));
        assert_fails(&caller, url, rows[i].err,
                     rows[i].detail != NULL ? rows[i].detail
                                            : weir_promise_detail(caller.done) + strlen(url) + 2);
    }
    scripted_server_close(&server);
}

TEST_EACH_LOOP(client, sends_the_fields_of_the_application)
{
    const struct scripted_reply replies[] = {{"HTTP/1.1 503 Busy\r\n\r\n", SCRIPTED_CLOSE}, {0}};
    weir_http_request *fields = NULL;
    struct scripted_server server;
    struct caller caller = {0};
    char url[256], shown[256];

    assert_int_equal(weir_http_request_create("GET", "/", &fields), 0);
    assert_int_equal(
        weir_http_headers_add_text(weir_http_request_headers(fields), WEIR_HTTP_COOKIE, "a=b"), 0);
    scripted_server_open(&server, host, replies);
    (void)snprintf(url, sizeof(url), "WS://me:secret@%s?q", server.address);
    (void)snprintf(shown, sizeof(shown), "ws://%s/?q", server.address);
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.headers = weir_http_request_headers(fields)));
    assert_fails(&caller, shown, -ECONNREFUSED, "the server answered 503, expected 101");
    assert_contains(server.last, "GET /?q HTTP/1.1\r\n");
    assert_contains(server.last, server.address);
    assert_contains(server.last, "Connection: Upgrade\r\n");
    assert_contains(server.last, "Upgrade: websocket\r\n");
    assert_contains(server.last, "Sec-WebSocket-Version: 13\r\n");
    assert_contains(server.last, "Sec-WebSocket-Protocol: best, chat\r\n");
    assert_contains(server.last, "permessage-deflate; client_max_window_bits=12\r\n");
    assert_contains(server.last, "Authorization: Basic bWU6c2VjcmV0\r\n");
    assert_contains(server.last, "Cookie: a=b\r\n");
    weir_msg_release(weir_http_request_msg(fields));
    scripted_server_close(&server);
}

/* The port of one scheme is not left out with the other. */
TEST(client, names_the_port_unless_it_is_that_of_the_scheme)
{
    static const char *const rows[][2] = {
        {"ws://h/", "h"},         {"ws://h:80/", "h"},     {"wss://h:443/", "h"},
        {"ws://h:443/", "h:443"}, {"wss://h:80/", "h:80"}, {"ws://[::1]:8080/", "[::1]:8080"},
        {"wss://[::1]/", "[::1]"}};
    weir_ws_options options = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir__ws_target target = {0};
        weir_span host;

        assert_int_equal(weir__ws_target_init(&target, rows[i][0], &options, NULL), 0);
        host = weir_http_headers_get(weir_http_request_headers(target.request), WEIR_HTTP_HOST);
        assert_true(weir_span_equal(host, weir_span_of_text(rows[i][1])));
        weir__ws_target_deinit(&target);
    }
}

/* ---- giving up ---- */

static const struct scripted_reply silence[] = {{""}, {0}};

TEST_EACH_LOOP(client, gives_up_after_the_timeout)
{
    struct scripted_server server;
    struct caller caller = {0};
    char url[256];

    scripted_server_open(&server, host, silence);
    (void)scripted_server_url(&server, "ws", "/", url);
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.connect_timeout_ns = weir_ms(20)));
    assert_fails(&caller, url, -ETIMEDOUT, "not open after 20 ms");
    scripted_server_close(&server);
}

/* Accepts a connection on a listener of socket_listen. */
static int await_peer(int listener)
{
    const struct timeval timeout = {.tv_sec = 10};
    struct pollfd poll_listener = {.fd = listener, .events = POLLIN};
    int peer;

    while (poll(&poll_listener, 1, 10000) < 0)
        assert_int_equal(errno, EINTR);
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(peer >= 0);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
    return peer;
}

TEST_EACH_LOOP(client, can_be_cancelled)
{
    struct caller caller = {0};
    struct address address;
    char text[WEIR_ADDRESS_TEXT_SIZE], url[128], request[16];
    int listener = socket_listen(AF_INET, 8, &address), peer;
    weir_address local = {.length = address.length};

    memcpy(&local.storage, &address.storage, address.length);
    (void)snprintf(url, sizeof(url), "ws://%s/", weir_address_format(&local, text, sizeof(text)));
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.connect_timeout_ns = WEIR_OFF));
    peer = await_peer(listener);
    raw_client_receive_bytes(peer, request, sizeof(request));
    assert_int_equal(weir_promise_cancel(caller.done), 0);
    raw_client_receive_end(peer);
    assert_int_equal(caller.opened.calls, 0);
    weir_promise_release(caller.done);
    raw_client_close(peer);
    raw_client_close(listener);
}

TEST_EACH_LOOP(client, can_be_cancelled_while_it_connects)
{
    struct silent_address silent;
    struct caller caller = {0};
    char text[WEIR_ADDRESS_TEXT_SIZE], url[128];

    silent_address_init(&silent);
    (void)snprintf(url, sizeof(url), "ws://%s/",
                   weir_address_format(&silent.address, text, sizeof(text)));
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.connect_timeout_ns = WEIR_OFF));
    host_turn(host, 2);
    assert_int_equal(weir_promise_cancel(caller.done), 0);
    weir_promise_release(caller.done);
    silent_address_deinit(&silent);
}

TEST_EACH_LOOP(client, fails_if_nobody_listens)
{
    weir_address address = unused_address();
    struct caller caller = {0};
    char text[WEIR_ADDRESS_TEXT_SIZE], url[128], detail[256];

    (void)snprintf(url, sizeof(url), "ws://%s/", weir_address_format(&address, text, sizeof(text)));
    (void)snprintf(detail, sizeof(detail), "connect: %s: Connection refused", text);
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
    assert_fails(&caller, url, -ECONNREFUSED, detail);
}

TEST_EACH_LOOP(client, fails_when_the_group_shuts_down)
{
    struct scripted_server server;
    struct caller caller = {0}, late = {0};
    char url[256];

    scripted_server_open(&server, host, silence);
    (void)scripted_server_url(&server, "ws", "/", url);
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
    while (server.requests == 0)
        host_turn(host, 1);
    assert_int_equal(weir_group_shutdown(host->group, 0, weir_seconds(10)), 0);
    assert_fails(&caller, url, WEIR_ECLOSED, "the group shuts down");
    assert_int_equal(weir_group_await_termination(host->group, weir_seconds(10)), 0);
    late.done = new_promise(NULL);
    assert_int_equal(weir_ws_connect(WEIR_WS_CLIENT_OPTIONS(.url = url, .group = host->group,
                                                            .ws = WEIR_WS_OPTIONS(.init = add_app)),
                                     late.done),
                     WEIR_EREJECTED);
    weir_promise_release(late.done);
    scripted_server_close(&server);
}

/* ---- names ---- */

/* The first address refuses: its handler must not disturb. */
TEST_EACH_LOOP(client, tries_all_addresses_of_a_name)
{
    weir_resolver *resolver = fake_dns_open(NULL);
    struct caller caller = {0}, lost = {0};
    char url[64], named[64];
    weir_http_server *server = open_server(host, url);

    (void)snprintf(named, sizeof(named), "ws://here.test%s", strrchr(url, ':'));
    begin(host, &caller, named, WEIR_WS_CLIENT_OPTIONS(.resolver = resolver));
    assert_int_equal(weir_promise_sync(caller.done, weir_seconds(10)), 0);
    assert_true(call_counter_await(&caller.messages, 1));
    assert_string_equal(caller.text, "welcome");
    begin(host, &lost, "ws://unknown.test/", WEIR_WS_CLIENT_OPTIONS(.resolver = resolver));
    assert_int_equal(weir_promise_sync(lost.done, weir_seconds(10)), WEIR_ENOHOST);
    weir_promise_release(caller.done);
    weir_promise_release(lost.done);
    weir_http_server_release(server);
    host_end(host);
    fake_dns_close(resolver);
}

/* ---- memory ---- */

/* Every allocation fails in turn, of the client or of the server: it opens, or says why not. */
TEST_EACH_LOOP(client, survives_without_memory)
{
    char url[64];
    weir_http_server *server = open_server(host, url);
    struct caller caller = {0}; /* of all connections, the last of which may still end */
    bool has_failed = true;

    log_capture_start();
    for (unsigned n = 1; has_failed; n++) {
        int err;

        caller.done = new_promise(host->loop);
        test_memory_fail_at(n);
        err = weir_ws_connect(
            WEIR_WS_CLIENT_OPTIONS(.url = url, .group = host->group,
                                   .ws = WEIR_WS_OPTIONS(.init = add_app, .user_data = &caller,
                                                         .protocols = protocols)),
            caller.done);
        if (err == 0)
            err = weir_promise_sync(caller.done, weir_seconds(20));
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        if (err == 0) {
            weir_channel_abort(weir_promise_value(caller.done), NULL);
            assert_int_equal(
                weir_channel_await_closed(weir_promise_value(caller.done), weir_seconds(10)), 0);
        }
        assert_true(err == 0 || err == -ENOMEM || err == WEIR_ECLOSED || err == WEIR_ECUTOFF ||
                    err == -ECONNREFUSED || err == -ECONNRESET || err == WEIR_EABANDONED);
        weir_promise_release(caller.done);
        assert_true(n < 1000);
    }
    host_end(host);
    weir_http_server_release(server);
}

/* ---- options ---- */

static int try(weir_group *group, const char *url, const weir_ws_options *ws)
{
    weir_promise *done = new_promise(NULL);
    int err = weir_ws_connect(WEIR_WS_CLIENT_OPTIONS(.url = url, .group = group, .ws = ws), done);

    weir_promise_release(done);
    return err;
}

TEST(client, rejects_wrong_options)
{
    static const char *const urls[] = {
        NULL,           "",        "127.0.0.1:80",   "http://127.0.0.1/",      "ws:///path",
        "ws://host:0/", "ws://[1", "ws://host/#top", "wss://127.0.0.1/no-tls", "ws://host:65536/",
    };
    const weir_ws_options *ws = WEIR_WS_OPTIONS(.init = add_app);
    weir_group *group = NULL, *plain = NULL;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &plain), 0);
    log_capture_start();
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        assert_int_equal(try(group, urls[i], ws), -EINVAL);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), sizeof(urls) / sizeof(urls[0]));
    assert_options_rejected(try(group, "http://me:secret@h/", ws),
                            ".url \"http://***@h/\": expected ws or wss");
    assert_options_rejected(try(NULL, "ws://127.0.0.1/", ws),
                            "one of .group and .loop is required");
    assert_int_equal(try(group, "ws://127.0.0.1/", NULL), -EINVAL);
    assert_int_equal(try(group, "ws://127.0.0.1/", WEIR_WS_OPTIONS(.deflate = true)), -EINVAL);
    assert_int_equal(try(plain, "ws://127.0.0.1/", ws), -ENOTSUP);
    assert_int_equal(
        weir_ws_connect(WEIR_WS_CLIENT_OPTIONS(.url = "ws://h/", .group = group, .ws = ws), NULL),
        -EINVAL);
    weir_group_release(group);
    weir_group_release(plain);
}
