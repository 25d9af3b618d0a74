/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that visit a server, talk and leave in random ways, over real sockets: messages of all
 * sizes, echoed whole or in parts, compressed or not, sent to all others; pings; closes by either
 * side, also with messages under way; connections that are reset; clients that stop reading. Every
 * message is compared, and the end of each connection must be reported once, as it was.
 */
#ifndef WEIR_TEST_WS_CROWD_H
#define WEIR_TEST_WS_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weir/channel_group.h>
#include <weir/group.h>

struct ws_crowd {
    weir_group *group; /* of server and clients; ended by ws_crowd_run */
    unsigned clients;  /* at a time */
    unsigned visits;   /* altogether */
    size_t max_message;
    uint64_t seed;

    /* Results. */
    _Atomic unsigned wrong;           /* differences, which were printed */
    _Atomic unsigned opened, closed;  /* connections that the server has seen */
    _Atomic uint64_t messages, bytes; /* that clients have received */

    /* Private. */
    weir_channel_group *guests;
    weir_promise *finished;
    char address[64];
    _Atomic unsigned begun, left;
};

/* True if nothing was wrong. */
bool ws_crowd_run(struct ws_crowd *crowd);

#endif
