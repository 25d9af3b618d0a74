/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bell on a loop: a descriptor that the loop watches, and that anybody may ring.
 *
 *     struct bell bell;
 *     bell_hang(&bell, loop);
 *     bell_ring(&bell);
 *     assert_true(call_counter_await(&bell.rung, 1));
 *     bell_take_down(&bell);
 *
 * It is a member of the loop, and taken down when that shuts down.
 */
#ifndef WEIR_TEST_FD_BELL_H
#define WEIR_TEST_FD_BELL_H

#include "loop/loop.h"
#include "support/executor/call_counter.h"

struct bell {
    weir__io_handle handle;
    weir__member member;
    weir_executor *loop;
    int rope;                   /* what it is rung by */
    struct call_counter rung;   /* times that the loop has heard it */
    struct call_counter failed; /* the backend has lost it */
    struct call_counter down;   /* it is gone */

    /* The test's: called on the loop's thread each time that it is rung. NULL = nothing. */
    void (*on_ring)(struct bell *bell);
    void *user_data;
    bool stubborn; /* it stays at a shutdown, until it is aborted */
    struct call_counter shut_down;
    struct call_counter aborted;
};

/* Zeroes it but for what is the test's, and attaches it: as a task of the loop, or at once if this
 * is the loop's thread. It must not move. */
void bell_hang(struct bell *bell, weir_executor *loop);

/* Any thread. */
void bell_ring(struct bell *bell);

/* From elsewhere than the loop: waits until it is gone. */
void bell_take_down(struct bell *bell);

/* On the loop's thread; `down` follows. */
void bell_drop(struct bell *bell);

/* After the loop's end: closes the rope. */
void bell_forget(struct bell *bell);

#endif
