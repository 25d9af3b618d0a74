/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/timer.h - timers in the caller's memory, and scheduled tasks.
 *
 * A weir_timer is started and stopped on its executor's thread and allocates nothing: made for
 * timeouts that are started often and seldom fire. A scheduled task may be submitted and cancelled
 * on any thread; it has a promise.
 *
 * Neither ever fires early. Timers fire in the order of their deadlines, then in the order in which
 * they were started.
 */
#ifndef WEIR_TIMER_H
#define WEIR_TIMER_H

#include <weir/executor.h>
#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- timer ------------------------------------------------------------------------------------ */

/*
 * Zero a timer, or call weir_timer_init, before its first start. When the executor shuts down, its
 * timers are stopped and do not fire.
 */

struct weir_ctx;

typedef struct weir_timer weir_timer;
typedef void weir_timer_fn(weir_timer *timer);

struct weir_timer {
    weir_timer_node node; /* private, like the rest */
    union {
        weir_timer_fn *fn;
        void (*ctx_fn)(struct weir_ctx *ctx, weir_timer *timer); /* if ctx is set */
    };
    weir_executor *executor;
    struct weir_ctx *ctx; /* the handler that owns it: weir_ctx_timer_start */
    weir_timer *ctx_next;
};

/*
 * Initializes a timer; it is not running.
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
 * Calls fn(timer) once, after `delay_ns`; a negative delay counts as 0. A delay of 100 ms or more
 * may count from the end of the batch of tasks that starts the timer. A running timer is restarted.
 * Thread: the executor's.  Lends until it fires or is stopped: timer.  Fails: WEIR_EWRONGTHREAD,
 * -EINVAL, -EBUSY (running on another executor, or owned by a handler), WEIR_EREJECTED (the
 * executor has shut down), -ENOTSUP (immediate).
 */
WEIR_API int weir_timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns,
                              weir_timer_fn *fn);

/*
 * Like weir_timer_start, with the executor and the function of the last start.
 * Thread: the executor's.  Fails: as weir_timer_start.
 */
WEIR_API int weir_timer_restart(weir_timer *timer, int64_t delay_ns);

/*
 * Stops the timer: it does not fire. Does nothing if it is not running.
 * Thread: the executor's.  Fails: WEIR_EWRONGTHREAD.
 */
WEIR_API int weir_timer_stop(weir_timer *timer);

/*
 * True if the timer is running.
 * Thread: the executor's.
 */
static inline bool weir_timer_is_running(const weir_timer *timer)
{
    return timer->node.pprev != NULL;
}

/* --- scheduled tasks -------------------------------------------------------------------------- */

/*
 * Tasks that run once after a delay, or periodically. They may be submitted on any thread.
 *
 * The promise controls the task. Cancelling it, on any thread, prevents the next run. The promise
 * of a one-shot task completes when the task has run; that of a periodic task stays pending until
 * it is cancelled, or completed by the task itself, which also ends the repetition. The function is
 * called once with WEIR_ECANCELED instead of the run of a cancelled task, and after the last run of
 * a periodic one.
 *
 * Listeners of the promise run on `executor`: those of a one-shot task right after its run, on the
 * same thread; after a cancellation from another thread, as a task of the executor.
 *
 * A submission does not wake an executor that wakes up by itself before the deadline. ret_promise
 * may be NULL.
 */

/*
 * Runs fn(arg, 0) once, after `delay_ns`; a negative delay counts as 0.
 * Thread: any.  Gives: promise.  Fails: as weir_execute, but never WEIR_EFULL, and -ENOTSUP
 * (immediate).
 */
WEIR_API WEIR_MUST_USE int weir_schedule(weir_executor *executor, int64_t delay_ns,
                                         weir_task_fn *fn, void *arg, weir_promise **ret_promise);

/*
 * Runs fn(arg, 0) after `initial_ns` and then every `period_ns`, measured from deadline to
 * deadline: missed runs are made up for.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule, and -EINVAL (initial_ns < 0, period_ns <=
 * 0).
 */
WEIR_API WEIR_MUST_USE int weir_schedule_at_fixed_rate(weir_executor *executor, int64_t initial_ns,
                                                       int64_t period_ns, weir_task_fn *fn,
                                                       void *arg, weir_promise **ret_promise);

/*
 * Runs fn(arg, 0) after `initial_ns`, and then again `delay_ns` after the end of each run.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule, and -EINVAL (initial_ns < 0, delay_ns <=
 * 0).
 */
WEIR_API WEIR_MUST_USE int weir_schedule_with_fixed_delay(weir_executor *executor,
                                                          int64_t initial_ns, int64_t delay_ns,
                                                          weir_task_fn *fn, void *arg,
                                                          weir_promise **ret_promise);

#ifdef __cplusplus
}
#endif

#endif
