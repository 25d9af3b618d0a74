/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pooled tasks of weir_execute. Each submitting thread has a pool; executors return the tasks
 * they ran in chains.
 *
 * weir_task.reserved is the address of the task's pool, or 0 for a task in the user's memory; its
 * low bits are flags.
 */
#ifndef WEIR_EXECUTOR_TASK_H
#define WEIR_EXECUTOR_TASK_H

#include <stdalign.h>
#include <stdatomic.h>

#include <weir/executor.h>

#define WEIR__TASK_RETURNS 4

/* Flags in weir_task.reserved. */
#define WEIR__TASK_ADMITTED UINT64_C(1)  /* counts against max_pending */
#define WEIR__TASK_UNPOOLED UINT64_C(2)  /* allocated separately: the pool is at its limit */
#define WEIR__TASK_UNCOUNTED UINT64_C(4) /* internal: not counted as run or cancelled */
#define WEIR__TASK_TAIL UINT64_C(8)      /* runs after the tasks of its turn */
#define WEIR__TASK_FLAGS UINT64_C(15)

typedef struct weir__task_slab weir__task_slab;

typedef struct weir__task_pool {
    /* Accessed by the owning thread only. */
    weir_task *free;   /* the rest of the chain in use */
    weir_task *chains; /* other free chains */
    weir__task_slab *slabs;
    uintptr_t slab_count;

    /* Written by the threads that return tasks. */
    alignas(64) _Atomic(weir_task *) returned;
    _Atomic intptr_t outstanding;
} weir__task_pool;

/* Tasks that have run, one chain per pool. Zeroed is empty. */
typedef struct weir__task_returns {
    struct weir__task_chain {
        weir__task_pool *pool;
        weir_task *first;
        weir_task *last;
        uintptr_t count;
    } chains[WEIR__TASK_RETURNS];
    struct weir__task_chain *latest; /* the chain used last, or NULL */
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

/* Slow paths: the pool is empty or missing; the task is not of the same pool as the last one. */
weir_task *weir__task_alloc_slow(void);
void weir__task_free_slow(weir__task_returns *returns, weir_task *task, weir__task_pool *pool);

/* True if this thread's pool has a free task. */
static inline bool weir__task_is_at_hand(void)
{
    return weir__task_pool_own != NULL && weir__task_pool_own->free != NULL;
}

/* Takes the free task at hand. */
static inline weir_task *weir__task_take(weir__task_pool *pool, weir_task_fn *fn, void *arg)
{
    weir_task *task = pool->free;

    pool->free = weir__task_next(task);
    __builtin_prefetch(pool->free); /* a backlog of tasks exceeds the cache */
    task->reserved = (uintptr_t)pool;
    task->fn = fn;
    task->arg = arg;
    return task;
}

/* Allocates a task from this thread's pool. NULL: no memory. */
static inline weir_task *weir__task_alloc(weir_task_fn *fn, void *arg)
{
    weir_task *task;

    if (weir__task_is_at_hand())
        return weir__task_take(weir__task_pool_own, fn, arg);
    task = weir__task_alloc_slow();
    if (task == NULL)
        return NULL;
    task->fn = fn;
    task->arg = arg;
    return task;
}

static inline void weir__task_push_own(weir__task_pool *pool, weir_task *task)
{
    task->node.next = pool->free != NULL ? &pool->free->node : NULL;
    pool->free = task;
}

/* Frees a task that this thread has allocated and not submitted. */
void weir__task_free_own(weir_task *task);

/* Frees a pooled task, on any thread. It stays in `returns` until the flush, at the latest. */
static inline void weir__task_free(weir__task_returns *returns, weir_task *task)
{
    struct weir__task_chain *chain = returns->latest;

    if (task->reserved == (uintptr_t)weir__task_pool_own) {
        weir__task_push_own(weir__task_pool_own, task);
        return;
    }
    if (chain == NULL || task->reserved != (uintptr_t)chain->pool) {
        weir__task_free_slow(returns, task, weir__task_pool_of(task));
        return;
    }
    chain->last->node.next = &task->node;
    chain->last = task;
    chain->count++;
}

/* Returns all chains to their pools. */
void weir__task_flush(weir__task_returns *returns);

#endif
