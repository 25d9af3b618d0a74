/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/timer.h - a timer in the caller's memory: started and stopped on its executor's thread,
 * without allocation, for what is started often and seldom fires.
 *
 * It fires never early, and in the order of deadlines, then of starts. Zero it, or weir_timer_init
 * it, before its first start. When the executor shuts down its timers are stopped and do not fire.
 * For a timer that another thread may start or cancel, see weir/timer.h.
 */
#ifndef WEIR_TIMER_H
#define WEIR_TIMER_H

#include <weir/executor.h>
#include <weir/promise.h>

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

/* --- schedule --------------------------------------------------------------------------------- */

/*
 * Tasks that run later, or again and again; from any thread.
 *
 * The promise stands for the task: cancel it, from any thread, and the task does not run (again);
 * it completes when a single task has run, and never by itself for a repeated one. Completing the
 * promise of a repeated task inside the task ends it as well. After the last run of a repeated
 * task, and instead of the run of a cancelled one, the function is called once with WEIR_ECANCELED.
 *
 * A task never runs early. A submission whose deadline is later than the executor's current sleep
 * wakes nobody. ret_promise may be NULL everywhere.
 */

/*
 * Runs fn(arg, 0) once, after `delay_ns` (a negative one counts as 0).
 * Thread: any.  Gives: promise.  Fails: as weir_execute, but never WEIR_EFULL, and -ENOTSUP
 * (immediate).
 */
WEIR_API int weir_schedule(weir_executor *executor, int64_t delay_ns, weir_task_fn *fn, void *arg,
                           weir_promise **ret_promise);

/*
 * Runs fn(arg, 0) after `initial_ns` and then every `period_ns`, counted from deadline to deadline:
 * runs that were missed are made up for.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule, and -EINVAL (initial_ns < 0, period_ns <=
 * 0).
 */
WEIR_API int weir_schedule_at_fixed_rate(weir_executor *executor, int64_t initial_ns,
                                         int64_t period_ns, weir_task_fn *fn, void *arg,
                                         weir_promise **ret_promise);

/*
 * Runs fn(arg, 0) after `initial_ns` and then again `delay_ns` after the end of each run.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule, and -EINVAL (initial_ns < 0, delay_ns <=
 * 0).
 */
WEIR_API int weir_schedule_with_fixed_delay(weir_executor *executor, int64_t initial_ns,
                                            int64_t delay_ns, weir_task_fn *fn, void *arg,
                                            weir_promise **ret_promise);

#ifdef __cplusplus
}
#endif

#endif
