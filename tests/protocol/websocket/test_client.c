/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_ws_connect on sockets: against a server of weir, and against a script that refuses.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/error.h>

#include "protocol/websocket/handshake.h"
#include "support/executor/call_counter.h"
#include "support/executor/promises.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"
#include "support/protocol/http/scripted_server.h"

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

/* Begins to connect; the promise runs its listeners on the global executor. */
static void begin(struct host *host, struct caller *caller, const char *url,
                  const weir_ws_client_options *options)
{
    weir_ws_client_options own = *options;

    caller->done = new_promise(NULL);
    own.url = url;
    own.group = host->group;
    own.ws = WEIR_WS_OPTIONS(.init = add_app, .user_data = caller, .protocols = protocols,
                             .deflate = true, .deflate_min = 1);
    assert_int_equal(weir_ws_connect(&own, caller->done), 0);
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
    assert_int_equal(weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_echo, .deflate = true,
                                                              .protocols = known)),
                     0);
}

static weir_http_server *open_server(struct host *host, char url[64])
{
    const weir_http_route routes[] = {{"GET", "/ws", accept_here}, {0}};
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

/* ---- refusals ---- */

TEST_EACH_LOOP(client, fails_if_there_is_no_such_route)
{
    struct caller caller = {0};
    char url[64];
    weir_http_server *server = open_server(host, url);

    strcpy(strstr(url, "/ws"), "/other");
    begin(host, &caller, url, WEIR_WS_CLIENT_OPTIONS(.url = NULL));
    assert_fails(&caller, url, -ECONNREFUSED, "the server answered 404, expected 101");
    weir_http_server_release(server);
}
