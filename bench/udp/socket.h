/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp/socket.h - the socket of a server that is not weir's.
 */
#ifndef BENCH_UDP_SOCKET_H
#define BENCH_UDP_SOCKET_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "support/bench.h"

/* Bound to a free port of the loopback interface, O_NONBLOCK. */
static inline int udp_socket_open(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    bench_require(descriptor >= 0, "socket");
    bench_require(bind(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    return descriptor;
}

#endif
