/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking sockets for tests, on the loopback interface or unnamed. Failures fail the test. */
#ifndef WEIR_TEST_SOCKETS_H
#define WEIR_TEST_SOCKETS_H

#include <stdbool.h>
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

/* A socket bound to an unused address, AF_INET or AF_UNIX (abstract). */
int socket_bind(int family, int type, struct address *ret_address);

/*
 * A loopback address that tests of other processes do not bind to, in host order, and as text with
 * port 0: a port of it that is closed stays free as long as this process wants.
 */
uint32_t own_loopback(void);
const char *own_loopback_text(void);

/* A listening stream socket. */
int socket_listen(int family, int backlog, struct address *ret_address);

/* An unbound socket of this family. */
int socket_new(int family, int type);

/* A stream socket that is connected or connecting. */
int socket_connect(const struct address *address);

/* Two connected sockets. */
void socket_pair(enum pair_kind kind, int ret_pair[2]);

/* Shrinks both buffers; the kernel doubles the size. */
void socket_shrink(int descriptor, int size);

/* Closes it with a reset. */
void socket_reset(int descriptor);

/* Bytes that can be received. */
size_t socket_waiting(int descriptor);

/* Sends until the socket is full. Returns the number of bytes. */
size_t socket_fill(int descriptor);

/* Receives and discards available data. Returns the number of bytes. */
size_t socket_drain(int descriptor);

/* The number of open descriptors; prints what they are. */
size_t descriptors_open(void);
void descriptors_print(void);

/*
 * Waits until `count` are open. False, and prints them, if that takes too long. Nobody joins the
 * threads of a group whose last reference was released by a loop, which held it for a route or a
 * handler; the last of them closes what it holds.
 */
bool descriptors_await(size_t count);

/* Sets the soft limit of descriptors. */
void descriptors_limit(rlim_t limit);

/* Makes opening further descriptors fail. Returns the previous limit. */
rlim_t descriptors_forbid(void);

/* Raises the limit to the hard limit. */
void descriptors_allow_all(void);

#endif
