/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An iteration places a mark of its own in the list, behind the loop that it visits. So the loop
 * may leave the list meanwhile, and the lock is held only to move the mark.
 */
#include "executor/running_loops.h"

#include "executor/executor.h"
#include "os/futex.h"
#include "os/thread.h"

static weir__mutex lock = WEIR__MUTEX_INIT;
static weir__list loops = {&loops, &loops}; /* guarded by lock */
static _Atomic int allowed_signal;

/* An item of the list: a loop, or a mark. */
static weir_executor *loop_of(weir__running_loop *item)
{
    return item->is_mark ? NULL : WEIR_CONTAINER_OF(item, weir_executor, running_loop);
}

void weir__running_loops_add(weir_executor *executor)
{
    weir__running_loop *item = &executor->running_loop;

    if (!executor->type->is_loop)
        return;
    weir__mutex_lock(&lock);
    if (item->link.next == NULL) {
        weir__executor_weak_retain(executor);
        weir__list_append(&loops, &item->link);
    }
    weir__mutex_unlock(&lock);
}

void weir__running_loops_remove(weir_executor *executor)
{
    weir__running_loop *item = &executor->running_loop;
    bool was_in;

    if (!executor->type->is_loop)
        return;
    weir__mutex_lock(&lock);
    was_in = item->link.next != NULL;
    if (was_in) {
        weir__list_remove(&item->link);
        item->link = (weir__list){0};
    }
    weir__mutex_unlock(&lock);
    if (was_in)
        weir__executor_weak_release(executor);
}

/* Moves the mark behind the next loop and retains that. Returns NULL at the end of the list. */
static weir_executor *take_next(weir__running_loop *mark)
{
    weir_executor *loop = NULL;
    weir__list *next;

    weir__mutex_lock(&lock);
    for (next = mark->link.next; next != &loops && loop == NULL; next = next->next) {
        loop = loop_of(WEIR_CONTAINER_OF(next, weir__running_loop, link));
        if (loop == NULL)
            continue;
        weir__executor_weak_retain(loop);
        weir__list_remove(&mark->link);
        weir__list_append(next->next, &mark->link);
    }
    weir__mutex_unlock(&lock);
    return loop;
}

void weir__running_loops_foreach(weir__running_loop_fn *fn, void *arg)
{
    weir__running_loop mark = {.is_mark = true};
    weir_executor *loop;

    weir__mutex_lock(&lock);
    weir__list_append(loops.next, &mark.link); /* before the first */
    weir__mutex_unlock(&lock);
    while ((loop = take_next(&mark)) != NULL) {
        fn(loop, arg);
        weir__executor_weak_release(loop);
    }
    weir__mutex_lock(&lock);
    weir__list_remove(&mark.link);
    weir__mutex_unlock(&lock);
}

/* ---- times of turns ---- */

static _Atomic unsigned timings; /* that have not ended */

/* A sample that the watchdog has asked for stays that. */
static void sample_next_turn(weir_executor *loop, void *arg)
{
    uint64_t at = atomic_load_explicit(&loop->stats.sample_at, memory_order_relaxed);

    (void)arg;
    while (at > 1 &&
           !atomic_compare_exchange_weak_explicit(&loop->stats.sample_at, &at, 1,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

/* A loop that samples a turn meanwhile, and has not seen the count, samples one later. */
void weir__running_loops_begin_timing(void)
{
    if (atomic_fetch_add_explicit(&timings, 1, memory_order_relaxed) == 0)
        weir__running_loops_foreach(sample_next_turn, NULL);
}

void weir__running_loops_end_timing(void)
{
    atomic_fetch_sub_explicit(&timings, 1, memory_order_relaxed);
}

bool weir__running_loops_are_timed(void)
{
    return atomic_load_explicit(&timings, memory_order_relaxed) > 0;
}

/* ---- the alarm ---- */

_Atomic uint32_t weir__running_loops_alarm;

/* Busy polling is no sleep. The last steps of a loop may wait, as nothing can be awakened. */
static void see_awake(weir_executor *loop, void *arg)
{
    if (atomic_load_explicit(&loop->stats.active, memory_order_relaxed) < 0 &&
        weir__executor_state(loop) < WEIR_EXECUTOR_SHUTDOWN)
        *(bool *)arg = true;
}

/*
 * A loop stores `active` and then reads the alarm, in this order after the barrier. So a loop that
 * has read 0 is seen here to be awake. A loop that is added later reads 1, by the lock of the list.
 */
bool weir__running_loops_set_alarm(void)
{
    bool is_awake = false;

    atomic_store_explicit(&weir__running_loops_alarm, 1, memory_order_seq_cst);
    if (weir__thread_barrier_others())
        weir__running_loops_foreach(see_awake, &is_awake);
    else
        is_awake = true;
    if (is_awake)
        atomic_store_explicit(&weir__running_loops_alarm, 0, memory_order_seq_cst);
    return !is_awake;
}

void weir__running_loops_ring(void)
{
    if (atomic_exchange_explicit(&weir__running_loops_alarm, 0, memory_order_seq_cst) != 0)
        weir__futex_wake(&weir__running_loops_alarm, 1);
}

void weir__running_loop_ring(const weir_executor *executor)
{
    if (executor->type->is_loop)
        weir__running_loops_ring();
}

/* ---- signals ---- */

static bool has_own_thread(const weir_executor *executor)
{
    return executor->type->is_loop && !executor->type->threadless &&
           executor->options.thread_factory.start == NULL;
}

/* A negative signal is unblocked. */
static void on_mask(void *arg, int status)
{
    int signal = (int)(intptr_t)arg;

    (void)status;
    weir__thread_block_signal(signal < 0 ? -signal : signal, signal > 0);
}

/* Without memory for the task, the thread keeps its mask until the next change. */
static void post_mask(weir_executor *loop, void *signal)
{
    if (has_own_thread(loop))
        (void)weir__executor_try_execute(loop, on_mask, (void *)(intptr_t) * (const int *)signal,
                                         WEIR__NOW);
}

void weir__running_loops_allow_signal(int signal)
{
    int before = atomic_exchange_explicit(&allowed_signal, signal, memory_order_relaxed);
    int allowed = -signal;

    if (before != 0)
        weir__running_loops_foreach(post_mask, &before);
    if (signal != 0)
        weir__running_loops_foreach(post_mask, &allowed);
}

/*
 * A loop is in the list before its thread calls this, by the lock of the list. So if this still
 * reads the old value, the change finds the loop there and posts a task.
 */
void weir__running_loop_begin(const weir_executor *executor)
{
    int signal = atomic_load_explicit(&allowed_signal, memory_order_relaxed);

    if (signal != 0 && has_own_thread(executor))
        weir__thread_block_signal(signal, false);
}
