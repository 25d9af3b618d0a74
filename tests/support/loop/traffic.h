/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic: bytes through a pair of sockets, both ways at once, both ends on one backend, in random
 * portions, with pauses, stops, reads on demand, lack of memory, moves and rebuilds in any order.
 * Each byte must arrive, once and in its place. tests/loop runs a little of it, tests/soak a lot.
 *
 *     traffic_open(&traffic, driver);
 *     while (traffic_delivered(&traffic) < 1 << 30 && traffic_step(&traffic, kind, numbers))
 *         continue;
 *     fine = traffic_settle(&traffic);
 *     traffic_close(&traffic);
 *
 * What went wrong is the driver's complaint. Nothing asserts, but for sockets that cannot be had.
 */
#ifndef WEIR_TEST_TRAFFIC_H
#define WEIR_TEST_TRAFFIC_H

#include "support/loop/peer.h"

enum traffic_kind {
    TRAFFIC_SEND,
    TRAFFIC_START,
    TRAFFIC_ONCE,
    TRAFFIC_STOP,
    TRAFFIC_STOP_INSIDE, /* the next time that something is received */
    TRAFFIC_TURN,
    TRAFFIC_WINDOW,
    TRAFFIC_STARVE, /* memory is refused for a while */
    TRAFFIC_MOVE,   /* detached and attached again */
    TRAFFIC_REBUILD,
    TRAFFIC_REPLACE, /* both ends are closed, whatever is under way, and others opened */
    TRAFFIC_SETTLE,  /* all that was sent arrives */
    TRAFFIC_KINDS,
};

/* What an end does the next time that something is received. */
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
        uint64_t asked; /* bytes that it was told to send */
        enum traffic_action action;
    } ends[2];
    uint64_t delivered; /* by pairs that are gone */
    unsigned pairs;
};

void traffic_open(struct traffic *traffic, struct driver *driver);

/* Does one thing; the numbers say to which end, and how much. False if something is wrong. */
bool traffic_step(struct traffic *traffic, enum traffic_kind kind, const uint32_t numbers[3]);

/* Writes what such a step is. */
void traffic_describe(enum traffic_kind kind, const uint32_t numbers[3], char *text, size_t size);

bool traffic_settle(struct traffic *traffic);

/* Bytes received so far, by both ends. */
uint64_t traffic_delivered(const struct traffic *traffic);

/* Closes both ends, whatever is under way. */
bool traffic_close(struct traffic *traffic);

#endif
