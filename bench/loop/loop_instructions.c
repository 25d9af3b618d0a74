/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User-space instructions of an echo at the backend interface: one turn of a manual loop in which N
 * connections are readable, divided by N.
 */
#include "loop/loop.h"
#include "loop/owner.h"
#include "loop/turns.h"

enum { WARM_UP = 16 }; /* a ring receives by poll at first */

static void on_open(void *arg, int status)
{
    struct turns *turns = arg;
    weir__io *io = weir__loop_io(turns->loop);

    (void)status;
    use_hot_memory(io);
    for (int i = 0; i < turns->count; i++) {
        int pair[2];

        bench_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "socketpair");
        turns->peers[i] = pair[0];
        connection_open(io, pair[1]);
    }
}

static void count_echo(const char *name, const weir_loop_options *options, int count)
{
    struct turns turns;

    if (!turns_init(&turns, options, count)) {
        bench_count_none(name);
        return;
    }
    bench_require(weir_execute(turns.loop, on_open, &turns) == 0, "weir_execute");
    turns_take(&turns);
    turns_count(&turns, name, WARM_UP);
    for (int i = 0; i < count; i++)
        close(turns.peers[i]);
    turns_deinit(&turns);
}

static void count_all(bench_round *round)
{
    static const weir_loop_options epoll = {.size = sizeof(epoll), .io = WEIR_IO_EPOLL};
    static const weir_loop_options poll = {.size = sizeof(poll), .io = WEIR_IO_POLL};
    static const weir_loop_options uring = {.size = sizeof(uring), .io = WEIR_IO_URING};

    (void)round;
    count_echo("epoll: echo, 1 connection", &epoll, 1);
    count_echo("epoll: echo, 16 connections", &epoll, 16);
    count_echo("poll: echo, 1 connection", &poll, 1);
    count_echo("poll: echo, 16 connections", &poll, 16);
    count_echo("uring: echo, 1 connection", &uring, 1);
    count_echo("uring: echo, 16 connections", &uring, 16);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
