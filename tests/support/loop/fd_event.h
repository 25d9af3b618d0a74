/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor watched by a loop that any thread can make readable.
 *
 *     struct fd_event event;
 *     fd_event_open(&event, loop);
 *     fd_event_trigger(&event);
 *     assert_true(call_counter_await(&event.triggered, 1));
 *     fd_event_close(&event);
 *
 * It is a member of the loop, and closed when the loop shuts down.
 */
#ifndef WEIR_TEST_FD_EVENT_H
#define WEIR_TEST_FD_EVENT_H

#include "loop/loop.h"
#include "support/executor/call_counter.h"

struct fd_event {
    weir__io_handle handle;
    weir__member member;
    weir_executor *loop;
    int descriptor;                /* written by fd_event_trigger */
    struct call_counter triggered; /* times the loop saw it */
    struct call_counter failed;    /* the backend failed it */
    struct call_counter closed;    /* it is detached */

    /* Set by the test: called on the loop's thread for each trigger. NULL = nothing. */
    void (*on_event)(struct fd_event *event);
    void *user_data;
    bool waits_for_abort; /* stays open at shutdown until it is aborted */
    bool was_attached;    /* set on the loop: the handle itself may change there at any time */
    struct call_counter shut_down;
    struct call_counter aborted;
};

/*
 * Clears all fields but those set by the test, and attaches the event: by a task of the loop, or at
 * once on the loop's thread. It must not move.
 */
void fd_event_open(struct fd_event *event, weir_executor *loop);

/* Any thread. */
void fd_event_trigger(struct fd_event *event);

/* On other threads than the loop's: waits until it is closed. */
void fd_event_close(struct fd_event *event);

/* On the loop's thread; `closed` follows. */
void fd_event_detach(struct fd_event *event);

/* After the loop's end: closes the descriptor. */
void fd_event_free(struct fd_event *event);

#endif
