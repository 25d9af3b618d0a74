/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of an echo of a datagram by the whole stack, on the user's side: a turn of a
 * manual loop whose one socket has so many datagrams to read, by the number of them.
 */
#include <sys/socket.h>
#include <unistd.h>

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/datagram.h>
#include <weir/leak.h>
#include <weir/loop.h>
#include <weir/pipeline.h>
#include <weir/udp.h>

#include "support/bench.h"
#include "support/instructions.h"

enum { TURNS = 32, WARM_UP = 128, SIZE = 64 };

struct fixture {
    weir_executor *loop;
    weir_channel *channel;
    int peer;
    int count;
};

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_datagram_return_to_sender(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
};

static void turn(const struct fixture *fixture)
{
    bench_require(weir_loop_run_once(fixture->loop, 0) >= 0, "weir_loop_run_once");
}

static void bind_channel(struct fixture *fixture)
{
    weir_address any;

    bench_require(weir_address_parse("127.0.0.1:0", &any) == 0, "weir_address_parse");
    bench_require(weir_udp_create(NULL, &fixture->channel) == 0, "weir_udp_create");
    bench_require(weir_pipeline_add_last(weir_channel_pipeline(fixture->channel), &echo, NULL) == 0,
                  "weir_pipeline_add_last");
    weir_channel_register(fixture->channel, fixture->loop, NULL);
    turn(fixture);
    weir_channel_bind(fixture->channel, &any, NULL);
    turn(fixture);
}

/* False if this machine refuses a ring. */
static bool fixture_init(struct fixture *fixture, enum weir_io io, int count)
{
    weir_address address;
    int err = weir_loop_create(WEIR_LOOP_OPTIONS(.io = io), &fixture->loop);

    if (err < 0 && io == WEIR_IO_URING)
        return false;
    bench_require(err == 0, "weir_loop_create");
    fixture->count = count;
    bind_channel(fixture);
    fixture->peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bench_require(weir_channel_local_address(fixture->channel, &address) == 0, "the address");
    bench_require(connect(fixture->peer, weir_address_sockaddr(&address), address.length) == 0,
                  "connect");
    return true;
}

static void fixture_deinit(struct fixture *fixture)
{
    close(fixture->peer);
    weir_channel_release(fixture->channel);
    weir_executor_shutdown(fixture->loop, 0, 0);
    while (weir_loop_run_once(fixture->loop, 0) >= 0)
        ;
    weir_executor_release(fixture->loop);
}

static void ask(const struct fixture *fixture)
{
    static const char request[SIZE];

    for (int i = 0; i < fixture->count; i++)
        bench_require(write(fixture->peer, request, SIZE) == SIZE, "write");
}

/* All were answered in the one turn. */
static void read_all(const struct fixture *fixture)
{
    char answer[2 * SIZE];

    for (int i = 0; i < fixture->count; i++)
        bench_require(recv(fixture->peer, answer, sizeof(answer), MSG_DONTWAIT) == SIZE,
                      "the echo");
}

static void count_echo(const char *name, enum weir_io io, int count)
{
    struct fixture fixture;

    if (!fixture_init(&fixture, io, count)) {
        bench_count_none(name);
        return;
    }
    for (int i = 0; i < WARM_UP; i++) {
        ask(&fixture);
        turn(&fixture);
        read_all(&fixture);
    }
    bench_count_begin(name, TURNS * count);
    bench_count_pause();
    for (int i = 0; i < TURNS; i++) {
        ask(&fixture);
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
