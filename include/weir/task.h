/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/task.h - a piece of work for an executor.
 *
 * A task function gets a status: 0 = run, WEIR_ECANCELED = it will never run, clean up. If
 * submitting returned 0 it is called exactly once; if submitting returned an error, never.
 */
#ifndef WEIR_TASK_H
#define WEIR_TASK_H

#include <weir/base.h>

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

#ifdef __cplusplus
}
#endif

#endif
