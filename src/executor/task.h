/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that weir_execute makes for its callers: each submitting thread has a pool of them, and
 * gets them back from the executors that ran them, many at a time.
 *
 * weir_task.reserved is the address of the task's pool, 0 for a task in the user's memory; its low
 * bits are flags.
 */
#ifndef WEIR_EXECUTOR_TASK_H
#define WEIR_EXECUTOR_TASK_H

#include <stdalign.h>
#include <stdatomic.h>

#include <weir/executor.h>

#define WEIR__TASK_RETURNS 4

/* Flags in weir_task.reserved. */
#define WEIR__TASK_ADMITTED UINT64_C(1)  /* counts against max_pending */
#define WEIR__TASK_UNPOOLED UINT64_C(2)  /* allocated for itself, beyond what the pool keeps */
#define WEIR__TASK_UNCOUNTED UINT64_C(4) /* the executor's own: not counted as run or cancelled */
#define WEIR__TASK_FLAGS UINT64_C(7)

typedef struct weir__task_slab weir__task_slab;

typedef struct weir__task_pool {
    /* The owner's. */
    weir_task *free;   /* what is left of the chain in use */
    weir_task *chains; /* further ones */
    weir__task_slab *slabs;
    uintptr_t slab_count;

    /* Written by whoever brings tasks back. */
    alignas(64) _Atomic(weir_task *) returned;
    _Atomic intptr_t owed;
} weir__task_pool;

/* Tasks that have run, chained by the pool they belong to. Zero is empty. */
typedef struct weir__task_returns {
    struct weir__task_chain {
        weir__task_pool *pool;
        weir_task *first;
        weir_task *last;
        uintptr_t count;
    } chains[WEIR__TASK_RETURNS];
    struct weir__task_chain *latest; /* the one that was used last, or NULL */
} weir__task_returns;

extern _Thread_local weir__task_pool *weir__task_pool_own
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline weir_task *weir__task_next(const weir_task *task)
{
    return (weir_task *)(void *)task->node.next;
}

static inline weir__task_pool *weir__task_pool_of(const weir_task *task)
{
    return (weir__task_pool *)(uintptr_t)(task->reserved & ~WEIR__TASK_FLAGS);
}

/* Slow ways: the pool is empty, or there is none; the task is of another pool than the last one. */
weir_task *weir__task_alloc_slow(void);
void weir__task_free_slow(weir__task_returns *returns, weir_task *task, weir__task_pool *pool);

/* A task of this thread's pool; NULL if there is no memory. */
static inline weir_task *weir__task_alloc(weir_task_fn *fn, void *arg)
{
    weir__task_pool *pool = weir__task_pool_own;
    weir_task *task;

    if (pool != NULL && pool->free != NULL) {
        task = pool->free;
        pool->free = weir__task_next(task);
        __builtin_prefetch(pool->free); /* a backlog of tasks is larger than the cache */
        task->reserved = (uintptr_t)pool;
    } else {
        task = weir__task_alloc_slow();
        if (task == NULL)
            return NULL;
    }
    task->fn = fn;
    task->arg = arg;
    return task;
}

/* Gives a task back that was taken just now, by the same thread. */
void weir__task_free_own(weir_task *task);

/* Gives a pooled task back; any thread. It stays in `returns` until the flush, at the latest. */
static inline void weir__task_free(weir__task_returns *returns, weir_task *task)
{
    struct weir__task_chain *chain = returns->latest;

    if (chain == NULL || task->reserved != (uintptr_t)chain->pool) {
        weir__task_free_slow(returns, task, weir__task_pool_of(task));
        return;
    }
    chain->last->node.next = &task->node;
    chain->last = task;
    chain->count++;
}

void weir__task_flush(weir__task_returns *returns);

#endif
