/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/timer.h - a timer in the caller's memory: started and stopped on its executor's thread,
 * without allocation, for what is started often and seldom fires.
 *
 * It fires never early, and in the order of deadlines, then of starts. Zero it, or weir_timer_init
 * it, before its first start. When the executor shuts down its timers are stopped and do not fire.
 * For a timer that another thread may start or cancel, see weir/schedule.h.
 */
#ifndef WEIR_TIMER_H
#define WEIR_TIMER_H

#include <weir/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_ctx;

typedef struct weir_timer weir_timer;
typedef void weir_timer_fn(weir_timer *timer);

struct weir_timer {
    weir_timer_node node; /* private, as all of it */
    union {
        weir_timer_fn *fn;
        void (*ctx_fn)(struct weir_ctx *ctx, weir_timer *timer); /* if there is a ctx */
    };
    weir_executor *executor;
    struct weir_ctx *ctx; /* the handler that it belongs to: weir_ctx_timer_start */
    weir_timer *ctx_next;
};

/*
 * Makes a timer that is not running.
 * Thread: any.
 */
static inline void weir_timer_init(weir_timer *timer)
{
    timer->node.next = NULL;
    timer->node.pprev = NULL;
    timer->fn = NULL;
    timer->executor = NULL;
    timer->ctx = NULL;
    timer->ctx_next = NULL;
}

/*
 * Calls fn(timer) once, after `delay_ns` (a negative one counts as 0). One of 100 ms or more may
 * count from the end of the batch of tasks that starts it. A running timer is started anew.
 * Thread: the executor's.  Lends until it fires or is stopped: timer.  Fails: WEIR_EWRONGTHREAD,
 * -EINVAL, -EBUSY (it runs on another executor, or belongs to a handler), WEIR_EREJECTED (the
 * executor has shut down), -ENOTSUP (immediate).
 */
WEIR_API int weir_timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns,
                              weir_timer_fn *fn);

/*
 * As weir_timer_start with the executor and function of the last start.
 * Thread: the executor's.  Fails: as weir_timer_start.
 */
WEIR_API int weir_timer_restart(weir_timer *timer, int64_t delay_ns);

/*
 * Stops the timer: it does not fire. One that is not running is left alone.
 * Thread: the executor's.  Fails: WEIR_EWRONGTHREAD.
 */
WEIR_API int weir_timer_stop(weir_timer *timer);

/*
 * Whether it will fire.
 * Thread: the executor's.
 */
static inline bool weir_timer_is_running(const weir_timer *timer)
{
    return timer->node.pprev != NULL;
}

#ifdef __cplusplus
}
#endif

#endif
