/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams in great number, from one UDP channel to another: each has a number and bytes that
 * follow from it. What the receiver's socket had no room for is what the system says it has
 * dropped, and nothing else may be missing. Unix sockets drop nothing.
 *
 *     struct flood flood = {.count = 100000};
 *     assert_int_equal(flood_run(&flood, far, near), 0);
 *     assert_int_equal(flood.received + flood.dropped, flood.count);
 */
#ifndef WEIR_TEST_FLOOD_H
#define WEIR_TEST_FLOOD_H

#include <weir/channel.h>
#include <weir/group.h>

#include "support/executor/call_counter.h"

struct flood {
    bool is_unix;
    uint32_t count;
    uint16_t segments; /* that each message is made of; 0 = messages are single datagrams */
    bool patient;      /* the sender waits for the receiver: little is lost */
    uint32_t dropped;  /* by the receiver's socket */

    weir_channel *sender;
    weir_channel *receiver;
    struct call_counter sent_all;
    struct call_counter progress; /* the receiver's reads that were complete, and all is sent */
    uint32_t sent;                /* the sender's loop's */
    uint8_t *seen;                /* a bit for each number: the receiver's loop's */

    /* On the receiver's loop; the last on both. */
    _Atomic uint32_t received;
    _Atomic uint32_t wrong;   /* bytes that are not what was sent */
    _Atomic uint32_t doubled; /* numbers that came twice */
    _Atomic uint32_t errors;  /* received by handlers */
};

/* The receiver lives on a loop of `far`, the sender on one of `near`. Returns an error if they
 * could not be set up, -ETIMEDOUT if something is missing and nothing comes any more. */
int flood_run(struct flood *flood, weir_group *far, weir_group *near);

/* Whether all has come, as it was sent, or is accounted for. */
bool flood_is_good(const struct flood *flood);

#endif
