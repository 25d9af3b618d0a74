/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User-space instructions of an echo through the whole stack (loop, transport, channel, pipeline,
 * pooled buffers): one turn of a manual loop in which N connections are readable, divided by N.
 */
#include <netinet/in.h>

#include <weir/address.h>
#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/pool.h>
#include <weir/transport.h>

#include "echo/handlers.h"
#include "loop/turns.h"

enum { WARM_UP = 128 };

struct fixture {
    struct turns turns;
    weir_channel *listener;
    int64_t handlers;
};

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct fixture *fixture = *(struct fixture **)weir_ctx_state(ctx);
    weir_channel *channel = weir_channel_of(msg);

    bench_require(echo_handlers_add(weir_channel_pipeline(channel), fixture->handlers) == 0,
                  "weir_pipeline_add_last");
    weir_channel_register(channel, fixture->turns.loop, NULL);
    weir_channel_release(channel);
}

static int acceptor_init(void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

static void listen_on_loop(struct fixture *fixture)
{
    static const weir_handler acceptor = {
        .name = "acceptor",
        .state_size = sizeof(struct fixture *),
        .init = acceptor_init,
        .read = on_accepted,
    };
    weir_address any;

    bench_require(weir_address_parse("127.0.0.1:0", &any) == 0, "weir_address_parse");
    bench_require(weir_tcp_create_server(NULL, NULL, &fixture->listener) == 0, "a listener");
    bench_require(
        weir_pipeline_add_last(weir_channel_pipeline(fixture->listener), &acceptor, fixture) == 0,
        "weir_pipeline_add_last");
    weir_channel_register(fixture->listener, fixture->turns.loop, NULL);
    turns_take(&fixture->turns);
    weir_channel_bind(fixture->listener, &any, NULL);
    turns_take(&fixture->turns);
}

static int connect_to(weir_channel *listener)
{
    weir_address address;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);

    bench_require(weir_channel_local_address(listener, &address) == 0, "the address");
    bench_require(descriptor >= 0, "socket");
    bench_require(connect(descriptor, weir_address_sockaddr(&address), address.length) == 0,
                  "connect");
    return descriptor;
}

static void connect_all(struct fixture *fixture)
{
    for (int i = 0; i < fixture->turns.count; i++) {
        fixture->turns.peers[i] = connect_to(fixture->listener);
        turns_take(&fixture->turns);
        turns_take(&fixture->turns);
    }
}

static void count_echo(const char *name, enum weir_io io, int count, int64_t handlers)
{
    struct fixture fixture = {.handlers = handlers};

    if (!turns_init(&fixture.turns, WEIR_LOOP_OPTIONS(.io = io), count)) {
        bench_count_none(name);
        return;
    }
    listen_on_loop(&fixture);
    connect_all(&fixture);
    turns_count(&fixture.turns, name, WARM_UP);
    for (int i = 0; i < count; i++)
        close(fixture.turns.peers[i]);
    weir_channel_release(fixture.listener);
    turns_deinit(&fixture.turns);
}

static void count_all(bench_round *round)
{
    (void)round;
    weir_leak_set_level(WEIR_LEAK_OFF); /* which messages are watched is a matter of chance */
    count_echo("epoll: echo, 1 connection", WEIR_IO_EPOLL, 1, 1);
    count_echo("epoll: echo, 16 connections", WEIR_IO_EPOLL, 16, 1);
    count_echo("epoll: the same, 9 handlers more", WEIR_IO_EPOLL, 16, 10);
    count_echo("uring: echo, 1 connection", WEIR_IO_URING, 1, 1);
    count_echo("uring: echo, 16 connections", WEIR_IO_URING, 16, 1);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
