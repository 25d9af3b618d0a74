/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User-space instructions of an echo through the whole stack (loop, transport, channel, pipeline,
 * pooled buffers): one turn of a manual loop in which N connections are readable, divided by N.
 */
#include <weir/pool.h>

#include "echo/handlers.h"
#include "echo/turn_server.h"

enum { WARM_UP = 128 };

static int add_handlers(weir_pipeline *pipeline, void *user_data)
{
    return echo_handlers_add(pipeline, *(const int64_t *)user_data);
}

static void count_echo(const char *name, enum weir_io io, int count, int64_t handlers)
{
    struct turn_server server = {.add_handlers = add_handlers, .user_data = &handlers};

    if (!turn_server_init(&server, io, count)) {
        bench_count_none(name);
        return;
    }
    turns_count(&server.turns, name, WARM_UP);
    turn_server_deinit(&server);
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
