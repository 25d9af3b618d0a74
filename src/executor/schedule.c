/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduled tasks: a promise whose extra part holds a timer, and two tasks that start and stop the
 * timer from other threads.
 *
 *      submitted: the timer is started, at once on the executor's thread, otherwise by start_task
 *          -> due -> run -> ended, or the timer is started again
 *          -> cancelled: by weir_promise_cancel on any thread, or by the executor's end
 *
 * Except for the promise, only the executor's thread accesses a scheduled task. `ended` is set when
 * the function has been called for the last time; later events find it set and do nothing. The
 * schedule holds a reference to the promise until then, and so does each posted task.
 */
#include <errno.h>

#include <weir/error.h>

#include "executor/executor.h"
#include "executor/promise.h"

enum repeat {
    ONCE,
    FIXED_RATE,
    FIXED_DELAY,
};

struct scheduled {
    weir_timer timer;
    weir_task start_task; /* starts the timer, from another thread */
    weir_task stop_task;  /* stops it, from another thread */
    weir_task_fn *fn;
    void *arg;
    int64_t at_ns;
    int64_t period_ns;
    enum repeat repeat;
    bool running;
    bool ended; /* the function was called for the last time */
};

/* Any thread: the executor of a schedule's timer never changes. */
static weir_executor *executor_of(const struct scheduled *scheduled)
{
    return scheduled->timer.executor;
}

static void call(struct scheduled *scheduled, int status)
{
    weir__executor_stats_count_timer(executor_of(scheduled), status);
    scheduled->fn(scheduled->arg, status);
}

/* Ends the schedule; a negative status is the last call of the function. */
static void end(struct scheduled *scheduled, int status)
{
    scheduled->ended = true;
    if (status < 0)
        call(scheduled, status);
    weir_promise_release(weir__promise_of_extra(scheduled));
}

static void start_timer(struct scheduled *scheduled)
{
    weir__timers_start(&executor_of(scheduled)->timers, &scheduled->timer.node, scheduled->at_ns);
}

static void run_once(struct scheduled *scheduled)
{
    weir_promise *promise = weir__promise_of_extra(scheduled);

    if (!weir_promise_set_uncancellable(promise)) {
        end(scheduled, WEIR_ECANCELED);
        return;
    }
    call(scheduled, 0);
    (void)weir__promise_complete(promise, 0, NULL);
    end(scheduled, 0);
}

static void run_repeated(struct scheduled *scheduled)
{
    weir_promise *promise = weir__promise_of_extra(scheduled);

    if (!weir_promise_is_done(promise)) {
        scheduled->running = true;
        call(scheduled, 0);
        scheduled->running = false;
    }
    if (weir_promise_is_done(promise)) {
        end(scheduled, WEIR_ECANCELED);
        return;
    }
    if (scheduled->repeat == FIXED_DELAY)
        scheduled->at_ns = weir__executor_now(executor_of(scheduled));
    scheduled->at_ns = weir__deadline(scheduled->at_ns, scheduled->period_ns);
    start_timer(scheduled);
}

static void on_due(weir_timer *timer)
{
    struct scheduled *scheduled = WEIR_CONTAINER_OF(timer, struct scheduled, timer);

    if (scheduled->repeat == ONCE)
        run_once(scheduled);
    else
        run_repeated(scheduled);
}

bool weir__schedule_owns(const weir_timer *timer)
{
    return timer->fn == on_due;
}

void weir__schedule_cancelled(weir_timer *timer)
{
    struct scheduled *scheduled = WEIR_CONTAINER_OF(timer, struct scheduled, timer);

    /* Failed, not cancelled: works for an uncancellable promise, and does not call on_cancel. */
    (void)weir__promise_complete(weir__promise_of_extra(scheduled), WEIR_ECANCELED, NULL);
    end(scheduled, WEIR_ECANCELED);
}

static void on_start_task(void *arg, int status)
{
    struct scheduled *scheduled = arg;
    weir_promise *promise = weir__promise_of_extra(scheduled);

    if (!scheduled->ended && status < 0)
        weir__schedule_cancelled(&scheduled->timer);
    else if (!scheduled->ended)
        start_timer(scheduled);
    weir_promise_release(promise);
}

static void stop_now(struct scheduled *scheduled)
{
    if (scheduled->running || scheduled->ended)
        return; /* run_repeated sees that the promise is complete */
    weir__timers_stop(&executor_of(scheduled)->timers, &scheduled->timer.node);
    end(scheduled, WEIR_ECANCELED);
}

static void on_stop_task(void *arg, int status)
{
    (void)status;
    stop_now(arg);
    weir_promise_release(weir__promise_of_extra(arg));
}

static void on_cancel(weir_promise *promise)
{
    struct scheduled *scheduled = weir__promise_extra(promise);
    weir_executor *executor = executor_of(scheduled);

    if (weir__in_executor(executor)) {
        stop_now(scheduled);
        return;
    }
    weir_task_init(&scheduled->stop_task, on_stop_task, scheduled);
    weir_promise_retain(promise);
    if (weir__executor_post(executor, &scheduled->stop_task, WEIR__LAZY) < 0)
        weir_promise_release(promise); /* the executor has ended and has cancelled its timers */
}

static int start(weir_executor *executor, struct scheduled *scheduled)
{
    weir_promise *promise = weir__promise_of_extra(scheduled);
    int err;

    if (weir__in_executor(executor)) {
        start_timer(scheduled);
        return 0;
    }
    weir_task_init(&scheduled->start_task, on_start_task, scheduled);
    weir_promise_retain(promise); /* the task's */
    err = weir__executor_post(executor, &scheduled->start_task, scheduled->at_ns);
    if (err < 0)
        weir_promise_release(promise);
    return err;
}

static int schedule(weir_executor *executor, enum repeat repeat, int64_t delay_ns,
                    int64_t period_ns, weir_task_fn *fn, void *arg, weir_promise **ret_promise)
{
    struct scheduled *scheduled;
    weir_promise *promise;
    int err;

    if (executor == NULL || fn == NULL)
        return -EINVAL;
    if (executor->type->run_inline != NULL)
        return -ENOTSUP;
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED; /* the clock may have been destroyed */
    promise = weir__promise_create_with(executor, sizeof(*scheduled));
    if (promise == NULL)
        return -ENOMEM;
    weir__promise_set_on_cancel(promise, on_cancel);
    scheduled = weir__promise_extra(promise);
    scheduled->timer.executor = executor;
    scheduled->timer.fn = on_due;
    scheduled->fn = fn;
    scheduled->arg = arg;
    scheduled->at_ns = weir__deadline(weir__executor_now(executor), delay_ns);
    scheduled->period_ns = period_ns;
    scheduled->repeat = repeat;

    weir__promise_retain_new(promise); /* released by end() */
    err = start(executor, scheduled);
    if (err < 0)
        weir_promise_release(promise);
    if (err < 0 || ret_promise == NULL)
        weir_promise_release(promise);
    else
        *ret_promise = promise;
    return err;
}

int weir_schedule(weir_executor *executor, int64_t delay_ns, weir_task_fn *fn, void *arg,
                  weir_promise **ret_promise)
{
    return schedule(executor, ONCE, delay_ns, 0, fn, arg, ret_promise);
}

static int schedule_repeated(weir_executor *executor, enum repeat repeat, int64_t initial_ns,
                             int64_t period_ns, weir_task_fn *fn, void *arg,
                             weir_promise **ret_promise)
{
    if (initial_ns < 0 || period_ns <= 0)
        return -EINVAL;
    return schedule(executor, repeat, initial_ns, period_ns, fn, arg, ret_promise);
}

int weir_schedule_at_fixed_rate(weir_executor *executor, int64_t initial_ns, int64_t period_ns,
                                weir_task_fn *fn, void *arg, weir_promise **ret_promise)
{
    return schedule_repeated(executor, FIXED_RATE, initial_ns, period_ns, fn, arg, ret_promise);
}

int weir_schedule_with_fixed_delay(weir_executor *executor, int64_t initial_ns, int64_t delay_ns,
                                   weir_task_fn *fn, void *arg, weir_promise **ret_promise)
{
    return schedule_repeated(executor, FIXED_DELAY, initial_ns, delay_ns, fn, arg, ret_promise);
}
