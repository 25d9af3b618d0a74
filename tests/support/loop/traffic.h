/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic: bytes through a pair of sockets, in both directions, both ends on one backend, in random
 * portions, with pauses, stops, reads on demand, lack of memory, moves and rebuilds in any order.
 * Each byte must arrive once and in order. tests/loop runs little of it, tests/soak a lot.
 *
 *     traffic_open(&traffic, driver);
 *     while (traffic_delivered(&traffic) < 1 << 30 && traffic_step(&traffic, kind, numbers))
 *         continue;
 *     fine = traffic_settle(&traffic);
 *     traffic_close(&traffic);
 *
 * Failures are recorded in the driver. Nothing asserts, except the creation of sockets.
 */
#ifndef WEIR_TEST_TRAFFIC_H
#define WEIR_TEST_TRAFFIC_H

#include "support/loop/peer.h"

enum traffic_kind {
    TRAFFIC_SEND,
    TRAFFIC_START,
    TRAFFIC_ONCE,
    TRAFFIC_STOP,
    TRAFFIC_STOP_INSIDE, /* at the next receive */
    TRAFFIC_TURN,
    TRAFFIC_WINDOW,
    TRAFFIC_STARVE, /* memory is refused for a while */
    TRAFFIC_MOVE,   /* detached and attached again */
    TRAFFIC_REBUILD,
    TRAFFIC_REPLACE, /* both ends are closed at any point, and others opened */
    TRAFFIC_SETTLE,  /* everything sent arrives */
    TRAFFIC_KINDS,
};

/* What an end does at the next receive. */
enum traffic_action {
    ACTION_NONE,
    ACTION_STOP,
    ACTION_STOP_AND_START,
    ACTION_ONCE,
};

struct traffic {
    struct driver *driver;
    struct traffic_end {
        struct peer *peer;
        uint64_t asked; /* bytes to send */
        enum traffic_action action;
    } ends[2];
    uint64_t delivered; /* by closed pairs */
    unsigned pairs;
};

void traffic_open(struct traffic *traffic, struct driver *driver);

/* Performs one step; the numbers select the end and the amount. False on a failure. */
bool traffic_step(struct traffic *traffic, enum traffic_kind kind, const uint32_t numbers[3]);

/* Describes such a step. */
void traffic_describe(enum traffic_kind kind, const uint32_t numbers[3], char *text, size_t size);

bool traffic_settle(struct traffic *traffic);

/* Bytes received so far, by both ends. */
uint64_t traffic_delivered(const struct traffic *traffic);

/* Closes both ends at any point. */
bool traffic_close(struct traffic *traffic);

#endif
