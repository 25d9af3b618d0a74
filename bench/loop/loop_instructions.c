/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of an echo at the backend interface, on the user's side: a turn of a manual loop
 * in which so many connections have something to read, by the number of them.
 */
#include <sys/socket.h>
#include <unistd.h>

#include <weir/loop.h>

#include "loop/loop.h"
#include "loop/owner.h"
#include "support/bench.h"
#include "support/instructions.h"

/* A ring hands out some 20 completions at a time: so many connections are served in one turn. */
enum { CONNECTIONS_MAX = 16, TURNS = 32, WARM_UP = 4 };

struct fixture {
    weir_executor *loop;
    int count;
    int peers[CONNECTIONS_MAX];
};

static void turn(const struct fixture *fixture)
{
    bench_require(weir_loop_run_once(fixture->loop, 0) >= 0, "weir_loop_run_once");
}

static void on_open(void *arg, int status)
{
    struct fixture *fixture = arg;
    weir__io *io = weir__loop_io(fixture->loop);

    (void)status;
    use_hot_memory(io);
    for (int i = 0; i < fixture->count; i++) {
        int pair[2];

        bench_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "socketpair");
        fixture->peers[i] = pair[0];
        connection_open(io, pair[1]);
    }
}

/* False if this machine refuses a ring. */
static bool fixture_init(struct fixture *fixture, const weir_loop_options *options, int count)
{
    int err = weir_loop_create(options, &fixture->loop);

    if (err < 0 && options->io == WEIR_IO_URING)
        return false;
    bench_require(err == 0, "weir_loop_create");
    fixture->count = count;
    bench_require(weir_execute(fixture->loop, on_open, fixture) == 0, "weir_execute");
    turn(fixture);
    return true;
}

static void fixture_deinit(struct fixture *fixture)
{
    for (int i = 0; i < fixture->count; i++)
        close(fixture->peers[i]);
    weir_executor_shutdown(fixture->loop, 0, 0);
    while (weir_loop_run_once(fixture->loop, 0) >= 0)
        ;
    weir_executor_release(fixture->loop);
}

static void ask_all(const struct fixture *fixture)
{
    for (int i = 0; i < fixture->count; i++)
        bench_require(write(fixture->peers[i], "echo", 4) == 4, "write");
}

/* All were answered in the one turn. */
static void read_all(const struct fixture *fixture)
{
    char answer[8];

    for (int i = 0; i < fixture->count; i++)
        bench_require(read(fixture->peers[i], answer, sizeof(answer)) == 4, "the echo");
}

static void count_echo(const char *name, const weir_loop_options *options, int count)
{
    struct fixture fixture;

    if (!fixture_init(&fixture, options, count)) {
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
    static const weir_loop_options epoll = {.size = sizeof(epoll), .io = WEIR_IO_EPOLL};
    static const weir_loop_options uring = {.size = sizeof(uring), .io = WEIR_IO_URING};
    static const weir_loop_options ring_receive = {
        .size = sizeof(ring_receive),
        .io = WEIR_IO_URING,
        .uring_receive = true,
    };

    (void)round;
    count_echo("epoll: echo, 1 connection", &epoll, 1);
    count_echo("epoll: echo, 16 connections", &epoll, 16);
    count_echo("uring: echo, 1 connection", &uring, 1);
    count_echo("uring: echo, 16 connections", &uring, 16);
    count_echo("uring, ring receive: echo, 16 connections", &ring_receive, 16);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
