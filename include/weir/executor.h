/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/executor.h - tasks, and the executors that run them.
 *
 * An executor is one thread, one task queue and one timer store:
 *
 *      any thread --- weir_execute --->  [ queue ]  --->  the executor's thread:
 *                                                         due timers, tasks, tail tasks, sleep
 *
 * Each pass through that loop is a turn. Tasks submitted by one thread run in the order of
 * submission; a task submitted on the executor's own thread runs after the tasks already queued.
 * The thread starts with the first submission.
 *
 * If a submission returns 0, the task's function is called exactly once: with status 0 to run, or
 * with WEIR_ECANCELED to clean up. If a submission fails, the function is never called. The
 * submitter must hold a reference to the executor or its group until the call returns, because the
 * task may run before that.
 *
 *      NOT_STARTED --> STARTED <-> SUSPENDING --> SUSPENDED --(any submission)--> STARTED
 *                         |            |              |
 *                         +--> SHUTTING_DOWN          |
 *                                  `--> SHUTDOWN <----' --> TERMINATED
 */
#ifndef WEIR_EXECUTOR_H
#define WEIR_EXECUTOR_H

#include <weir/base.h>
#include <weir/metric.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_executor weir_executor;
typedef struct weir_promise weir_promise;

/* --- tasks ------------------------------------------------------------------------------------ */

typedef void weir_task_fn(void *arg, int status);

/*
 * A task in the caller's memory: submitting it allocates nothing. The executor owns it from the
 * submission until its function is called; the function may submit it again.
 */
typedef struct weir_task {
    weir_queue_node node; /* private */
    weir_task_fn *fn;
    void *arg;
    uintptr_t reserved; /* private */
} weir_task;

/*
 * Initializes a task in the caller's memory.
 * Thread: any.
 */
static inline void weir_task_init(weir_task *task, weir_task_fn *fn, void *arg)
{
    task->node.next = NULL;
    task->fn = fn;
    task->arg = arg;
    task->reserved = 0;
}

/*
 * The function of a weir_submit. Returns 0 and sets *ret_value (NULL by default), or returns an
 * error. With WEIR_ECANCELED as status it only cleans up; its result is then ignored.
 */
typedef int weir_work_fn(void *arg, int status, void **ret_value);

/*
 * Queues fn(arg, status), wakes the executor if it sleeps, and starts its thread if it has none.
 * Allocates nothing in the steady state.
 * Thread: any.  Fails: WEIR_EREJECTED (shut down), WEIR_EFULL, -ENOMEM, -EINVAL, -EAGAIN (the
 * thread cannot be started).
 */
WEIR_API WEIR_MUST_USE int weir_execute(weir_executor *executor, weir_task_fn *fn, void *arg);

/*
 * Like weir_execute, but does not wake a sleeping thread: the task runs the next time something
 * else wakes it, before the work that woke it.
 * Thread: any.  Fails: as weir_execute.
 */
WEIR_API WEIR_MUST_USE int weir_execute_lazy(weir_executor *executor, weir_task_fn *fn, void *arg);

/*
 * Like weir_execute, with a task in the caller's memory.
 * Thread: any.  Lends until its function is called: task.  Fails: as weir_execute, but never
 * -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_execute_task(weir_executor *executor, weir_task *task);

/*
 * Like weir_execute_lazy, with a task in the caller's memory.
 * Thread: any.  Lends until its function is called: task.  Fails: as weir_execute_task.
 */
WEIR_API WEIR_MUST_USE int weir_execute_task_lazy(weir_executor *executor, weir_task *task);

/*
 * Queues a tail task: it runs once, at the end of the turn that takes it from the queue, after all
 * tasks of that turn. A tail task queued by a tail task runs in the next turn. If a rejection
 * policy submits it again, it becomes an ordinary task.
 * Thread: any.  Fails: as weir_execute, and -ENOTSUP (the immediate executor has no turns).
 */
WEIR_API WEIR_MUST_USE int weir_execute_after_turn(weir_executor *executor, weir_task_fn *fn,
                                                   void *arg);

/*
 * Runs work(arg, 0, &value) on the executor; its result completes the promise. If the promise is
 * cancelled before the work starts, work is called with WEIR_ECANCELED instead. ret_promise may be
 * NULL.
 *
 * Listeners of the promise run on the same executor, right after the work, on its thread; after a
 * cancellation from another thread, as a task of the executor. See weir/promise.h.
 * Thread: any.  Gives: promise.  Fails: as weir_execute.
 */
WEIR_API WEIR_MUST_USE int weir_submit(weir_executor *executor, weir_work_fn *work, void *arg,
                                       weir_promise **ret_promise);

/* --- executors -------------------------------------------------------------------------------- */

/* The states are ordered: compare with >=. */
enum weir_executor_state {
    WEIR_EXECUTOR_NOT_STARTED = 1,
    WEIR_EXECUTOR_SUSPENDING,
    WEIR_EXECUTOR_SUSPENDED,
    WEIR_EXECUTOR_STARTED,
    WEIR_EXECUTOR_SHUTTING_DOWN, /* accepts tasks until the quiet period is over */
    WEIR_EXECUTOR_SHUTDOWN,      /* accepts no more tasks */
    WEIR_EXECUTOR_TERMINATED,
};

/* A snapshot of an executor's counters. Times in nanoseconds. */
typedef struct weir_executor_stats {
    enum weir_executor_state state;
    uint64_t pending;         /* tasks submitted and not yet run */
    uint64_t timers;          /* running timers */
    uint64_t tasks_run;       /* tasks and timers called with status 0 */
    uint64_t tasks_cancelled; /* called with WEIR_ECANCELED */
    uint64_t turns;
    uint64_t wakeups_made;                   /* system calls made to wake the thread */
    uint64_t wakeups_saved;                  /* submissions from other threads that needed none */
    int64_t active_ns;                       /* time spent awake */
    double utilisation;                      /* as weir_executor_utilisation */
    weir_histogram_summary queue_latency_ns; /* wait of a task; up to 1,000 samples per s */
    weir_histogram_summary run_time_ns;      /* of one task; samples about 1 in 64 */
    uint64_t reserved[8];
} weir_executor_stats;

/* The thread of an executor. */
typedef struct weir_thread_properties {
    char name[16];
    int64_t id; /* the kernel's */
    int cpu;    /* the CPU it is pinned to, or -1 */
    uint64_t reserved[4];
} weir_thread_properties;

/*
 * True if the calling thread is the executor's. Tasks it submits cannot run before it returns.
 * Thread: any.
 */
WEIR_API bool weir_in_executor(const weir_executor *executor);

/*
 * Returns the executor whose task is running on this thread, or NULL. Inside a task of the
 * immediate executor it is the immediate executor.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_current(void);

/*
 * Returns the executor that runs a task at once, on the submitting thread; nested tasks run after
 * the outer one. It has no timers, always exists and cannot be shut down.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_immediate(void);

/*
 * Returns the process-wide executor, for work that has no other. Its thread ends after one second
 * without work and restarts with the next task. It always exists and cannot be shut down. exit()
 * waits up to 100 ms for its thread.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_global(void);

/*
 * Retains the executor. A retained executor stays valid after its end, when it rejects submissions.
 * Thread: any.
 */
WEIR_API weir_executor *weir_executor_retain(weir_executor *executor);

/*
 * Releases a reference. NULL is ignored. Does not shut the executor down; its group does.
 * Thread: any.  Takes: executor.
 */
WEIR_API void weir_executor_release(weir_executor *executor);

/*
 * The name of the executor and of its thread, such as "weir-1".
 * Thread: any.
 */
WEIR_API const char *weir_executor_name(const weir_executor *executor);

/*
 * The current state.
 * Thread: any.
 */
WEIR_API enum weir_executor_state weir_executor_state(const weir_executor *executor);

/*
 * Takes a snapshot of the counters without locking; each is exact by itself.
 * Thread: any.
 */
WEIR_API void weir_executor_read_stats(const weir_executor *executor,
                                       weir_executor_stats *ret_stats);

/*
 * The number of tasks submitted and not yet run.
 * Thread: any.
 */
WEIR_API uint64_t weir_executor_pending(const weir_executor *executor);

/*
 * The share of the last second or so that the executor was awake, 0 to 1; 0 if it is suspended or
 * terminated.
 * Thread: any.
 */
WEIR_API double weir_executor_utilisation(const weir_executor *executor);

/*
 * Returns the properties of the executor's thread, which is started if there is none. May wait for
 * the thread to start.
 * Thread: any but the thread of another event loop.  Fails: WEIR_EREJECTED, -EAGAIN, -ENOTSUP (it
 * has no thread), -EDEADLK.
 */
WEIR_API int weir_executor_thread(weir_executor *executor, weir_thread_properties *ret_thread);

/*
 * Ends the thread as soon as nothing is queued; until then the state is WEIR_EXECUTOR_SUSPENDING.
 * The next submission starts a new thread. If a timer runs or, on an event loop, a channel or
 * descriptor is open, the thread goes on and the state is WEIR_EXECUTOR_STARTED again.
 * Thread: any.  Fails: WEIR_EREJECTED (shutting down), -ENOTSUP (immediate, manual).
 */
WEIR_API int weir_executor_suspend(weir_executor *executor);

/*
 * Starts to shut down, in this order:
 *   1. An event loop closes its channels and descriptors, while timers still run. What is still
 *      open when only `quiet_ns` are left is aborted.
 *   2. Timers are cancelled.
 *   3. Tasks are accepted and run until none has come for `quiet_ns`, or until `timeout_ns` after
 *      this call.
 *   4. Shutdown hooks run, remaining tasks are cancelled, and the thread ends.
 * Only the first call has an effect.
 * Thread: any.  Fails: -EINVAL (unless 0 <= quiet_ns <= timeout_ns), -EPERM (immediate, global).
 */
WEIR_API int weir_executor_shutdown(weir_executor *executor, int64_t quiet_ns, int64_t timeout_ns);

/*
 * A promise that completes when the executor has terminated and its thread-locals are removed. It
 * fails with -ETIMEDOUT if the thread does not end in time. Borrowed. NULL for the immediate and
 * the global executor, which never end.
 * Thread: any.
 */
WEIR_API weir_promise *weir_executor_termination(weir_executor *executor);

/*
 * Waits for the termination and returns its result, or -ETIMEDOUT.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK, -EPERM (immediate, global), and with the
 * error of the termination.
 */
WEIR_API int weir_executor_await_termination(weir_executor *executor, int64_t timeout_ns);

/*
 * Adds a shutdown hook: hook(arg, 0) runs once on the executor's thread when it shuts down, in the
 * order added. If the executor has no thread then, hooks run on the thread that shuts it down.
 * Hooks may add and remove hooks.
 * Thread: any.  Fails: -EINVAL, -ENOMEM, WEIR_EREJECTED (the hooks have run), -EPERM (immediate,
 * global).
 */
WEIR_API WEIR_MUST_USE int weir_executor_add_shutdown_hook(weir_executor *executor,
                                                           weir_task_fn *hook, void *arg);

/*
 * Removes the first hook that was added with this function and argument.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API int weir_executor_remove_shutdown_hook(weir_executor *executor, weir_task_fn *hook,
                                                void *arg);

/* --- rejection policies ----------------------------------------------------------------------- */

/*
 * Called on the submitting thread when a submission is rejected; `reason` is WEIR_EFULL or
 * WEIR_EREJECTED. Returns the error that the submission returns. Or returns 0 to take the task
 * over: then the policy must see to it that fn(arg, status) is called exactly once.
 */
typedef int weir_rejected_fn(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                             void *user_data);

/*
 * The default policy: returns `reason`.
 * Thread: any.
 */
WEIR_API int weir_reject(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                         void *user_data);

/* The user_data of weir_reject_after_backoff. Zero means default. */
typedef struct weir_backoff {
    int retries;      /* default 10 */
    int64_t delay_ns; /* before each retry, default 1 ms */
} weir_backoff;

/*
 * A policy that, while the queue is full, sleeps and retries, and finally rejects. On the
 * executor's own thread it rejects at once. Its user_data is a weir_backoff, or NULL for the
 * defaults.
 * Thread: any.
 */
WEIR_API int weir_reject_after_backoff(weir_executor *executor, weir_task_fn *fn, void *arg,
                                       int reason, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
