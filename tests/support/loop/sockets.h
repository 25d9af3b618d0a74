/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets for tests: non-blocking, on the loopback interface or without a name. What cannot be had
 * fails the test.
 */
#ifndef WEIR_TEST_SOCKETS_H
#define WEIR_TEST_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

enum pair_kind {
    PAIR_TCP,
    PAIR_UNIX,
    PAIR_UNIX_SEQPACKET,
    PAIR_UNIX_DATAGRAM,
    PAIR_UDP,
};

/* A socket that is bound to an address of its own, AF_INET or AF_UNIX (abstract). */
int socket_bind(int family, int type, struct address *ret_address);

/*
 * A loopback address that other processes' tests do not bind to, in the host's order and with port
 * 0 in words: a port of it that was let go of is nobody's for as long as this process wants it so.
 */
uint32_t own_loopback(void);
const char *own_loopback_text(void);

/* A stream socket that listens there. */
int socket_listen(int family, int backlog, struct address *ret_address);

/* A socket of that family that is not bound. */
int socket_new(int family, int type);

/* A stream socket that is connected, or about to be if that does not happen at once. */
int socket_connect(const struct address *address);

/* Two sockets that are connected to each other. */
void socket_pair(enum pair_kind kind, int ret_pair[2]);

/* Makes both buffers small; the kernel doubles this. */
void socket_shrink(int descriptor, int size);

/* Closes it so that the peer sees a reset. */
void socket_reset(int descriptor);

/* Bytes that have come and were not received. */
size_t socket_waiting(int descriptor);

/* Sends until the socket is full; returns how many bytes it took. */
size_t socket_fill(int descriptor);

/* Receives and forgets what is there; returns how many bytes that was. */
size_t socket_drain(int descriptor);

/* How many descriptors the process has open; and what they are, on the standard output. */
size_t descriptors_open(void);
void descriptors_print(void);

/* Sets the soft limit of descriptors. */
void descriptors_limit(rlim_t limit);

/* From now on none can be opened, though the process keeps those it has; returns what the limit
 * was. */
rlim_t descriptors_forbid(void);

/* As many as the hard limit allows, from now on. */
void descriptors_allow_all(void);

#endif
