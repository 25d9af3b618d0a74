/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WebSocket server that a user of weir writes: a route, and a handler that writes back what it
 * reads.
 *
 * Settings: those of executor/weir_group.h.
 */
#include "echo/competitor.h"
#include "executor/weir_group.h"

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/websocket.h>

#include "echo/handlers.h"

static weir_group_options configured;

static void server_configure(bench_round *round)
{
    group_configure(&configured, round);
}

static bool server_upgrades(void)
{
    return true;
}

static int init_websocket(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return echo_handlers_add(weir_channel_pipeline(channel), 1);
}

static void open_websocket(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = init_websocket, .deflate = true));
}

static uint16_t port_of(const weir_http_server *server)
{
    weir_channel *listener = weir_server_listener(weir_http_server_server(server), 0);
    weir_address address;

    bench_require(weir_channel_local_address(listener, &address) == 0,
                  "weir_channel_local_address");
    return weir_address_port(&address);
}

static void server_run(int cpu)
{
    static const weir_http_route routes[] = {{"GET", "/", open_websocket}, {0}};
    weir_group *group = group_start(&configured, cpu);
    weir_http_server *server;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.workers = group, .address = "127.0.0.1:0", .routes = routes),
        &server);

    bench_require(err == 0, "weir_http_server_start");
    echo_server_announce_port(port_of(server));
    pthread_exit(NULL); /* the loop's thread stays alone, as in echo/echo_weir.c */
}

#include "websocket/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {WEBSOCKET_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
