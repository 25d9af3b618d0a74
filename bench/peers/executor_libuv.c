/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor suite on libuv. Tasks: a locked list and a uv_async_t, sent only when the list was
 * empty. Timers: uv_timer_t, which counts milliseconds.
 */
#include "executor/competitor.h"

#include <uv.h>

#include "peers/locked_list.h"

/* ---- tasks ---- */

struct loop {
    struct locked_list tasks;
    struct task stop;
    uv_loop_t uv;
    uv_async_t wakeup;
    pthread_t thread;
};

static inline void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg)
{
    if (locked_list_add(&loop->tasks, task, fn, arg))
        bench_require(uv_async_send(&loop->wakeup) == 0, "uv_async_send");
}

static void on_wakeup(uv_async_t *wakeup)
{
    struct loop *loop = wakeup->data;

    locked_list_run(&loop->tasks);
}

static void *loop_body(void *arg)
{
    struct loop *loop = arg;

    uv_run(&loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

static void loop_start(struct loop *loop, bench_round *round, int cpu)
{
    (void)round;
    locked_list_init(&loop->tasks);
    bench_require(uv_loop_init(&loop->uv) == 0, "uv_loop_init");
    bench_require(uv_async_init(&loop->uv, &loop->wakeup, on_wakeup) == 0, "uv_async_init");
    loop->wakeup.data = loop;
    bench_thread_start(&loop->thread, cpu, loop_body, loop);
}

/* Without its one handle the loop ends. */
static void on_stop(void *arg, int status)
{
    struct loop *loop = arg;

    (void)status;
    uv_close((uv_handle_t *)&loop->wakeup, NULL);
}

static void loop_stop(struct loop *loop)
{
    loop_post(loop, &loop->stop, on_stop, loop);
    bench_thread_join(loop->thread);
    bench_require(uv_loop_close(&loop->uv) == 0, "uv_loop_close");
    locked_list_deinit(&loop->tasks);
}

/* ---- timers ---- */

struct timer {
    uv_timer_t uv;
};

struct timer_loop {
    uv_loop_t uv;
};

static void on_timer(uv_timer_t *timer)
{
    (void)timer;
    timers_fired++;
}

static void timer_init(struct timer_loop *loop, struct timer *timer)
{
    uv_timer_init(&loop->uv, &timer->uv);
}

static inline void timer_start(struct timer_loop *loop, struct timer *timer, int64_t delay_us)
{
    (void)loop;
    uv_timer_start(&timer->uv, on_timer, (uint64_t)delay_us / 1000, 0);
}

static inline void timer_stop(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    uv_timer_stop(&timer->uv);
}

static void timers_run_due(struct timer_loop *loop)
{
    uv_run(&loop->uv, UV_RUN_NOWAIT);
}

/* libuv's time is that of the turn, in a callback and out of it. */
static void timers_call(struct timer_loop *loop, void (*body)(void *arg), void *arg)
{
    uv_update_time(&loop->uv);
    body(arg);
}

static void timers_open(struct timer_loop *loop)
{
    bench_require(uv_loop_init(&loop->uv) == 0, "uv_loop_init");
}

static void timers_close(struct timer_loop *loop, struct timer *timers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        uv_close((uv_handle_t *)&timers[i].uv, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    bench_require(uv_loop_close(&loop->uv) == 0, "uv_loop_close");
}

#include "executor/cases.h"
