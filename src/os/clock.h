/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads clocks, without an indirect call for the monotonic clock.
 */
#ifndef WEIR_OS_CLOCK_H
#define WEIR_OS_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

#include <weir/clock.h>

extern weir_clock weir__monotonic_clock;

/* Not inline: callers would get a stack protector for the timespec. */
int64_t weir__monotonic_now(void);

static inline int64_t weir__clock_now(const weir_clock *clock)
{
    return clock == &weir__monotonic_clock ? weir__monotonic_now() : clock->now(clock);
}

static inline int64_t weir__earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* The time left until a deadline of CLOCK_MONOTONIC; 0 if it has passed. */
static inline int64_t weir__monotonic_left(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns > 0 ? deadline_ns - weir__monotonic_now() : 0;

    return left_ns > 0 ? left_ns : 0;
}

/* Converts a duration or time. */
static inline struct timespec weir__timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* Sleeps for a duration, also if signals interrupt it. */
static inline void weir__sleep(int64_t ns)
{
    struct timespec left = weir__timespec(ns);

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

/* Do nothing for a clock that is not manual. */
void weir__clock_subscribe(weir_clock *clock, weir_clock_observer *observer);
void weir__clock_unsubscribe(weir_clock *clock, weir_clock_observer *observer);

#endif
