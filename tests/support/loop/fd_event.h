/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A event on a loop: a descriptor that the loop watches, and that anybody may ring.
 *
 *     struct fd_event event;
 *     fd_event_open(&event, loop);
 *     fd_event_trigger(&event);
 *     assert_true(call_counter_await(&event.triggered, 1));
 *     fd_event_close(&event);
 *
 * It is a member of the loop, and taken down when that shuts down.
 */
#ifndef WEIR_TEST_FD_EVENT_H
#define WEIR_TEST_FD_EVENT_H

#include "loop/loop.h"
#include "support/executor/call_counter.h"

struct fd_event {
    weir__io_handle handle;
    weir__member member;
    weir_executor *loop;
    int descriptor;                /* what it is rung by */
    struct call_counter triggered; /* times that the loop has heard it */
    struct call_counter failed;    /* the backend has lost it */
    struct call_counter closed;    /* it is gone */

    /* The test's: called on the loop's thread each time that it is rung. NULL = nothing. */
    void (*on_event)(struct fd_event *event);
    void *user_data;
    bool waits_for_abort; /* it stays at a shutdown, until it is aborted */
    struct call_counter shut_down;
    struct call_counter aborted;
};

/* Zeroes it but for what is the test's, and attaches it: as a task of the loop, or at once if this
 * is the loop's thread. It must not move. */
void fd_event_open(struct fd_event *event, weir_executor *loop);

/* Any thread. */
void fd_event_trigger(struct fd_event *event);

/* From elsewhere than the loop: waits until it is gone. */
void fd_event_close(struct fd_event *event);

/* On the loop's thread; `down` follows. */
void fd_event_detach(struct fd_event *event);

/* After the loop's end: closes the rope. */
void fd_event_free(struct fd_event *event);

#endif
