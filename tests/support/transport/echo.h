/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server and many clients, that send, pause, and compare what comes back byte by byte.
 *
 *     struct echo echo = {.connections = 200, .low_mark = 8192, .high_mark = 16384};
 *     echo_open(&echo, far, near);      groups of one loop each, or with a thread per channel
 *     echo_exchange(&echo, 65536);      bytes per client
 *     echo_close(&echo);
 *     assert_int_equal(echo.wrong, 0);
 *
 * The server does not read from a client that does not read.
 */
#ifndef WEIR_TEST_ECHO_H
#define WEIR_TEST_ECHO_H

#include <weir/channel.h>
#include <weir/group.h>

#include "support/executor/call_counter.h"

struct echo_client;

struct echo {
    const char *place; /* NULL = 127.0.0.1:0, or where a Unix socket is */
    enum weir_kind kind;
    unsigned connections;
    int64_t low_mark; /* of both sides; 0 = as usual */
    int64_t high_mark;
    int receive_max;
    int socket_buffer; /* of both sides: a small one makes the system no place to put much */
    bool pauses;       /* clients stop reading now and then */
    uint64_t seed;
    int (*prepare)(weir_pipeline *pipeline, bool is_server, void *arg); /* adds what comes first */
    void *prepare_arg;

    weir_group *far;
    weir_group *near;
    weir_channel *listener;
    weir_address address;
    struct echo_client *clients;
    size_t share; /* that the next exchange adds for each */

    struct call_counter connected;
    struct call_counter through; /* clients that have got back what they sent, in all exchanges */
    struct call_counter closed;  /* clients */
    struct call_counter served;  /* connections that the server has seen the end of */
    unsigned exchanges;

    /* On the loops. */
    _Atomic uint64_t received;       /* by the clients */
    _Atomic uint64_t wrong;          /* of that */
    _Atomic uint64_t errors;         /* received by clients */
    _Atomic int64_t most_pending;    /* of one connection, on the server's side */
    _Atomic int64_t longest_wait_ns; /* of a client between two reads, its pauses included */
};

/* All are connected. Returns an error if one could not be, or if that took too long. */
int echo_open(struct echo *echo, weir_group *far, weir_group *near);

/* Each client sends `bytes` and receives them back. False if there was no progress for 10 s. */
bool echo_exchange(struct echo *echo, size_t bytes);

/* Clients close, then the listener. False if there was no progress for 10 s. */
bool echo_close(struct echo *echo);

#endif
