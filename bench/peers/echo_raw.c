/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on epoll with nothing else in it: level-triggered, one receive into one hot
 * buffer, one send. What the socket does not take is kept, and nothing is read until it has gone.
 */
#include "echo/competitor.h"

#include <stdalign.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "peers/backlog.h"

enum { EVENTS_MAX = 1024, WINDOW = 128 * 1024 };

static alignas(4096) char window[WINDOW];
static int epoll;

static void server_configure(bench_round *round)
{
    (void)round;
}

static void watch(int descriptor, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = descriptor};

    bench_require(epoll_ctl(epoll, operation, descriptor, &event) == 0, "epoll_ctl");
}

static void hang_up(int descriptor)
{
    backlog_clear(descriptor);
    close(descriptor);
}

static void accept_all(int listener)
{
    int descriptor;

    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        bench_require(descriptor < DESCRIPTORS_MAX, "so many connections");
        watch(descriptor, EPOLL_CTL_ADD, EPOLLIN);
    }
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

static void on_event(const struct epoll_event *event, int listener)
{
    if (event->data.fd == listener)
        accept_all(listener);
    else if (event->events & EPOLLOUT)
        on_writable(event->data.fd);
    else
        on_readable(event->data.fd);
}

static void server_run(int cpu)
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

        for (int i = 0; i < count; i++)
            on_event(&events[i], listener);
    }
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
