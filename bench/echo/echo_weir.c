/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The echo server that a user of weir writes: bootstrap, pipeline, pooled buffers.
 *
 * Settings: those of executor/weir_group.h, and handlers=N, of which all but the last pass
 * everything on; boss=1: a boss of one thread accepts, not the others; acceptors=N as those of the
 * server.
 */
#include "echo/competitor.h"
#include "executor/weir_group.h"

#include <weir/address.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#include "echo/handlers.h"

static weir_group_options configured;
static int64_t handler_count, boss_threads, acceptors;

static void server_configure(bench_round *round)
{
    group_configure(&configured, round);
    handler_count = bench_setting(round, "handlers", 1);
    boss_threads = bench_setting(round, "boss", 0);
    acceptors = bench_setting(round, "acceptors", 0);
}

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return echo_handlers_add(weir_channel_pipeline(channel), handler_count);
}

static uint16_t port_of(weir_server *server)
{
    weir_address address;

    bench_require(weir_channel_local_address(weir_server_listener(server, 0), &address) == 0,
                  "weir_channel_local_address");
    return weir_address_port(&address);
}

/*
 * The loop's thread stays alone, as the raw servers' is: with a second one the kernel counts each
 * use of a descriptor (1.5 % of an echo, 6 % of a connection), which says nothing about weir.
 */
static void server_run(int cpu)
{
    weir_group *group = group_start(&configured, cpu), *boss = NULL;
    weir_server *server;
    char place[WEIR_ADDRESS_TEXT_SIZE];
    int err;

    echo_server_place(place, sizeof(place));
    if (boss_threads > 0) {
        configured.threads = (int)boss_threads;
        boss = group_start(&configured, cpu);
    }
    err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = boss, .workers = group, .address = place,
                                                .acceptors = (int)acceptors,
                                                .init_child = init_child),
                            &server);
    bench_require(err == 0, "weir_server_start");
    echo_server_announce_port(port_of(server));
    pthread_exit(NULL);
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
