/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduled tasks: a promise, and in its extra part a timer and the two tasks that start and stop
 * the timer from other threads.
 *
 *      submitted (here: filed at once; elsewhere: `file` is posted)
 *          -> filed  -> due -> run -> once: over | repeated: filed again
 *          -> cancelled: by weir_promise_cancel on any thread, by the executor's end
 *
 * Only the executor's thread touches what is not the promise. `over` is set there when the function
 * has been called for the last time; whoever comes later finds it set and does nothing. The
 * schedule holds a reference to the promise until then, and each posted task one of its own.
 */
#include "executor/schedule.h"

#include <errno.h>

#include <weir/error.h>

#include "executor/executor.h"
#include "executor/promise.h"
#include "executor/timer.h"

enum repeat {
    ONCE,
    FIXED_RATE,
    FIXED_DELAY,
};

struct scheduled {
    weir_timer timer;
    weir_task file;   /* starts the timer */
    weir_task remove; /* stops it */
    weir_task_fn *fn;
    void *arg;
    int64_t at_ns;
    int64_t period_ns;
    enum repeat repeat;
    bool running;
    bool over;
};

static weir_executor *executor_of(struct scheduled *scheduled)
{
    return weir_promise_executor(weir__promise_of_extra(scheduled));
}

static void call(struct scheduled *scheduled, int status)
{
    weir__executor_stats_count_call(executor_of(scheduled), status);
    scheduled->fn(scheduled->arg, status);
}

/* The function's last call, unless it was a run. */
static void end(struct scheduled *scheduled, int status)
{
    scheduled->over = true;
    if (status < 0)
        call(scheduled, status);
    weir_promise_release(weir__promise_of_extra(scheduled));
}

static void on_due(weir_timer *timer);

static void file(struct scheduled *scheduled)
{
    weir__timer_start_at(executor_of(scheduled), &scheduled->timer, scheduled->at_ns, on_due);
}

static void run_once(struct scheduled *scheduled)
{
    weir_promise *promise = weir__promise_of_extra(scheduled);

    if (!weir_promise_set_uncancellable(promise)) {
        end(scheduled, WEIR_ECANCELED);
        return;
    }
    call(scheduled, 0);
    (void)weir_promise_succeed(promise, NULL);
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
    file(scheduled);
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

    /* As a failure: also if it cannot be cancelled any more, and without on_cancel. */
    (void)weir_promise_fail(weir__promise_of_extra(scheduled), WEIR_ECANCELED, NULL);
    end(scheduled, WEIR_ECANCELED);
}

static void on_file(void *arg, int status)
{
    struct scheduled *scheduled = arg;
    weir_promise *promise = weir__promise_of_extra(scheduled);

    if (!scheduled->over && status < 0)
        weir__schedule_cancelled(&scheduled->timer);
    else if (!scheduled->over)
        file(scheduled);
    weir_promise_release(promise);
}

static void remove_now(struct scheduled *scheduled)
{
    if (scheduled->running || scheduled->over)
        return; /* whoever runs it sees that the promise is complete */
    (void)weir_timer_stop(&scheduled->timer);
    end(scheduled, WEIR_ECANCELED);
}

static void on_remove(void *arg, int status)
{
    (void)status;
    remove_now(arg);
    weir_promise_release(weir__promise_of_extra(arg));
}

/* Wakes nobody for it, but for an executor that waits for its last timer to go. */
static void on_cancel(weir_promise *promise)
{
    struct scheduled *scheduled = weir__promise_extra(promise);
    weir_executor *executor = weir_promise_executor(promise);

    if (weir__in_executor(executor)) {
        remove_now(scheduled);
        return;
    }
    weir_promise_retain(promise);
    if (weir__executor_post(executor, &scheduled->remove, WEIR__LAZY) < 0)
        weir_promise_release(promise); /* it has ended, and has cancelled all its timers */
    else if (weir__executor_state(executor) == WEIR_EXECUTOR_SUSPENDING)
        weir__executor_wake(executor);
}

static int start(weir_executor *executor, struct scheduled *scheduled)
{
    weir_promise *promise = weir__promise_of_extra(scheduled);
    int err;

    if (weir__in_executor(executor)) {
        file(scheduled);
        return 0;
    }
    weir_promise_retain(promise); /* the task's */
    err = weir__executor_post(executor, &scheduled->file, scheduled->at_ns);
    if (err < 0)
        weir_promise_release(promise);
    return err;
}

static int schedule(weir_executor *executor, const struct scheduled *what, int64_t delay_ns,
                    weir_promise **ret_promise)
{
    struct scheduled *scheduled;
    weir_promise *promise;
    int err;

    if (executor == NULL || what->fn == NULL)
        return -EINVAL;
    if (executor->type->run_inline != NULL)
        return -ENOTSUP;
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED; /* its clock may be gone */
    promise = weir__promise_create_with(executor, sizeof(*scheduled));
    if (promise == NULL)
        return -ENOMEM;
    weir__promise_set_on_cancel(promise, on_cancel);
    scheduled = weir__promise_extra(promise);
    *scheduled = *what;
    scheduled->at_ns = weir__deadline(weir__executor_now(executor), delay_ns);
    weir_task_init(&scheduled->file, on_file, scheduled);
    weir_task_init(&scheduled->remove, on_remove, scheduled);

    weir_promise_retain(promise); /* the schedule's: see end() */
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
    const struct scheduled what = {.fn = fn, .arg = arg, .repeat = ONCE};

    return schedule(executor, &what, delay_ns, ret_promise);
}

static int schedule_repeated(weir_executor *executor, enum repeat repeat, int64_t initial_ns,
                             int64_t period_ns, weir_task_fn *fn, void *arg,
                             weir_promise **ret_promise)
{
    const struct scheduled what = {.fn = fn, .arg = arg, .repeat = repeat, .period_ns = period_ns};

    if (initial_ns < 0 || period_ns <= 0)
        return -EINVAL;
    return schedule(executor, &what, initial_ns, ret_promise);
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
