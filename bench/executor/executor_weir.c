/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor suite on weir. Tasks: weir_execute, or with own=1 weir_execute_task with tasks in
 * the submitter's memory. Timers: weir_timer on a manual executor with the system's clock.
 */
#include "executor/competitor.h"

#include <stdalign.h>

#include <weir/group.h>
#include <weir/manual.h>
#include <weir/timer.h>

/* ---- tasks ---- */

struct task {
    alignas(BENCH_LINE) weir_task weir;
};

struct loop {
    weir_group *group;
    weir_executor *executor;
    bool own_tasks;
};

static inline void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg)
{
    int err;

    if (loop->own_tasks) {
        weir_task_init(&task->weir, fn, arg);
        err = weir_execute_task(loop->executor, &task->weir);
    } else {
        err = weir_execute(loop->executor, fn, arg);
    }
    bench_require(err == 0, "weir_execute");
}

static void loop_start(struct loop *loop, bench_round *round, int cpu)
{
    weir_group_options options;

    weir_group_options_init(&options);
    options.threads = 1;
    options.io = WEIR_IO_NONE;
    if (cpu >= 0) {
        options.pin = true;
        options.cpus = &cpu;
        options.cpu_count = 1;
    }
    bench_require(weir_group_create(&options, &loop->group) == 0, "weir_group_create");
    loop->executor = weir_group_next(loop->group);
    loop->own_tasks = bench_setting(round, "own", 0) != 0;
}

static void loop_stop(struct loop *loop)
{
    weir_group_release(loop->group);
}

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
