/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP echo server that a user of weir writes. Settings: those of executor/weir_group.h.
 */
#include "echo/competitor.h"
#include "executor/weir_group.h"
#include "udp/handler.h"

#include <weir/address.h>
#include <weir/pipeline.h>
#include <weir/server.h>

static weir_group_options configured;

static void server_configure(bench_round *round)
{
    group_configure(&configured, round);
}

static int init_server(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &udp_echo, NULL);
}

/* The loop's thread stays alone, as in echo/echo_weir.c. */
static void server_run(int cpu)
{
    weir_group *group = group_start(&configured, cpu);
    weir_server *server;
    weir_address address;
    int err =
        weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .workers = group,
                                              .address = "127.0.0.1:0", .init_server = init_server),
                          &server);

    bench_require(err == 0, "weir_server_start");
    bench_require(weir_channel_local_address(weir_server_listener(server, 0), &address) == 0,
                  "weir_channel_local_address");
    echo_server_announce_port(weir_address_port(&address));
    pthread_exit(NULL);
}

#include "udp/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {UDP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
