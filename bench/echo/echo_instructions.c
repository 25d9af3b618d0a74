/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of an echo of the whole stack - loop, transport, channel, pipeline, pooled
 * buffers - on the user's side: a turn of a manual loop in which so many connections have something
 * to read, by the number of them.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/address.h>
#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/leak.h>
#include <weir/loop.h>
#include <weir/tcp.h>

#include "echo/handlers.h"
#include "support/bench.h"
#include "support/instructions.h"

/* A ring hands out some 20 completions at a time: so many connections are served in one turn. */
enum { CONNECTIONS_MAX = 16, TURNS = 32, WARM_UP = 128, SIZE = 64 };

struct fixture {
    weir_executor *loop;
    weir_channel *listener;
    int64_t handlers;
    int count;
    int peers[CONNECTIONS_MAX];
};

static void turn(const struct fixture *fixture)
{
    bench_require(weir_loop_run_once(fixture->loop, 0) >= 0, "weir_loop_run_once");
}

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct fixture *fixture = *(struct fixture **)weir_ctx_state(ctx);
    weir_channel *channel = weir_channel_of(msg);

    bench_require(echo_handlers_add(weir_channel_pipeline(channel), fixture->handlers) == 0,
                  "weir_pipeline_add_last");
    weir_channel_register(channel, fixture->loop, NULL);
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
    weir_channel_register(fixture->listener, fixture->loop, NULL);
    turn(fixture);
    weir_channel_bind(fixture->listener, &any, NULL);
    turn(fixture);
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

/* False if this machine refuses a ring. */
static bool fixture_init(struct fixture *fixture, enum weir_io io, int count, int64_t handlers)
{
    int err = weir_loop_create(WEIR_LOOP_OPTIONS(.io = io), &fixture->loop);

    if (err < 0 && io == WEIR_IO_URING)
        return false;
    bench_require(err == 0, "weir_loop_create");
    fixture->count = count;
    fixture->handlers = handlers;
    listen_on_loop(fixture);
    for (int i = 0; i < count; i++) {
        fixture->peers[i] = connect_to(fixture->listener);
        turn(fixture);
        turn(fixture);
    }
    return true;
}

static void fixture_deinit(struct fixture *fixture)
{
    for (int i = 0; i < fixture->count; i++)
        close(fixture->peers[i]);
    weir_channel_release(fixture->listener);
    weir_executor_shutdown(fixture->loop, 0, 0);
    while (weir_loop_run_once(fixture->loop, 0) >= 0)
        ;
    weir_executor_release(fixture->loop);
}

static void ask_all(const struct fixture *fixture)
{
    static const char request[SIZE];

    for (int i = 0; i < fixture->count; i++)
        bench_require(write(fixture->peers[i], request, SIZE) == SIZE, "write");
}

/* All were answered in the one turn. */
static void read_all(const struct fixture *fixture)
{
    char answer[2 * SIZE];

    for (int i = 0; i < fixture->count; i++)
        bench_require(recv(fixture->peers[i], answer, sizeof(answer), MSG_DONTWAIT) == SIZE,
                      "the echo");
}

static void count_echo(const char *name, enum weir_io io, int count, int64_t handlers)
{
    struct fixture fixture;

    if (!fixture_init(&fixture, io, count, handlers)) {
        bench_count_none(name);
        return;
    }
    for (int i = 0; i < WARM_UP; i++) {
        ask_all(&fixture);
        turn(&fixture);
        read_all(&fixture);
    }
    bench_count_begin(name, TURNS * count);
    bench_count_pause();
    for (int i = 0; i < TURNS; i++) {
        ask_all(&fixture);
        bench_count_resume();
        turn(&fixture);
        bench_count_pause();
        read_all(&fixture);
    }
    bench_count_resume();
    bench_count_end();
    fixture_deinit(&fixture);
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
