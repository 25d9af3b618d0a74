/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/schedule.h - tasks that run later, or again and again; from any thread.
 *
 * The promise stands for the task: cancel it, from any thread, and the task does not run (again);
 * it completes when a single task has run, and never by itself for a repeated one. Completing the
 * promise of a repeated task inside the task ends it as well. After the last run of a repeated
 * task, and instead of the run of a cancelled one, the function is called once with WEIR_ECANCELED.
 *
 * A task never runs early. A submission whose deadline is later than the executor's current sleep
 * wakes nobody. ret_promise may be NULL everywhere.
 */
#ifndef WEIR_SCHEDULE_H
#define WEIR_SCHEDULE_H

#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Runs fn(arg, 0) once, after `delay_ns` (a negative one counts as 0).
 * Thread: any.  Gives: promise.  Fails: as weir_execute, but never WEIR_EFULL, and -ENOTSUP
 * (immediate).
 */
WEIR_API int weir_schedule(weir_executor *executor, int64_t delay_ns, weir_promise **ret_promise,
                           weir_task_fn *fn, void *arg);

/*
 * Runs fn(arg, 0) after `initial_ns` and then every `period_ns`, counted from deadline to deadline:
 * runs that were missed are made up for.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule, and -EINVAL (initial_ns < 0, period_ns <=
 * 0).
 */
WEIR_API int weir_schedule_at_fixed_rate(weir_executor *executor, int64_t initial_ns,
                                         int64_t period_ns, weir_promise **ret_promise,
                                         weir_task_fn *fn, void *arg);

/*
 * Runs fn(arg, 0) after `initial_ns` and then again `delay_ns` after the end of each run.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule, and -EINVAL (initial_ns < 0, delay_ns <=
 * 0).
 */
WEIR_API int weir_schedule_with_fixed_delay(weir_executor *executor, int64_t initial_ns,
                                            int64_t delay_ns, weir_promise **ret_promise,
                                            weir_task_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
