/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop suite on weir: an echo server at the backend interface on a loop of a group, the
 * ping-pong of two loops, and how late timers are. Settings of all: executor/weir_tasks.h.
 */
#include "echo/competitor.h"
#include "executor/weir_tasks.h"

#include "loop/loop.h"
#include "loop/owner.h"

/* ---- the listener ---- */

static void on_accepted(weir__io_handle *handle, int descriptor, const struct sockaddr *peer,
                        socklen_t peer_length)
{
    (void)peer;
    (void)peer_length;
    bench_require(descriptor >= 0, "accepting");
    connection_open(handle->io, descriptor);
}

static void on_listener_failed(weir__io_handle *handle, int err)
{
    (void)handle;
    (void)err;
    bench_require(false, "listening");
}

/* Serves on the loop's thread for as long as the loop lives. */
static void listener_open(weir__io *io, int descriptor)
{
    static const weir__io_owner owner = {
        .accepted = on_accepted,
        .read_complete = on_read_complete,
        .failed = on_listener_failed,
    };
    static weir__io_handle handle;

    weir__io_handle_init(&handle, descriptor, &owner);
    bench_require(weir__io_attach(io, &handle) == 0, "weir__io_attach");
    weir__io_accept_start(&handle);
}

/* ---- the server ---- */

static weir_group_options configured;

static void server_configure(bench_round *round)
{
    group_configure(&configured, round);
}

static void on_start(void *arg, int status)
{
    weir__io *io = weir__loop_io(weir_executor_current());
    int listener = *(const int *)arg;

    (void)status;
    use_hot_memory(io);
    listener_open(io, listener);
    echo_server_announce(listener);
}

/*
 * The loop's thread stays alone, as the raw servers' is: with a second one the kernel counts each
 * use of a descriptor (1.5 % of an echo, 6 % of a connection), which says nothing about a loop.
 */
static void server_run(int cpu)
{
    weir_group *group = group_start(&configured, cpu);
    static int listener;

    listener = echo_server_listen();
    bench_require(weir_group_execute(group, on_start, &listener) == 0, "weir_group_execute");
    pthread_exit(NULL);
}

#include "echo/cases.h"

/* ---- waiting ---- */

#include "executor/pingpong.h"

#include "loop/late.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        ECHO_CASES,
        {"pingpong", pingpong_case},
        {"late", late_case},
        {NULL, NULL},
    };

    return bench_main(argc, argv, cases);
}
