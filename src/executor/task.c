/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per-thread task pools, so that weir_execute allocates nothing in the steady state.
 *
 *      owner thread:   alloc <--- free ... chains <=== exchange === returned <=== CAS, per chain
 *      executors:      run a batch of tasks, return a chain to each pool
 *
 * Tasks are cut from slabs, at most SLABS_MAX, which are freed with the pool. Beyond that limit
 * tasks are allocated separately, and freed by the executor that ran them. A chain is linked
 * through node.next and ends in NULL; its first task holds the length in `arg` and the next chain
 * in `reserved`.
 *
 * At the end of the owner's thread, the pool closes `returned` by exchanging it for CLOSED, and
 * counts the tasks that are still out. The owner adds that count to `outstanding`, once; threads
 * that return tasks after the close subtract theirs, in any order. So the sum is zero only when
 * everything is back, and the thread that makes it zero frees the pool.
 *
 * Memory order: a returned chain is written before the release CAS and read after the acquire
 * exchange. `outstanding` is acquire-release, so that freeing the pool comes after the last use of
 * it by any thread.
 */
#include "executor/task.h"

#include <weir/thread.h>

#include "base/memory.h"

#define SLAB_TASKS 64
#define SLABS_MAX 4096

struct weir__task_slab {
    weir__task_slab *next;
    weir_task tasks[SLAB_TASKS];
};

static weir_task closed;
#define CLOSED (&closed)

_Thread_local weir__task_pool *weir__task_pool_own;

static uintptr_t chain_length(const weir_task *first)
{
    return (uintptr_t)first->arg;
}

static weir_task *next_chain(const weir_task *first)
{
    return (weir_task *)first->reserved;
}

/* ---- the pool ---- */

static void pool_destroy(weir__task_pool *pool)
{
    weir__task_slab *slab = pool->slabs, *next;

    for (; slab != NULL; slab = next) {
        next = slab->next;
        weir__free(slab);
    }
    weir__aligned_free(pool, sizeof(*pool));
}

static uintptr_t count_chains(const weir_task *chain)
{
    uintptr_t count = 0;

    for (; chain != NULL; chain = next_chain(chain))
        count += chain_length(chain);
    return count;
}

static void pool_close(void *arg)
{
    weir__task_pool *pool = arg;
    weir_task *returned = atomic_exchange_explicit(&pool->returned, CLOSED, memory_order_acquire);
    intptr_t out = (intptr_t)(pool->slab_count * SLAB_TASKS);

    weir__task_pool_own = NULL;
    for (weir_task *task = pool->free; task != NULL; task = weir__task_next(task))
        out--;
    out -= (intptr_t)(count_chains(pool->chains) + count_chains(returned));
    if (out == 0 ||
        atomic_fetch_add_explicit(&pool->outstanding, out, memory_order_acq_rel) + out == 0)
        pool_destroy(pool);
}

static weir__task_pool *pool_create(void)
{
    weir__task_pool *pool = weir__aligned_zalloc(alignof(weir__task_pool), sizeof(*pool));

    if (pool == NULL)
        return NULL;
    if (weir_thread_on_exit(pool_close, pool) < 0) {
        weir__aligned_free(pool, sizeof(*pool));
        return NULL;
    }
    weir__task_pool_own = pool;
    return pool;
}

static weir_task *cut_slab(weir__task_pool *pool)
{
    weir__task_slab *slab = weir__alloc(sizeof(*slab));

    if (slab == NULL)
        return NULL;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->slab_count++;
    for (int i = 0; i < SLAB_TASKS; i++)
        slab->tasks[i].node.next = i + 1 < SLAB_TASKS ? &slab->tasks[i + 1].node : NULL;
    return slab->tasks;
}

static weir_task *next_free_chain(weir__task_pool *pool)
{
    weir_task *chain;

    if (pool->chains == NULL)
        pool->chains = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    chain = pool->chains;
    if (chain != NULL)
        pool->chains = next_chain(chain);
    return chain;
}

weir_task *weir__task_alloc_slow(void)
{
    weir__task_pool *pool = weir__task_pool_own;
    weir_task *task;

    if (pool == NULL && (pool = pool_create()) == NULL)
        return NULL;
    task = next_free_chain(pool);
    if (task == NULL && pool->slab_count < SLABS_MAX)
        task = cut_slab(pool);
    if (task != NULL) {
        pool->free = weir__task_next(task);
        task->reserved = (uintptr_t)pool;
        return task;
    }
    task = weir__alloc(sizeof(*task));
    if (task != NULL)
        task->reserved = (uintptr_t)pool | WEIR__TASK_UNPOOLED;
    return task;
}

/* ---- returning tasks ---- */

void weir__task_free_own(weir_task *task)
{
    if (task->reserved & WEIR__TASK_UNPOOLED)
        weir__free(task);
    else
        weir__task_push_own(weir__task_pool_of(task), task);
}

static void return_chain(weir__task_pool *pool, weir_task *first, uintptr_t count)
{
    weir_task *head = atomic_load_explicit(&pool->returned, memory_order_relaxed);

    first->arg = (void *)count;
    do {
        if (head == CLOSED) {
            if (atomic_fetch_sub_explicit(&pool->outstanding, (intptr_t)count,
                                          memory_order_acq_rel) == (intptr_t)count)
                pool_destroy(pool);
            return;
        }
        first->reserved = (uintptr_t)head;
    } while (!atomic_compare_exchange_weak_explicit(&pool->returned, &head, first,
                                                    memory_order_release, memory_order_relaxed));
}

static void flush_chain(struct weir__task_chain *chain)
{
    weir__task_pool *pool = chain->pool;

    if (pool == NULL)
        return;
    chain->pool = NULL;
    chain->last->node.next = NULL;
    return_chain(pool, chain->first, chain->count);
}

/* Returns the pool's chain, or an unused one, or flushes the one after the latest. */
static struct weir__task_chain *chain_for(weir__task_returns *returns, const weir__task_pool *pool)
{
    struct weir__task_chain *end = returns->chains + WEIR__TASK_RETURNS, *chain;

    for (chain = returns->chains; chain < end; chain++)
        if (chain->pool == pool)
            return chain;
    for (chain = returns->chains; chain < end; chain++)
        if (chain->pool == NULL)
            return chain;
    chain = returns->latest + 1 < end ? returns->latest + 1 : returns->chains;
    flush_chain(chain);
    return chain;
}

void weir__task_free_slow(weir__task_returns *returns, weir_task *task, weir__task_pool *pool)
{
    struct weir__task_chain *chain;

    if (task->reserved & WEIR__TASK_UNPOOLED) {
        weir__free(task);
        return;
    }
    if (pool == weir__task_pool_own) { /* a task with flags */
        weir__task_push_own(pool, task);
        return;
    }
    chain = chain_for(returns, pool);
    if (chain->pool == NULL) {
        *chain = (struct weir__task_chain){.pool = pool, .first = task, .last = task, .count = 1};
    } else {
        chain->last->node.next = &task->node;
        chain->last = task;
        chain->count++;
    }
    returns->latest = chain;
}

void weir__task_flush(weir__task_returns *returns)
{
    if (returns->latest == NULL)
        return;
    returns->latest = NULL;
    for (unsigned i = 0; i < WEIR__TASK_RETURNS; i++)
        flush_chain(&returns->chains[i]);
}
