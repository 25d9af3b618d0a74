/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/manual.h - an executor without a thread, run by the caller.
 *
 * For embedding in another main loop, and for tests. One thread owns the executor, and only that
 * thread runs it. Outside weir_manual_run_once it counts as asleep: a submission from another
 * thread then calls `.wakeup`, at most once per sleep.
 *
 *      for (;;) {
 *          wait for the application's own events, weir_manual_timeout(executor), or .wakeup
 *          weir_manual_run_once(executor, 0, 0);
 *      }
 *
 * Starting a timer between two runs, on the owner's thread, does not call `.wakeup`: call
 * weir_manual_timeout again. After weir_executor_shutdown, keep running the executor until
 * weir_manual_run_once returns WEIR_ETERMINATED.
 */
#ifndef WEIR_MANUAL_H
#define WEIR_MANUAL_H

#include <weir/clock.h>
#include <weir/executor.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_MANUAL_OPTIONS(.name = "...", ...). */
typedef struct weir_manual_options {
    size_t size;
    const char *name;           /* default "manual" */
    weir_clock *clock;          /* default: the monotonic clock */
    bool claim_later;           /* no owner until weir_manual_claim; default: the creating thread */
    int64_t max_pending;        /* bound of the task queue, at least 16; default: none */
    weir_rejected_fn *rejected; /* default weir_reject */
    void *rejected_data;
    /* Any thread: run_once has work. Must not set a manual clock, nor wait. */
    void (*wakeup)(void *user_data);
    void *wakeup_data;
} weir_manual_options;

#define WEIR_MANUAL_OPTIONS(...) WEIR_OPTIONS(weir_manual_options, __VA_ARGS__)

/*
 * Creates a manual executor. NULL options: all defaults.
 * Thread: any.  Gives: executor.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_manual_create(const weir_manual_options *options,
                                              weir_executor **ret_executor);

/*
 * Makes the calling thread the owner, which runs the executor. Succeeds once.
 * Thread: any.  Fails: -EALREADY (it has an owner), -EINVAL (not a manual executor).
 */
WEIR_API WEIR_MUST_USE int weir_manual_claim(weir_executor *executor);

/*
 * Runs one turn: waits up to `max_wait_ns` for work (0: does not wait; WEIR_NEVER: until woken),
 * then runs due timers, tasks for at most `budget_ns` (0: until none is left; negative: none), and
 * tail tasks. Returns the number of tasks and timers that ran.
 * Thread: the owner.  Fails: WEIR_ENOOWNER, WEIR_EWRONGTHREAD, -EBUSY (called from within a task),
 * WEIR_ETERMINATED (it has ended), -EINVAL.
 */
WEIR_API int weir_manual_run_once(weir_executor *executor, int64_t max_wait_ns, int64_t budget_ns);

/*
 * How long the owner may wait before the next run_once: 0 if there is work, or if run_once has yet
 * to return WEIR_ETERMINATED; WEIR_NEVER if only `.wakeup` can bring work.
 * Thread: the owner.
 */
WEIR_API int64_t weir_manual_timeout(weir_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
