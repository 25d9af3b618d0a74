/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor suite on libevent. Tasks: a locked list and an event made active from outside, only
 * when the list was empty. Timers: one event each; the base of one thread, without locks. (Common
 * timeouts are for few different durations, not for random ones.)
 */
#include "executor/competitor.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include "peers/locked_list.h"

/* ---- tasks ---- */

struct loop {
    struct locked_list tasks;
    struct task stop;
    struct event_base *base;
    struct event wakeup;
    pthread_t thread;
};

static inline void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg)
{
    if (locked_list_add(&loop->tasks, task, fn, arg))
        event_active(&loop->wakeup, EV_READ, 0);
}

static void on_wakeup(evutil_socket_t fd, short what, void *arg)
{
    struct loop *loop = arg;

    (void)fd;
    (void)what;
    locked_list_run(&loop->tasks);
}

static void *loop_body(void *arg)
{
    struct loop *loop = arg;

    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static void loop_start(struct loop *loop, bench_round *round, int cpu)
{
    (void)round;
    locked_list_init(&loop->tasks);
    bench_require(evthread_use_pthreads() == 0, "evthread_use_pthreads");
    loop->base = event_base_new();
    bench_require(loop->base != NULL, "event_base_new");
    bench_require(event_assign(&loop->wakeup, loop->base, -1, EV_PERSIST, on_wakeup, loop) == 0,
                  "event_assign");
    bench_thread_start(&loop->thread, cpu, loop_body, loop);
}

static void on_stop(void *arg, int status)
{
    struct loop *loop = arg;

    (void)status;
    event_base_loopbreak(loop->base);
}

static void loop_stop(struct loop *loop)
{
    loop_post(loop, &loop->stop, on_stop, loop);
    bench_thread_join(loop->thread);
    event_base_free(loop->base);
    locked_list_deinit(&loop->tasks);
}

/* ---- timers ---- */

struct timer {
    struct event event;
};

struct timer_loop {
    struct event_base *base;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    timers_fired++;
}

static void timer_init(struct timer_loop *loop, struct timer *timer)
{
    evtimer_assign(&timer->event, loop->base, on_timer, NULL);
}

static inline void timer_start(struct timer_loop *loop, struct timer *timer, int64_t delay_us)
{
    struct timeval delay = {.tv_sec = delay_us / 1000000, .tv_usec = delay_us % 1000000};

    (void)loop;
    evtimer_add(&timer->event, &delay);
}

static inline void timer_stop(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    evtimer_del(&timer->event);
}

static void timers_run_due(struct timer_loop *loop)
{
    event_base_loop(loop->base, EVLOOP_NONBLOCK);
}

struct call {
    void (*body)(void *arg);
    void *arg;
};

static void on_call(evutil_socket_t fd, short what, void *arg)
{
    struct call *call = arg;

    (void)fd;
    (void)what;
    call->body(call->arg);
}

/* In a callback libevent takes the turn's time; outside of one it would ask the system each time.
 */
static void timers_call(struct timer_loop *loop, void (*body)(void *arg), void *arg)
{
    struct call call = {body, arg};

    bench_require(event_base_once(loop->base, -1, EV_TIMEOUT, on_call, &call, NULL) == 0,
                  "event_base_once");
    event_base_loop(loop->base, EVLOOP_NONBLOCK);
}

static void timers_open(struct timer_loop *loop)
{
    struct event_config *config = event_config_new();

    bench_require(config != NULL, "event_config_new");
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    loop->base = event_base_new_with_config(config);
    bench_require(loop->base != NULL, "event_base_new_with_config");
    event_config_free(config);
}

static void timers_close(struct timer_loop *loop, struct timer *timers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        evtimer_del(&timers[i].event);
    event_base_free(loop->base);
}

#include "executor/cases.h"
