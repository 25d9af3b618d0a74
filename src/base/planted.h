/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes that are planted into the library to find out whether the simulator finds them
 * (tests/sim/planted). Only that test compiles the files that contain them with WEIR_PLANTED;
 * everywhere else WEIR__PLANTED is false and leaves no code behind.
 */
#ifndef WEIR_BASE_PLANTED_H
#define WEIR_BASE_PLANTED_H

#include <stddef.h> /* a header is not empty */

#ifdef WEIR_PLANTED

/* clang-format off: one a line, X(name, what is wrong) */
#define WEIR__PLANTED_MISTAKES(X)                                                    \
    X(LOST_WAKEUP, "an executor that falls asleep does not look at its queue again") \
    X(PARTIAL_SEND, "the rest of a partial send is not sent")                        \
    X(INTERRUPTED_RECEIVE, "an interrupted receive ends the connection")             \
    X(CONNECT_RELEASE, "the promise of a failed connect is not released")            \
    X(CANCEL_RELEASE, "a cancelled promise is released twice")                       \
    X(TIMER_REARM, "a periodic task that is late is not started again")              \
    X(ACCEPT_BACKOFF, "a listener that lacks descriptors does not accept again")     \
    X(HALF_CLOSE, "a half close does not wait until everything is sent")             \
    X(OVERTAKEN, "a call to a channel that moves to another loop is overtaken")      \
    X(POOL_CLOSED, "a pool hands out a connection that is closed")                   \
    X(POOL_NO_MEMORY, "a pool leaks memory when it cannot connect")                  \
    X(DRAIN, "a connection that drains does not wait for its handlers")              \
    X(RING_UNBOUNDED, "a ring goes on receiving what is not delivered")              \
    X(LOST_TAIL, "a half close does not send what waits for room")                   \
    X(LOW_MARK, "a channel that has sent enough stays unwritable")                   \
    X(NOT_RESUMED, "a socket that has room again is not written to")
/* clang-format on */

#define WEIR__PLANTED_ELEMENT(name, text) WEIR__PLANTED_##name,

enum weir__planted { WEIR__PLANTED_NONE, WEIR__PLANTED_MISTAKES(WEIR__PLANTED_ELEMENT) };

extern enum weir__planted weir__planted; /* the one that is on */

#define WEIR__PLANTED(name) (weir__planted == WEIR__PLANTED_##name)

#else

#define WEIR__PLANTED(name) 0

#endif

#endif
