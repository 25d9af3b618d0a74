/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server that a user of weir writes: a route that says hello, one that sends
 * files, or a proxy.
 *
 * Settings: those of executor/weir_group.h and http/service.h.
 */
#include "echo/competitor.h"
#include "executor/weir_group.h"

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/http_client.h>
#include <weir/http_files.h>
#include <weir/http_server.h>

#include "forward.h"
#include "http/service.h"

static weir_group_options configured;

static void server_configure(bench_round *round)
{
    group_configure(&configured, round);
    service_configure(round);
}

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_text(exchange, 200, HTTP_HELLO);
}

static uint16_t port_of(const weir_http_server *server)
{
    weir_channel *listener = weir_server_listener(weir_http_server_server(server), 0);
    weir_address address;

    bench_require(weir_channel_local_address(listener, &address) == 0,
                  "weir_channel_local_address");
    return weir_address_port(&address);
}

/* Two threads of a group open files; they sleep while their results are in the cache. */
static weir_http_files_root *open_folder(void)
{
    weir_http_files_root *root;

    bench_require(
        weir_http_files_root_create(WEIR_HTTP_FILES_OPTIONS(.root = bench_folder()), &root) == 0,
        "weir_http_files_root_create");
    return root;
}

/* That of examples/reverse-proxy, without health checks; connections are kept, as nginx's are. */
static struct forwarder *create_forwarder(weir_group *group)
{
    static struct forwarder forwarder;
    static char origin[64];
    int err = weir_http_client_create(
        WEIR_HTTP_CLIENT_OPTIONS(.group = group, .max_connections = 1024, .max_redirects = WEIR_OFF,
                                 .user_agent = "", .no_decompression = true),
        &forwarder.client);

    bench_require(err == 0, "weir_http_client_create");
    snprintf(origin, sizeof(origin), "http://127.0.0.1:%u", service.upstream);
    bench_require(upstreams_add(&forwarder.upstreams, origin), "upstreams_add");
    forwarder.fall = 3;
    return &forwarder;
}

static weir_http_route route_of_service(weir_group *group)
{
    switch (service.serve) {
    case SERVE_FILE:
        return (weir_http_route){"GET", "/{path*}", weir_http_files, open_folder()};
    case SERVE_PROXY:
        return (weir_http_route){"*",
                                 "/{path*}",
                                 forward,
                                 create_forwarder(group),
                                 .streaming = true,
                                 .encoded_slashes = true};
    default:
        return (weir_http_route){"GET", "/", hello};
    }
}

static void server_run(int cpu)
{
    weir_group *group = group_start(&configured, cpu);
    const weir_http_route routes[] = {route_of_service(group), {0}};
    bool is_proxy = service.serve == SERVE_PROXY;
    weir_http_server *server;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.workers = group, .address = "127.0.0.1:0", .routes = routes,
                                 .init_connection = is_proxy ? forward_init_connection : NULL),
        &server);

    bench_require(err == 0, "weir_http_server_start");
    echo_server_announce_port(port_of(server));
    pthread_exit(NULL); /* the loop's thread stays alone, as in echo/echo_weir.c */
}

#include "http/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {HTTP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
