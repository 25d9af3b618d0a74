/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on libevent's bufferevents: what is in the input is moved to the output.
 */
#include "echo/competitor.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>

enum { WINDOW = 128 * 1024 };

static struct event_base *base;

static void server_configure(bench_round *round)
{
    (void)round;
}

static void on_read(struct bufferevent *connection, void *arg)
{
    (void)arg;
    bufferevent_write_buffer(connection, bufferevent_get_input(connection));
}

static void on_event(struct bufferevent *connection, short events, void *arg)
{
    (void)arg;
    if (events & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        bufferevent_free(connection);
}

static void on_connection(evutil_socket_t listener, short events, void *arg)
{
    struct bufferevent *connection;
    int descriptor;

    (void)events;
    (void)arg;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        connection = bufferevent_socket_new(base, descriptor, BEV_OPT_CLOSE_ON_FREE);
        bench_require(connection != NULL, "bufferevent_socket_new");
        bufferevent_set_max_single_read(connection, WINDOW);
        bufferevent_set_max_single_write(connection, WINDOW);
        bufferevent_setcb(connection, on_read, NULL, on_event, NULL);
        bufferevent_enable(connection, EV_READ | EV_WRITE);
    }
}

static void server_run(int cpu)
{
    int listener = echo_server_listen();
    struct event *accepting;

    bench_pin(cpu);
    base = event_base_new();
    bench_require(base != NULL, "event_base_new");
    accepting = event_new(base, listener, EV_READ | EV_PERSIST, on_connection, NULL);
    bench_require(accepting != NULL && event_add(accepting, NULL) == 0, "event_add");
    echo_server_announce(listener);
    event_base_dispatch(base);
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
