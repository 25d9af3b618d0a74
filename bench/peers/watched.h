/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a raw server in a level-triggered epoll set. The callbacks are known at compile
 * time, so calls are direct. Several threads have a set each, and the listening socket wakes one
 * (EPOLLEXCLUSIVE).
 */
#ifndef BENCH_PEERS_WATCHED_H
#define BENCH_PEERS_WATCHED_H

#include <pthread.h>
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

static int64_t watched_threads = 1;
static _Thread_local int epoll;

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
__attribute__((always_inline)) static inline void watched_serve(const struct watched *server,
                                                                int listener, int cpu)
{
    static _Thread_local struct epoll_event events[EVENTS_MAX];

    bench_pin(cpu);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_require(epoll >= 0, "epoll_create1");
    watch(listener, EPOLL_CTL_ADD, watched_threads > 1 ? EPOLLIN | EPOLLEXCLUSIVE : EPOLLIN);
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

struct watched_thread {
    const struct watched *server;
    int listener;
    int cpu;
};

static void *watched_thread_run(void *arg)
{
    const struct watched_thread *self = arg;

    watched_serve(self->server, self->listener, self->cpu);
    return NULL;
}

__attribute__((always_inline)) static inline void watched_run(const struct watched *server, int cpu)
{
    static struct watched_thread others;
    int listener = echo_server_listen();
    pthread_t thread;

    others = (struct watched_thread){server, listener, cpu};
    for (int64_t i = 1; i < watched_threads; i++)
        bench_require(pthread_create(&thread, NULL, watched_thread_run, &others) == 0,
                      "pthread_create");
    echo_server_announce(listener);
    watched_serve(server, listener, cpu);
}

#endif
