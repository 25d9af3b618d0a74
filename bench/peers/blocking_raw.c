/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server with a thread per connection and nothing else in it: a receive that blocks, a send
 * that blocks.
 */
#include "echo/competitor.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW = 64 * 1024, STACK = 256 * 1024 };

static void server_configure(bench_round *round)
{
    (void)round;
}

static bool send_all(int descriptor, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(descriptor, bytes, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static void *serve(void *arg)
{
    int descriptor = (int)(intptr_t)arg;
    char window[WINDOW];
    ssize_t got;

    do {
        got = recv(descriptor, window, sizeof(window), 0);
    } while (got > 0 && send_all(descriptor, window, (size_t)got));
    close(descriptor);
    return NULL;
}

static void server_run(int cpu)
{
    int listener = echo_server_listen();
    pthread_attr_t attributes;
    pthread_t thread;

    bench_pin(cpu); /* threads inherit that */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    bench_require(fcntl(listener, F_SETFL, 0) == 0, "making the listener block");
    echo_server_announce(listener);
    for (;;) {
        intptr_t descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        bench_require(descriptor >= 0, "accept4");
        bench_require(pthread_create(&thread, &attributes, serve, (void *)descriptor) == 0,
                      "pthread_create");
    }
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
