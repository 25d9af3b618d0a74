/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers behind "websocket" that block move to the group of the server's offload_when_blocking,
 * and so does a route that accepts WebSockets. The verdict of the watchdog is given by the test.
 */
#include <weir/websocket.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "channel/offload_blocking.h"
#include "protocol/http/blocking_routes.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"

#define OPENING                                                                  \
    HTTP_CALL("GET /ws")                                                         \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define FRAMES 400
#define TRIES 10000 /* messages, until the loop has moved the handler */

/* The first message that ran on the group; and one that ran on the loop after that. */
static _Atomic int ran_on_group, ran_on_loop, accepted_on_group;

static bool is_on_loop(weir_channel *channel)
{
    return weir_in_executor(weir_channel_executor(channel));
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    *(is_on_loop(weir_ctx_channel(ctx)) ? &ran_on_loop : &ran_on_group) += 1;
    weir_write_and_flush(ctx, msg, NULL);
}

/* One table for each backend: a table blocks for good. */
static weir_handler echoes[BACKEND_COUNT];

static int add_echo(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), user_data, NULL);
}

static void accept_here(weir_http_exchange *exchange, void *user_data)
{
    accepted_on_group += !is_on_loop(weir_http_exchange_channel(exchange));
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_echo, .user_data = user_data));
}

struct site {
    weir_http_server *server;
    weir_group *aside;
    weir_handler *echo;
};

static void open_site(struct site *site, struct host *host)
{
    weir_http_route routes[] = {{"GET", "/ws", accept_here}, {0}};

    log_capture_start();
    ran_on_group = ran_on_loop = accepted_on_group = 0;
    site->echo = &echoes[host->backend - backends];
    *site->echo = (weir_handler){.name = "echo", .read = on_read};
    routes[0].user_data = site->echo;
    site->aside = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "aside"));
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group,
                                                        .offload_when_blocking = site->aside),
                               &site->server),
        0);
}

static void close_site(struct site *site)
{
    weir_http_server_release(site->server);
    end_group(site->aside);
}

static int open_socket(struct site *site)
{
    int peer = raw_client_connect(weir_http_server_server(site->server));
    char answer[HTTP_CALL_SIZE];

    raw_client_send(peer, OPENING);
    http_call_receive_one(peer, 0, answer);
    assert_contains(answer, "HTTP/1.1 101 ");
    return peer;
}

/* Masked with zeros. */
static void send_number(int peer, int number)
{
    char frame[16] = "\x81\x84\0\0\0\0";

    (void)snprintf(frame + 6, 5, "%04d", number);
    raw_client_send_bytes(peer, frame, 10);
}

static void receive_number(int peer, int number)
{
    char frame[8] = "", expected[8];

    (void)snprintf(expected, sizeof(expected), "\x81\x04%04d", number);
    raw_client_receive_bytes(peer, frame, 6);
    assert_memory_equal(frame, expected, 6);
}

TEST_EACH_LOOP(offload, moves_a_handler_of_a_websocket)
{
    struct site site;
    int peer, later;

    open_site(&site, host);
    peer = open_socket(&site);
    for (int i = 0; i < FRAMES; i++) {
        if (i == FRAMES / 2) {
            receive_number(peer, 0);
            weir__handler_offload(site.echo, 4);
        }
        send_number(peer, i);
    }
    for (int i = 1; i < FRAMES; i++)
        receive_number(peer, i);
    for (int i = 0; i < TRIES && ran_on_group == 0; i++) {
        send_number(peer, 1);
        receive_number(peer, 1);
    }
    assert_true(ran_on_loop > 0);
    assert_true(ran_on_group > 0);
    ran_on_loop = 0;
    later = open_socket(&site); /* where it is there from the start */
    send_number(later, 7);
    receive_number(later, 7);
    send_number(peer, 8);
    receive_number(peer, 8);
    assert_int_equal(ran_on_loop, 0);
    raw_client_close(later);
    raw_client_close(peer);
    close_site(&site);
}

TEST_EACH_LOOP(offload, accepts_a_websocket_on_the_group)
{
    const void *stack[] = {(const void *)(uintptr_t)accept_here};
    struct site site;
    int peer;

    open_site(&site, host);
    assert_int_equal(weir__http_routes_blocked(stack, 1, 0), 1);
    peer = open_socket(&site);
    assert_int_equal(accepted_on_group, 1);
    send_number(peer, 3);
    receive_number(peer, 3);
    raw_client_close(peer);
    close_site(&site);
}
