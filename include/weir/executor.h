/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/executor.h - a piece of work for an executor.
 *
 * A task function gets a status: 0 = run, WEIR_ECANCELED = it will never run, clean up. If
 * submitting returned 0 it is called exactly once; if submitting returned an error, never.
 */
#ifndef WEIR_EXECUTOR_H
#define WEIR_EXECUTOR_H

#include <weir/base.h>
#include <weir/metric.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void weir_task_fn(void *arg, int status);

/*
 * A task in the caller's memory: submitting one needs no allocation. It belongs to the executor
 * from the submission until its function is called, and may be submitted again from there.
 */
typedef struct weir_task {
    weir_queue_node node; /* private */
    weir_task_fn *fn;
    void *arg;
    uintptr_t reserved; /* private */
} weir_task;

/*
 * Prepares a task in the caller's memory.
 * Thread: any.
 */
static inline void weir_task_init(weir_task *task, weir_task_fn *fn, void *arg)
{
    task->node.next = NULL;
    task->fn = fn;
    task->arg = arg;
    task->reserved = 0;
}

/* --- executor --------------------------------------------------------------------------------- */

/*
 * One thread, one queue, one timer store.
 *
 *      any thread --- weir_execute --->  [ queue ]  --->  the executor's thread:
 *                                                         due timers, tasks, tail tasks, sleep
 *
 * Tasks of one submitting thread run in the order submitted, and a task submitted by the executor's
 * own thread runs after those that are already queued. The thread starts with the first submission.
 * What is submitted is run or cancelled, exactly once; what is refused is never called. Whoever
 * submits holds the executor, or its group, until the call has returned: the task may run before.
 *
 *      NOT_STARTED --> STARTED --> SUSPENDING --> SUSPENDED --(any submission)--> STARTED
 *                         |            |              |
 *                         +--> SHUTTING_DOWN          |
 *                                  `--> SHUTDOWN <----' --> TERMINATED
 */

typedef struct weir_executor weir_executor;
typedef struct weir_promise weir_promise;

/* Compare with >=: the states are ordered. */
enum weir_executor_state {
    WEIR_EXECUTOR_NOT_STARTED = 1,
    WEIR_EXECUTOR_SUSPENDING,
    WEIR_EXECUTOR_SUSPENDED,
    WEIR_EXECUTOR_STARTED,
    WEIR_EXECUTOR_SHUTTING_DOWN, /* still takes tasks, until the quiet period is over */
    WEIR_EXECUTOR_SHUTDOWN,      /* takes no more tasks */
    WEIR_EXECUTOR_TERMINATED,
};

/*
 * Does the work of a weir_submit: returns 0 and sets *ret_value (NULL by default), or an error.
 * With WEIR_ECANCELED as status it only cleans up, and what it returns is ignored.
 */
typedef int weir_work_fn(void *arg, int status, void **ret_value);

/*
 * Called in the submitting thread when a submission is refused: `reason` is WEIR_EFULL or
 * WEIR_EREJECTED. Returns the error that the submission then returns; or 0, if it has taken the
 * task over and will see to it that fn(arg, status) is called exactly once.
 */
typedef int weir_rejected_fn(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                             void *user_data);

/* What an executor has done so far, and does now. Times in nanoseconds. */
typedef struct weir_executor_stats {
    enum weir_executor_state state;
    uint64_t pending;         /* tasks submitted and not yet run */
    uint64_t timers;          /* timers running */
    uint64_t tasks_run;       /* tasks and timers called with status 0 */
    uint64_t tasks_cancelled; /* called with WEIR_ECANCELED */
    uint64_t turns;
    uint64_t wakeups_made;  /* system calls made to wake the thread */
    uint64_t wakeups_saved; /* submissions from other threads that needed none */
    int64_t active_ns;      /* time spent awake */
    double utilisation;     /* share of the last second or so that it was awake, 0 to 1 */
    weir_histogram_summary queue_latency_ns; /* submission to run; sampled, about 1 in 64 */
    weir_histogram_summary run_time_ns;      /* one task; sampled, about 1 in 64 */
    uint64_t reserved[8];
} weir_executor_stats;

/* The thread behind an executor. */
typedef struct weir_thread_properties {
    char name[16];
    int64_t id; /* the kernel's */
    int cpu;    /* pinned to, or -1 */
    uint64_t reserved[4];
} weir_thread_properties;

/*
 * Queues fn(arg, status) and wakes the executor if it sleeps. Starts its thread if need be.
 * Allocates nothing in the steady state.
 * Thread: any.  Fails: WEIR_EREJECTED (shut down), WEIR_EFULL, -ENOMEM, -EINVAL, -EAGAIN (the
 * thread cannot be started).
 */
WEIR_API int weir_execute(weir_executor *executor, weir_task_fn *fn, void *arg);

/*
 * As weir_execute, but does not wake a thread that sleeps: the task runs when something else wakes
 * it, before that something.
 * Thread: any.  Fails: as weir_execute.
 */
WEIR_API int weir_execute_lazy(weir_executor *executor, weir_task_fn *fn, void *arg);

/*
 * As weir_execute, with a task in the caller's memory: cannot fail for want of it.
 * Thread: any.  Lends until its function is called: task.  Fails: as weir_execute, but never
 * -ENOMEM.
 */
WEIR_API int weir_execute_task(weir_executor *executor, weir_task *task);

/*
 * As weir_execute_task, but does not wake.
 * Thread: any.  Lends until its function is called: task.  Fails: as weir_execute_task.
 */
WEIR_API int weir_execute_task_lazy(weir_executor *executor, weir_task *task);

/*
 * Queues a tail task: it runs once, at the end of the turn in which the executor finds it, after
 * all tasks of that turn. One that is queued by a tail task runs in the next turn. A rejection
 * policy that submits it again makes it an ordinary task.
 * Thread: any.  Fails: as weir_execute, and -ENOTSUP (immediate: it has no turns).
 */
WEIR_API int weir_execute_after_turn(weir_executor *executor, weir_task_fn *fn, void *arg);

/*
 * Runs work(arg, 0, &value) on the executor; the promise gets its result. Cancelling the promise
 * before it begins calls work with WEIR_ECANCELED instead. ret_promise may be NULL.
 * Thread: any.  Gives: promise.  Fails: as weir_execute.
 */
WEIR_API int weir_submit(weir_executor *executor, weir_work_fn *work, void *arg,
                         weir_promise **ret_promise);

/*
 * Whether the calling thread is the executor's: then its tasks cannot run before we return.
 * Thread: any.
 */
WEIR_API bool weir_in_executor(const weir_executor *executor);

/*
 * The executor whose task is running on this thread, or NULL. In a task of the immediate executor
 * it is that one, on every thread.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_current(void);

/*
 * Runs tasks at once, on whatever thread submits them; nested ones after the outer one. No timers.
 * Always there, cannot be shut down.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_immediate(void);

/*
 * The process's own executor, for what has no other. Its thread ends after a second of idleness and
 * comes back with the next task. Always there, cannot be shut down. The end of the process (exit)
 * waits for the thread, for a tenth of a second at most.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_global(void);

/*
 * A kept executor stays valid for ever: after its end, submissions are refused.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_retain(weir_executor *executor);

/*
 * Gives a reference back; NULL is fine. It does not shut the executor down: its group does.
 * Thread: any.  Takes: executor.
 */
WEIR_API void weir_executor_release(weir_executor *executor);

/*
 * The executor's name, which is its thread's: "weir-1".
 * Thread: any.
 */
WEIR_API const char *weir_executor_name(const weir_executor *executor);

/*
 * The state as of now.
 * Thread: any.
 */
WEIR_API enum weir_executor_state weir_executor_state(const weir_executor *executor);

/*
 * The figures as of now, without locks; each is exact by itself.
 * Thread: any.
 */
WEIR_API void weir_executor_read_stats(const weir_executor *executor,
                                       weir_executor_stats *ret_stats);

/*
 * Tasks submitted and not yet run.
 * Thread: any.
 */
WEIR_API uint64_t weir_executor_pending(const weir_executor *executor);

/*
 * The share of the last second or so that the executor was awake, 0 to 1; 0 when it is suspended or
 * has ended.
 * Thread: any.
 */
WEIR_API double weir_executor_utilisation(const weir_executor *executor);

/*
 * Starts the thread if need be and says which it is. May wait for the thread to start.
 * Thread: any but an event loop's other than its own.  Fails: WEIR_EREJECTED, -EAGAIN, -ENOTSUP (it
 * has no thread), -EDEADLK.
 */
WEIR_API int weir_executor_thread(weir_executor *executor, weir_thread_properties *ret_thread);

/*
 * Asks the thread to end as soon as nothing is queued, no timer runs and no descriptor is open on
 * an event loop; the next submission starts a new one. Until then the state is
 * WEIR_EXECUTOR_SUSPENDING.
 * Thread: any.  Fails: WEIR_EREJECTED (shutting down), -ENOTSUP (immediate, manual).
 */
WEIR_API int weir_executor_suspend(weir_executor *executor);

/*
 * Begins to shut down: what is open on an event loop is closed first, with timers still running,
 * and aborted when only `quiet_ns` are left; then timers are cancelled; tasks are still accepted
 * and run until none came for `quiet_ns`, or `timeout_ns` has passed since this call; then hooks
 * run, what is left is cancelled, and the thread ends. The first call counts, later ones change
 * nothing.
 * Thread: any.  Fails: -EINVAL (unless 0 <= quiet_ns <= timeout_ns), -EPERM (immediate, global).
 */
WEIR_API int weir_executor_shutdown(weir_executor *executor, int64_t quiet_ns, int64_t timeout_ns);

/*
 * Completes when the executor has ended, after its thread-locals were removed; fails with
 * -ETIMEDOUT if its thread does not come back in time. NULL for the immediate and the global one,
 * which never end.
 * Thread: any.
 */
WEIR_API weir_promise *weir_executor_termination(weir_executor *executor);

/*
 * Waits for the executor's end. The result is that of its termination, or -ETIMEDOUT.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK, -EPERM (immediate, global), and with
 * what failed the termination.
 */
WEIR_API int weir_executor_await_termination(weir_executor *executor, int64_t timeout_ns);

/*
 * Adds a hook: hook(arg, 0) runs once on the executor's thread when it shuts down, in the order
 * added; on the thread that shuts it down if the executor has no thread then. Hooks may add and
 * remove hooks.
 * Thread: any.  Fails: -EINVAL, -ENOMEM, WEIR_EREJECTED (the hooks have run), -EPERM (immediate,
 * global).
 */
WEIR_API int weir_executor_add_shutdown_hook(weir_executor *executor, weir_task_fn *hook,
                                             void *arg);

/*
 * Removes the first hook that was added with this function and argument.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API int weir_executor_remove_shutdown_hook(weir_executor *executor, weir_task_fn *hook,
                                                void *arg);

/*
 * A rejection policy: refuse at once. This is the default.
 * Thread: any.
 */
WEIR_API int weir_reject(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                         void *user_data);

/* How weir_reject_after_backoff tries again. Zero means default. */
typedef struct weir_backoff {
    int retries;      /* default 10 */
    int64_t delay_ns; /* default 1 ms */
} weir_backoff;

/*
 * A rejection policy: when the queue is full, wait and try again, then refuse. On the executor's
 * own thread it refuses at once. Its user_data is a weir_backoff, or NULL for the defaults.
 * Thread: any.
 */
WEIR_API int weir_reject_after_backoff(weir_executor *executor, weir_task_fn *fn, void *arg,
                                       int reason, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
