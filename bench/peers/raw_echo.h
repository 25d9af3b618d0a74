/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting: threads=N, 1 by default.
 *
 * An echo server on epoll with nothing else in it: level-triggered, one receive into one hot
 * buffer, one send. What the socket does not take is kept, and nothing is read until it has gone.
 */
#ifndef BENCH_PEERS_RAW_ECHO_H
#define BENCH_PEERS_RAW_ECHO_H

#include <stdalign.h>
#include <unistd.h>

#include "echo/competitor.h"
#include "peers/backlog.h"
#include "peers/watched.h"

enum { WINDOW = 128 * 1024 };

static _Thread_local alignas(4096) char window[WINDOW];

static void server_configure(bench_round *round)
{
    watched_threads = bench_setting(round, "threads", 1);
}

static void hang_up(int descriptor)
{
    backlog_clear(descriptor);
    close(descriptor);
}

static void on_accepted(int descriptor)
{
    bench_require(descriptor < DESCRIPTORS_MAX, "so many connections");
}

static void on_readable(int descriptor)
{
    ssize_t got = recv(descriptor, window, WINDOW, 0);
    ssize_t sent = got > 0 ? send_now(descriptor, window, (size_t)got) : -1;

    if (sent == got)
        return;
    if (sent < 0) {
        hang_up(descriptor);
        return;
    }
    backlog_add(descriptor, window + sent, (size_t)(got - sent));
    watch(descriptor, EPOLL_CTL_MOD, EPOLLOUT);
}

static void on_writable(int descriptor)
{
    if (!backlog_send(descriptor))
        hang_up(descriptor);
    else if (backlog_is_empty(descriptor))
        watch(descriptor, EPOLL_CTL_MOD, EPOLLIN);
}

static void server_run(int cpu)
{
    static const struct watched server = {on_accepted, on_readable, on_writable};

    watched_run(&server, cpu);
}

#endif
