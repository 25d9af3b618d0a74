/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor suite on weir. Tasks: plain executors. Timers: weir_timer on a manual executor with
 * the system's clock.
 */
#include "executor/competitor.h"

#include <weir/manual.h>
#include <weir/timer.h>

#include "executor/weir_tasks.h"

/* ---- timers ---- */

struct timer {
    weir_timer weir;
};

struct timer_loop {
    weir_executor *executor;
};

static void on_timer(weir_timer *timer)
{
    (void)timer;
    timers_fired++;
}

static void timer_init(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    weir_timer_init(&timer->weir);
}

static inline void timer_start(struct timer_loop *loop, struct timer *timer, int64_t delay_us)
{
    weir_timer_start(loop->executor, &timer->weir, weir_us(delay_us), on_timer);
}

static inline void timer_stop(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    weir_timer_stop(&timer->weir);
}

static void timers_run_due(struct timer_loop *loop)
{
    bench_require(weir_manual_run_once(loop->executor, 0, 0) >= 0, "weir_manual_run_once");
}

struct call {
    void (*body)(void *arg);
    void *arg;
};

static void on_call(void *arg, int status)
{
    struct call *call = arg;

    (void)status;
    call->body(call->arg);
}

static void timers_call(struct timer_loop *loop, void (*body)(void *arg), void *arg)
{
    struct call call = {body, arg};

    bench_require(weir_execute(loop->executor, on_call, &call) == 0, "weir_execute");
    timers_run_due(loop);
}

static void timers_open(struct timer_loop *loop)
{
    bench_require(weir_manual_create(NULL, &loop->executor) == 0, "weir_manual_create");
}

static void timers_close(struct timer_loop *loop, struct timer *timers, size_t count)
{
    (void)timers;
    (void)count;
    weir_executor_shutdown(loop->executor, 0, 0);
    while (weir_manual_run_once(loop->executor, 0, 0) >= 0)
        ;
    weir_executor_release(loop->executor);
}

#include "executor/cases.h"
