/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User-space instructions of the echo of a datagram through the whole stack: one turn of a manual
 * loop whose socket has N datagrams to read, divided by N.
 */
#include <weir/address.h>
#include <weir/channel.h>
#include <weir/pipeline.h>
#include <weir/pool.h>
#include <weir/transport.h>

#include "loop/turns.h"
#include "udp/handler.h"

enum { WARM_UP = 128 };

struct fixture {
    struct turns turns;
    weir_channel *channel;
};

static void bind_channel(struct fixture *fixture)
{
    weir_address any;

    bench_require(weir_address_parse("127.0.0.1:0", &any) == 0, "weir_address_parse");
    bench_require(weir_udp_create(NULL, &fixture->channel) == 0, "weir_udp_create");
    bench_require(
        weir_pipeline_add_last(weir_channel_pipeline(fixture->channel), &udp_echo, NULL) == 0,
        "weir_pipeline_add_last");
    weir_channel_register(fixture->channel, fixture->turns.loop, NULL);
    turns_take(&fixture->turns);
    weir_channel_bind(fixture->channel, &any, NULL);
    turns_take(&fixture->turns);
}

static int connect_to(weir_channel *channel)
{
    weir_address address;
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    bench_require(weir_channel_local_address(channel, &address) == 0, "the address");
    bench_require(connect(descriptor, weir_address_sockaddr(&address), address.length) == 0,
                  "connect");
    return descriptor;
}

static void count_echo(const char *name, enum weir_io io, int count)
{
    struct fixture fixture;
    int peer;

    if (!turns_init(&fixture.turns, WEIR_LOOP_OPTIONS(.io = io), count)) {
        bench_count_none(name);
        return;
    }
    bind_channel(&fixture);
    peer = connect_to(fixture.channel);
    for (int i = 0; i < count; i++)
        fixture.turns.peers[i] = peer;
    turns_count(&fixture.turns, name, WARM_UP);
    close(peer);
    weir_channel_release(fixture.channel);
    turns_deinit(&fixture.turns);
}

static void count_all(bench_round *round)
{
    (void)round;
    weir_leak_set_level(WEIR_LEAK_OFF); /* which messages are watched is a matter of chance */
    count_echo("epoll: echo, 1 datagram", WEIR_IO_EPOLL, 1);
    count_echo("epoll: echo, 12 datagrams", WEIR_IO_EPOLL, 12);
    count_echo("uring: echo, 1 datagram", WEIR_IO_URING, 1);
    count_echo("uring: echo, 12 datagrams", WEIR_IO_URING, 12);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
