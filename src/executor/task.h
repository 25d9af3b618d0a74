/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that weir_execute makes for its callers: each submitting thread has a pool of them, and
 * gets them back from the executors that ran them, many at a time.
 */
#ifndef WEIR_EXECUTOR_TASK_H
#define WEIR_EXECUTOR_TASK_H

#include <weir/task.h>

#define WEIR__TASK_RETURNS 4

typedef struct weir__task_pool weir__task_pool;

/* Tasks that have run, chained by the pool they belong to. Zero is empty. */
typedef struct weir__task_returns {
    struct {
        weir__task_pool *pool;
        weir_task *first;
        weir_task *last;
        uintptr_t count;
    } chains[WEIR__TASK_RETURNS];
    unsigned victim;
} weir__task_returns;

/* A task of this thread's pool; NULL if there is no memory. */
weir_task *weir__task_take(weir_task_fn *fn, void *arg);

/* Gives a task back that was taken just now, by the same thread. */
void weir__task_untake(weir_task *task);

/* Gives a pooled task back; any thread. It stays here until the flush, at the latest. */
void weir__task_give(weir__task_returns *returns, weir_task *task);
void weir__task_flush(weir__task_returns *returns);

#endif
