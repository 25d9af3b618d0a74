/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on libev: one watcher for each connection, received into one hot buffer, and sent
 * back at once. What the socket does not take is kept, and nothing is read until it has gone.
 */
#include "echo/competitor.h"

#include <stdalign.h>
#include <stdlib.h>
#include <unistd.h>

#include <ev.h>

#include "peers/backlog.h"

enum { WINDOW = 128 * 1024 };

static alignas(4096) char window[WINDOW];

static void server_configure(bench_round *round)
{
    (void)round;
}

static void hang_up(struct ev_loop *loop, ev_io *connection)
{
    ev_io_stop(loop, connection);
    backlog_clear(connection->fd);
    close(connection->fd);
    free(connection);
}

static void wait_for(struct ev_loop *loop, ev_io *connection, int events)
{
    ev_io_stop(loop, connection);
    ev_io_set(connection, connection->fd, events);
    ev_io_start(loop, connection);
}

static void on_writable(struct ev_loop *loop, ev_io *connection)
{
    if (!backlog_send(connection->fd))
        hang_up(loop, connection);
    else if (backlog_is_empty(connection->fd))
        wait_for(loop, connection, EV_READ);
}

static void on_ready(struct ev_loop *loop, ev_io *connection, int events)
{
    ssize_t got, sent;

    if (events & EV_WRITE) {
        on_writable(loop, connection);
        return;
    }
    got = recv(connection->fd, window, WINDOW, 0);
    sent = got > 0 ? send_now(connection->fd, window, (size_t)got) : -1;
    if (sent == got)
        return;
    if (sent < 0) {
        hang_up(loop, connection);
        return;
    }
    backlog_add(connection->fd, window + sent, (size_t)(got - sent));
    wait_for(loop, connection, EV_WRITE);
}

static void on_connection(struct ev_loop *loop, ev_io *listener, int events)
{
    int descriptor;

    (void)events;
    while ((descriptor = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        ev_io *connection = malloc(sizeof(*connection));

        bench_require(connection != NULL && descriptor < DESCRIPTORS_MAX, "accepting");
        ev_io_init(connection, on_ready, descriptor, EV_READ);
        ev_io_start(loop, connection);
    }
}

static void server_run(int cpu)
{
    struct ev_loop *loop = ev_default_loop(EVBACKEND_EPOLL);
    int listener = echo_server_listen();
    static ev_io accepting;

    bench_pin(cpu);
    bench_require(loop != NULL, "ev_default_loop");
    ev_io_init(&accepting, on_connection, listener, EV_READ);
    ev_io_start(loop, &accepting);
    echo_server_announce(listener);
    ev_run(loop, 0);
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
