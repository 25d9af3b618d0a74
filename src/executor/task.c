/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's pool of tasks, so that weir_execute allocates nothing in the steady state.
 *
 *      owner thread:   take <--- free ... chains <=== exchange === returned <=== CAS, a chain each
 *      executors:      run the tasks of a batch, give each pool its chain back
 *
 * A chain is linked through node.next; its first task holds the chain's length in `arg` and the
 * next chain in `reserved`. The owner keeps at most TASKS_MAX free tasks and frees the rest.
 *
 * The end of the owner's thread. It closes `returned` by exchanging in CLOSED, and counts what is
 * still out. From then on returners free what they bring. `owed` is the number out, less what came
 * back after the close; the owner adds the one, returners subtract the other, in any order, and
 * since the owner adds only once the sum is zero only when all is done: who makes it zero frees the
 * pool.
 *
 * Memory order. A returned chain is written before the release CAS, read after the acquire
 * exchange. `owed` is acquire-release, so that who frees the pool comes after everybody's last use
 * of it.
 */
#include "executor/task.h"

#include <stdalign.h>
#include <stdatomic.h>

#include <weir/thread.h>

#include "base/memory.h"

#define TASKS_MAX 65536

struct weir__task_pool {
    weir_task *free;   /* what is left of the chain in use */
    weir_task *chains; /* further ones */
    uintptr_t spare;   /* tasks in both */
    uintptr_t made;    /* tasks that exist */
    alignas(64) _Atomic(weir_task *) returned;
    _Atomic intptr_t owed;
};

static weir_task closed;
#define CLOSED (&closed)

static _Thread_local weir__task_pool *own_pool __attribute__((tls_model("initial-exec")));

static uintptr_t chain_length(const weir_task *first)
{
    return (uintptr_t)first->arg;
}

static weir_task *next_task(const weir_task *task)
{
    return (weir_task *)(void *)task->node.next;
}

static void free_chain(weir_task *task)
{
    weir_task *next;

    for (; task != NULL; task = next) {
        next = next_task(task);
        weir__free(task);
    }
}

static uintptr_t free_chains(weir_task *chain)
{
    weir_task *next;
    uintptr_t freed = 0;

    for (; chain != NULL; chain = next) {
        next = chain->reserved;
        freed += chain_length(chain);
        free_chain(chain);
    }
    return freed;
}

static void pool_close(void *arg)
{
    weir__task_pool *pool = arg;
    weir_task *returned = atomic_exchange_explicit(&pool->returned, CLOSED, memory_order_acquire);
    intptr_t out;

    own_pool = NULL;
    for (weir_task *task = pool->free; task != NULL; task = next_task(task))
        pool->made--;
    free_chain(pool->free);
    pool->made -= free_chains(pool->chains);
    pool->made -= free_chains(returned);

    out = (intptr_t)pool->made;
    if (out == 0 || atomic_fetch_add_explicit(&pool->owed, out, memory_order_acq_rel) + out == 0)
        weir__aligned_free(pool);
}

static weir__task_pool *pool_create(void)
{
    weir__task_pool *pool = weir__aligned_zalloc(alignof(weir__task_pool), sizeof(*pool));

    if (pool == NULL)
        return NULL;
    if (weir_thread_on_exit(pool_close, pool) < 0) {
        weir__aligned_free(pool);
        return NULL;
    }
    own_pool = pool;
    return pool;
}

/* Takes what came back, as far as it is worth keeping. */
static void collect_returned(weir__task_pool *pool)
{
    weir_task *chain;
    weir_task **end = &pool->chains;

    if (atomic_load_explicit(&pool->returned, memory_order_relaxed) == NULL)
        return;
    pool->chains = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    while ((chain = *end) != NULL && pool->spare < TASKS_MAX) {
        pool->spare += chain_length(chain);
        end = (weir_task **)&chain->reserved;
    }
    *end = NULL;
    pool->made -= free_chains(chain);
}

static weir_task *pool_refill(weir__task_pool *pool)
{
    weir_task *task;

    if (pool->chains == NULL)
        collect_returned(pool);
    task = pool->chains;
    if (task != NULL) {
        pool->chains = task->reserved;
        return task;
    }
    task = weir__alloc(sizeof(*task));
    if (task != NULL) {
        task->node.next = NULL;
        pool->made++;
        pool->spare++;
    }
    return task;
}

weir_task *weir__task_take(weir_task_fn *fn, void *arg)
{
    weir__task_pool *pool = own_pool;
    weir_task *task;

    if (pool == NULL && (pool = pool_create()) == NULL)
        return NULL;
    task = pool->free;
    if (task == NULL && (task = pool_refill(pool)) == NULL)
        return NULL;
    pool->free = next_task(task);
    pool->spare--;
    task->fn = fn;
    task->arg = arg;
    task->pool = pool;
    task->reserved = NULL;
    return task;
}

static void give_own(weir__task_pool *pool, weir_task *task)
{
    if (pool->spare >= TASKS_MAX) {
        weir__free(task);
        pool->made--;
        return;
    }
    task->node.next = pool->free != NULL ? &pool->free->node : NULL;
    pool->free = task;
    pool->spare++;
}

void weir__task_untake(weir_task *task)
{
    give_own(task->pool, task);
}

static void return_after_end(weir__task_pool *pool, weir_task *first, intptr_t count)
{
    free_chain(first);
    if (atomic_fetch_sub_explicit(&pool->owed, count, memory_order_acq_rel) == count)
        weir__aligned_free(pool);
}

static void return_chain(weir__task_pool *pool, weir_task *first, uintptr_t count)
{
    weir_task *head = atomic_load_explicit(&pool->returned, memory_order_relaxed);

    first->arg = (void *)count;
    do {
        if (head == CLOSED) {
            return_after_end(pool, first, (intptr_t)count);
            return;
        }
        first->reserved = head;
    } while (!atomic_compare_exchange_weak_explicit(&pool->returned, &head, first,
                                                    memory_order_release, memory_order_relaxed));
}

static void flush_chain(weir__task_returns *returns, unsigned i)
{
    weir__task_pool *pool = returns->chains[i].pool;

    if (pool == NULL)
        return;
    returns->chains[i].pool = NULL;
    return_chain(pool, returns->chains[i].first, returns->chains[i].count);
}

static unsigned chain_for(weir__task_returns *returns, weir__task_pool *pool)
{
    unsigned i;

    for (i = 0; i < WEIR__TASK_RETURNS; i++)
        if (returns->chains[i].pool == pool)
            return i;
    i = returns->victim++ % WEIR__TASK_RETURNS;
    flush_chain(returns, i);
    returns->chains[i].pool = pool;
    returns->chains[i].first = NULL;
    returns->chains[i].count = 0;
    return i;
}

void weir__task_give(weir__task_returns *returns, weir_task *task)
{
    weir__task_pool *pool = task->pool;
    unsigned i;

    if (pool == own_pool) {
        give_own(pool, task);
        return;
    }
    i = chain_for(returns, pool);
    task->node.next = NULL;
    if (returns->chains[i].first == NULL)
        returns->chains[i].first = task;
    else
        returns->chains[i].last->node.next = &task->node;
    returns->chains[i].last = task;
    returns->chains[i].count++;
}

void weir__task_flush(weir__task_returns *returns)
{
    for (unsigned i = 0; i < WEIR__TASK_RETURNS; i++)
        flush_chain(returns, i);
}
