/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/competitor.h - what a competitor of the executor suite defines.
 *
 *      #include "executor/competitor.h"
 *      struct task { ... };  struct loop { ... };  ...  and the functions below
 *      #include "executor/cases.h"
 *
 * Everything is static and comes before the cases in one file, so that the compiler can inline a
 * competitor's operations into cases that are the same for all. What fails ends the program.
 */
#ifndef BENCH_EXECUTOR_COMPETITOR_H
#define BENCH_EXECUTOR_COMPETITOR_H

#include "executor/tasks.h"

/* A loop on the calling thread and its timers. */
struct timer;
struct timer_loop;

static void timers_open(struct timer_loop *loop);
static void timers_close(struct timer_loop *loop, struct timer *timers, size_t count);

/* Calls body(arg) in a callback of the loop, where it knows the time, as a handler would be. */
static void timers_call(struct timer_loop *loop, void (*body)(void *arg), void *arg);

/* Start and stop only from there. A timer that fires adds one to timers_fired. */
static void timer_init(struct timer_loop *loop, struct timer *timer);
static void timer_start(struct timer_loop *loop, struct timer *timer, int64_t delay_us);
static void timer_stop(struct timer_loop *loop, struct timer *timer);

/* Fires what is due now. */
static void timers_run_due(struct timer_loop *loop);

static size_t timers_fired;

#endif
