/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a clock without an indirect call when it is the usual one.
 */
#ifndef WEIR_OS_CLOCK_H
#define WEIR_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

#include <weir/clock.h>

extern weir_clock weir__monotonic_clock;

/* Not inline: every caller would get a stack protector for the struct that the system fills. */
int64_t weir__monotonic_now(void);

/* The time of day since 1970, for people: it may be set, also back. */
static inline int64_t weir__realtime_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t weir__clock_now(const weir_clock *clock)
{
    return clock == &weir__monotonic_clock ? weir__monotonic_now() : clock->now(clock);
}

static inline int64_t weir__earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* How long it is until a deadline by CLOCK_MONOTONIC, 0 if that has come. */
static inline int64_t weir__monotonic_left(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns > 0 ? deadline_ns - weir__monotonic_now() : 0;

    return left_ns > 0 ? left_ns : 0;
}

/* A duration or a moment, as the system takes it. */
static inline struct timespec weir__timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* Both do nothing for a clock that runs by itself. */
void weir__clock_subscribe(weir_clock *clock, weir_clock_observer *observer);
void weir__clock_unsubscribe(weir_clock *clock, weir_clock_observer *observer);

#endif
