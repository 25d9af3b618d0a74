/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/manual.h - an executor that the caller's own thread drives.
 *
 * For living inside someone else's main loop, and for tests. One thread owns it, and only that one
 * runs it. It counts as asleep whenever weir_manual_run_once is not running, so a submission from
 * elsewhere then calls `.wakeup`, at most once per sleep:
 *
 *      for (;;) {
 *          wait for the application's own events, or weir_manual_timeout(executor), or .wakeup
 *          weir_manual_run_once(executor, 0, 0);
 *      }
 *
 * A timer that the owner starts between two runs calls nobody: ask weir_manual_timeout again.
 * After weir_executor_shutdown go on running it until weir_manual_run_once says WEIR_ETERMINATED.
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
    const char *name;  /* default "manual" */
    weir_clock *clock; /* default the monotonic one */
    bool claim_later;  /* the owner calls weir_manual_claim; default: the creating thread owns it */
    int64_t max_pending; /* at most this many queued tasks, 16 at the least; default no bound */
    weir_rejected_fn *rejected; /* default weir_reject */
    void *rejected_data;
    /* Any thread: run_once has something to do. May not set a manual clock, nor wait. */
    void (*wakeup)(void *user_data);
    void *wakeup_data;
} weir_manual_options;

#define WEIR_MANUAL_OPTIONS(...) WEIR_OPTIONS(weir_manual_options, __VA_ARGS__)

/*
 * Creates an executor that its owner drives. NULL options: every default.
 * Thread: any.  Gives: executor.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_manual_create(const weir_manual_options *options, weir_executor **ret_executor);

/*
 * Makes the calling thread the owner, once.
 * Thread: any.  Fails: -EALREADY (it has one), -EINVAL (not a manual executor).
 */
WEIR_API int weir_manual_claim(weir_executor *executor);

/*
 * One turn: waits up to `max_wait_ns` for something to do (0: not at all; WEIR_NEVER: until woken),
 * then runs due timers, tasks for at most `budget_ns` (0: until none is left; < 0: none), tail
 * tasks. Returns how many tasks and timers ran.
 * Thread: the owner.  Fails: WEIR_ENOOWNER, WEIR_EWRONGTHREAD, -EBUSY (called from within a task),
 * WEIR_ETERMINATED (it has ended), -EINVAL.
 */
WEIR_API int weir_manual_run_once(weir_executor *executor, int64_t max_wait_ns, int64_t budget_ns);

/*
 * How long the owner may wait before the next run_once: 0 if there is something to do, or if that
 * is yet to say WEIR_ETERMINATED; WEIR_NEVER if only a wake-up will bring something.
 * Thread: the owner.
 */
WEIR_API int64_t weir_manual_timeout(weir_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
