/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/clock.h - clocks, and a manual clock for tests.
 *
 * Executors read the time only through a weir_clock. With the monotonic clock they sleep until a
 * deadline in the kernel; with another running clock for the time left until the deadline. With a
 * manual clock, which tests and simulators advance, they sleep until it is advanced: the clock
 * notifies its observers, and each compares its deadline.
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
 * Observes a manual clock. `moved` runs on the thread that moved the clock, after the new time is
 * visible to all threads. It should only wake a sleeper: it may read the clock, but not move it,
 * subscribe or unsubscribe, because the lock of the clock is held.
 */
struct weir_clock_observer {
    void (*moved)(weir_clock_observer *observer);
    /* Private. */
    weir_clock_observer *next;
    weir_clock_observer **pprev; /* NULL = not subscribed */
};

/* A clock: nanoseconds since an arbitrary point, never decreasing, readable from any thread. */
struct weir_clock {
    int64_t (*now)(const weir_clock *clock);
    /* NULL unless `manual`. After unsubscribe `moved` is not running and is not called again. */
    void (*subscribe)(weir_clock *clock, weir_clock_observer *observer);
    void (*unsubscribe)(weir_clock *clock, weir_clock_observer *observer);
    bool manual; /* the time changes only when set: a thread cannot sleep until a deadline */
};

/*
 * CLOCK_MONOTONIC, the default clock.
 * Thread: any.
 */
WEIR_API weir_clock *weir_clock_monotonic(void);

/*
 * The time of a clock, to measure durations with; NULL is the monotonic clock. On an event loop,
 * weir_loop_now costs less. Simulated programs get virtual time.
 * Thread: any.
 */
WEIR_API int64_t weir_clock_now(const weir_clock *clock);

/*
 * The time of day: nanoseconds since 1970. It can be set, also backwards. The coarse one is a few
 * milliseconds late and costs less.
 * Thread: any.
 */
WEIR_API int64_t weir_time_of_day(void);
WEIR_API int64_t weir_time_of_day_coarse(void);

/*
 * Creates a clock that stands at `start_ns` until it is moved.
 * Thread: any.  Gives: ret_clock.  Fails: -ENOMEM, -EINVAL (start_ns < 0).
 */
WEIR_API WEIR_MUST_USE int weir_manual_clock_create(int64_t start_ns,
                                                    weir_manual_clock **ret_clock);

/*
 * Frees the clock. Objects that use it must be gone. NULL is ignored.
 * Thread: any.  Takes: clock.
 */
WEIR_API void weir_manual_clock_release(weir_manual_clock *clock);

/*
 * The clock to pass in options; valid until release.
 * Thread: any.  Lends until release: the result.
 */
WEIR_API weir_clock *weir_manual_clock_clock(weir_manual_clock *clock);

/*
 * Sets the time and notifies the observers, even if the time does not change.
 * Thread: any.  Fails: -EINVAL if `now_ns` is in the past; the time is then unchanged.
 */
WEIR_API int weir_manual_clock_set(weir_manual_clock *clock, int64_t now_ns);

/*
 * Advances the time by `delta_ns`, at most to WEIR_NEVER, and notifies the observers.
 * Thread: any.  Fails: -EINVAL if `delta_ns` is negative.
 */
WEIR_API int weir_manual_clock_advance(weir_manual_clock *clock, int64_t delta_ns);

#ifdef __cplusplus
}
#endif

#endif
