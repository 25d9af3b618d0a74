/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that is a program of its own with a configuration file, and cannot say when it listens.
 */
#ifndef BENCH_PEERS_LAUNCHED_H
#define BENCH_PEERS_LAUNCHED_H

#include <netinet/in.h>
#include <unistd.h>

#include "echo/server.h"
#include "support/bench.h"

/* A free port, which stays so until the program listens there with SO_REUSEPORT. */
static inline uint16_t launched_reserve_port(void)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_storage address;
    struct sockaddr_in *in = (struct sockaddr_in *)&address;
    socklen_t length = echo_server_address(0, &address);

    bench_require(descriptor >= 0, "socket");
    bench_require(setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0,
                  "SO_REUSEPORT");
    bench_require(bind(descriptor, (struct sockaddr *)in, length) == 0, "bind");
    bench_require(getsockname(descriptor, (struct sockaddr *)in, &length) == 0, "getsockname");
    return ntohs(in->sin_port);
}

/* Announces the port when the calling process, which becomes the program, listens there. */
static inline void launched_announce_later(uint16_t port)
{
    struct sockaddr_storage address;
    socklen_t length = echo_server_address(port, &address);
    int descriptor, err;

    if (fork() != 0)
        return;
    do {
        usleep(1000);
        descriptor = socket(AF_INET, SOCK_STREAM, 0);
        err = connect(descriptor, (const struct sockaddr *)&address, length);
        close(descriptor);
    } while (err != 0 && getppid() != 1);
    echo_server_announce_port(port);
    _exit(0);
}

#endif
