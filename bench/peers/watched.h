/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a raw server in a level-triggered epoll set. The callbacks are known at compile
 * time, so calls are direct.
 */
#ifndef BENCH_PEERS_WATCHED_H
#define BENCH_PEERS_WATCHED_H

#include <sys/epoll.h>
#include <sys/socket.h>

#include "echo/competitor.h"

enum { EVENTS_MAX = 1024 };

typedef void watched_fn(int descriptor);

struct watched {
    watched_fn *accepted; /* it is watched for input thereafter */
    watched_fn *readable;
    watched_fn *writable;
};

static int epoll;

static void watch(int descriptor, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = descriptor};

    bench_require(epoll_ctl(epoll, operation, descriptor, &event) == 0, "epoll_ctl");
}

__attribute__((always_inline)) static inline void watched_accept(const struct watched *server,
                                                                 int listener)
{
    int descriptor;

    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        server->accepted(descriptor);
        watch(descriptor, EPOLL_CTL_ADD, EPOLLIN);
    }
}

/* Serves for ever. */
__attribute__((always_inline)) static inline void watched_run(const struct watched *server, int cpu)
{
    static struct epoll_event events[EVENTS_MAX];
    int listener = echo_server_listen();

    bench_pin(cpu);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_require(epoll >= 0, "epoll_create1");
    watch(listener, EPOLL_CTL_ADD, EPOLLIN);
    echo_server_announce(listener);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                watched_accept(server, listener);
            else if (events[i].events & EPOLLOUT)
                server->writable(events[i].data.fd);
            else
                server->readable(events[i].data.fd);
        }
    }
}

#endif
