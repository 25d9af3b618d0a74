/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server that a user of weir writes: a route that says hello, or one that sends files.
 *
 * Settings: those of executor/weir_group.h and http/service.h.
 */
#include "echo/competitor.h"
#include "executor/weir_group.h"

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/http_files.h>
#include <weir/http_server.h>

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

static void server_run(int cpu)
{
    weir_http_files_root *root = service.serve == SERVE_FILE ? open_folder() : NULL;
    const weir_http_route routes[] = {
        {"GET", "/", hello},
        {"GET", root != NULL ? "/{path*}" : NULL, weir_http_files, root},
        {0},
    };
    weir_group *group = group_start(&configured, cpu);
    weir_http_server *server;
    int err = weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.workers = group, .address = "127.0.0.1:0", .routes = routes),
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
