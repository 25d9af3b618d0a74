/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor suite on libev. Tasks: a locked list and an ev_async, sent only when the list was
 * empty. Timers: one ev_timer each.
 */
#include "executor/competitor.h"

#include <ev.h>

#include "peers/locked_list.h"

/* ---- tasks ---- */

struct loop {
    struct locked_list tasks;
    struct task stop;
    struct ev_loop *ev;
    ev_async wakeup;
    pthread_t thread;
};

static inline void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg)
{
    if (locked_list_add(&loop->tasks, task, fn, arg))
        ev_async_send(loop->ev, &loop->wakeup);
}

static void on_wakeup(struct ev_loop *ev, ev_async *wakeup, int events)
{
    struct loop *loop = wakeup->data;

    (void)ev;
    (void)events;
    locked_list_run(&loop->tasks);
}

static void *loop_body(void *arg)
{
    struct loop *loop = arg;

    ev_run(loop->ev, 0);
    return NULL;
}

static void loop_start(struct loop *loop, bench_round *round, int cpu)
{
    (void)round;
    locked_list_init(&loop->tasks);
    loop->ev = ev_loop_new(EVBACKEND_EPOLL);
    bench_require(loop->ev != NULL, "ev_loop_new");
    ev_async_init(&loop->wakeup, on_wakeup);
    loop->wakeup.data = loop;
    ev_async_start(loop->ev, &loop->wakeup);
    bench_thread_start(&loop->thread, cpu, loop_body, loop);
}

static void on_stop(void *arg, int status)
{
    struct loop *loop = arg;

    (void)status;
    ev_break(loop->ev, EVBREAK_ALL);
}

static void loop_stop(struct loop *loop)
{
    loop_post(loop, &loop->stop, on_stop, loop);
    bench_thread_join(loop->thread);
    ev_loop_destroy(loop->ev);
    locked_list_deinit(&loop->tasks);
}

/* ---- timers ---- */

struct timer {
    ev_timer ev;
};

struct timer_loop {
    struct ev_loop *ev;
};

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev;
    (void)timer;
    (void)events;
    timers_fired++;
}

static void timer_init(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    ev_timer_init(&timer->ev, on_timer, 0., 0.);
}

static inline void timer_start(struct timer_loop *loop, struct timer *timer, int64_t delay_us)
{
    ev_timer_set(&timer->ev, (double)delay_us * 1e-6, 0.);
    ev_timer_start(loop->ev, &timer->ev);
}

static inline void timer_stop(struct timer_loop *loop, struct timer *timer)
{
    ev_timer_stop(loop->ev, &timer->ev);
}

static void timers_run_due(struct timer_loop *loop)
{
    ev_run(loop->ev, EVRUN_NOWAIT);
}

/* libev's time is that of the turn, in a callback and out of it. */
static void timers_call(struct timer_loop *loop, void (*body)(void *arg), void *arg)
{
    ev_now_update(loop->ev);
    body(arg);
}

static void timers_open(struct timer_loop *loop)
{
    loop->ev = ev_loop_new(EVBACKEND_EPOLL);
    bench_require(loop->ev != NULL, "ev_loop_new");
}

static void timers_close(struct timer_loop *loop, struct timer *timers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ev_timer_stop(loop->ev, &timers[i].ev);
    ev_loop_destroy(loop->ev);
}

#include "executor/cases.h"
