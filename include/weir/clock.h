/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/clock.h - what time it is, and a clock whose time is moved by hand.
 *
 * Executors read time only through a weir_clock. With the monotonic one they sleep until a deadline
 * in the kernel, with another that runs by itself for as long as is left by that. With a manual
 * one, which tests and simulators move, they sleep until somebody moves it: the clock tells its
 * observers, and each looks whether its deadline has come.
 */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_clock weir_clock;
typedef struct weir_clock_observer weir_clock_observer;
typedef struct weir_manual_clock weir_manual_clock;

/*
 * Hears of each move of a manual clock. `moved` runs on the thread that moved it, after the new
 * time is visible to all, and must only wake somebody: it may read the clock, but not move it and
 * not subscribe or unsubscribe, for the clock's lock is held.
 */
struct weir_clock_observer {
    void (*moved)(weir_clock_observer *observer);
    /* Private. */
    weir_clock_observer *next;
    weir_clock_observer **pprev; /* NULL = not subscribed */
};

/* A clock: nanoseconds since some moment, never backwards, readable from any thread. */
struct weir_clock {
    int64_t (*now)(const weir_clock *clock);
    /* Both NULL unless `manual`. After unsubscribe `moved` is neither running nor to be called. */
    void (*subscribe)(weir_clock *clock, weir_clock_observer *observer);
    void (*unsubscribe)(weir_clock *clock, weir_clock_observer *observer);
    bool manual; /* its time does not pass by itself: nobody can sleep until a deadline of it */
};

/*
 * The system's CLOCK_MONOTONIC, the clock of everything that was given no other.
 * Thread: any.
 */
WEIR_API weir_clock *weir_clock_monotonic(void);

/*
 * Makes a clock that stands at `start_ns` until it is moved.
 * Thread: any.  Gives: ret_clock.  Fails: -ENOMEM, -EINVAL (start_ns < 0).
 */
WEIR_API int weir_manual_clock_create(int64_t start_ns, weir_manual_clock **ret_clock);

/*
 * Frees the clock. Whatever was made with it must be gone. NULL is fine.
 * Thread: any.  Takes: clock.
 */
WEIR_API void weir_manual_clock_release(weir_manual_clock *clock);

/*
 * The clock to put into options; it lives as long as the manual clock.
 * Thread: any.  Lends until release: the result.
 */
WEIR_API weir_clock *weir_manual_clock_clock(weir_manual_clock *clock);

/*
 * Moves the time to `now_ns` and tells the observers, also if it is the time already.
 * Thread: any.  Fails: -EINVAL if that is in the past; the time is then unchanged.
 */
WEIR_API int weir_manual_clock_set(weir_manual_clock *clock, int64_t now_ns);

/*
 * Moves the time on by `delta_ns`, to WEIR_NEVER at most, and tells the observers.
 * Thread: any.  Fails: -EINVAL if `delta_ns` is negative.
 */
WEIR_API int weir_manual_clock_advance(weir_manual_clock *clock, int64_t delta_ns);

#ifdef __cplusplus
}
#endif

#endif
