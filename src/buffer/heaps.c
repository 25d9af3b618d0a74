/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns heaps to threads.
 *
 *      (none) --first use--> heap of a thread --thread ends--> (none)   all blocks were returned
 *                                 ^   |
 *                   next thread   |   | blocks are still allocated
 *                                 |   v
 *                                orphan --trim--> (none)   all blocks were returned
 *
 * A heap changes threads under the lock, so everything that its last thread did happens before what
 * the next one does. An orphan is not in the list of orphans while it is trimmed: no other thread
 * uses it.
 */
#include "buffer/heaps.h"

#include <weir/thread.h>

#include "base/memory.h"
#include "buffer/pool_metrics.h"
#include "buffer/pool_thread.h"

_Thread_local weir__heap *weir__heap_current;
weir__heap weir__heap_none;
_Thread_local weir__pool_thread weir__pool_thread_now = {.heap = &weir__heap_none};

weir__heaps weir__heaps_all = {
    .lock = WEIR__MUTEX_INIT,
    .list = {&weir__heaps_all.list, &weir__heaps_all.list},
};

static void lock(void)
{
    weir__mutex_lock(&weir__heaps_all.lock);
}

static void unlock(void)
{
    weir__mutex_unlock(&weir__heaps_all.lock);
}

/* ---- attaching ---- */

static weir__heap *pop_orphan_locked(void)
{
    weir__heap *heap = atomic_load_explicit(&weir__heaps_all.orphans, memory_order_relaxed);

    if (heap != NULL)
        atomic_store_explicit(&weir__heaps_all.orphans, heap->registry.next_orphan,
                              memory_order_relaxed);
    return heap;
}

static int register_locked(weir__heap *heap)
{
    static uint64_t numbers;
    bool first = weir__list_is_empty(&weir__heaps_all.list);
    int err = first ? weir__pool_metrics_begin() : 0;

    if (err < 0)
        return err;
    heap->registry.number = ++numbers;
    err = weir__pool_metrics_add(heap);
    if (err == 0)
        weir__list_append(&weir__heaps_all.list, &heap->registry.link);
    else if (first)
        weir__pool_metrics_end();
    return err;
}

static weir__heap *create(void)
{
    weir__heap *heap = weir__aligned_zalloc(alignof(weir__heap), sizeof(*heap));
    int err;

    if (heap == NULL)
        return NULL;
    weir__heap_init(heap);
    lock();
    err = register_locked(heap);
    unlock();
    if (err < 0) {
        weir__aligned_free(heap, sizeof(*heap));
        return NULL;
    }
    return heap;
}

static weir__heap *adopt_or_create(void)
{
    weir__heap *heap;

    lock();
    heap = pop_orphan_locked();
    unlock();
    return heap != NULL ? heap : create();
}

/* ---- detaching ---- */

static void destroy(weir__heap *heap)
{
    lock();
    weir__list_remove(&heap->registry.link);
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        atomic_fetch_add_explicit(&weir__heaps_all.sent[i],
                                  weir__owned_counter_read(&heap->bins[i].sent) -
                                      weir__owned_counter_read(&heap->bins[i].received),
                                  memory_order_relaxed);
    weir__pool_metrics_remove(heap);
    if (weir__list_is_empty(&weir__heaps_all.list))
        weir__pool_metrics_end();
    unlock();
    weir__aligned_free(heap, sizeof(*heap));
}

static void make_orphan(weir__heap *heap)
{
    lock();
    heap->registry.thread = 0;
    heap->registry.next_orphan =
        atomic_load_explicit(&weir__heaps_all.orphans, memory_order_relaxed);
    atomic_store_explicit(&weir__heaps_all.orphans, heap, memory_order_relaxed);
    unlock();
}

/* Trims a heap without a thread. If it is empty it is destroyed: no thread has blocks of it. */
static size_t trim_detached(weir__heap *heap)
{
    size_t bytes = weir__heap_trim(heap);

    if (weir__heap_is_empty(heap))
        destroy(heap);
    else
        make_orphan(heap);
    return bytes;
}

size_t weir__heaps_trim_orphans(void)
{
    weir__heap *heap, *next;
    size_t bytes = 0;

    lock();
    heap = atomic_exchange_explicit(&weir__heaps_all.orphans, NULL, memory_order_relaxed);
    unlock();
    for (; heap != NULL; heap = next) {
        next = heap->registry.next_orphan;
        bytes += trim_detached(heap);
    }
    return bytes;
}

/* Flushing the outboxes may have returned the last blocks of an orphan. */
static void detach(weir__heap *heap)
{
    weir__outbox_flush(&heap->outboxes);
    (void)trim_detached(heap);
    (void)weir__heaps_trim_orphans();
}

static void set_current(weir__heap *heap)
{
    weir__heap_current = heap;
    weir__pool_thread_now.heap = heap == NULL || weir__poison_enabled() ? &weir__heap_none : heap;
}

static void on_thread_exit(void *arg)
{
    set_current(NULL);
    detach(arg);
}

weir__heap *weir__heap_attach(void)
{
    weir__heap *heap = adopt_or_create();

    if (heap == NULL)
        return NULL;
    if (weir_thread_on_exit(on_thread_exit, heap) < 0) {
        detach(heap);
        return NULL;
    }
    lock();
    heap->registry.thread = weir__thread_id();
    weir__thread_name(heap->registry.thread_name, sizeof(heap->registry.thread_name));
    unlock();
    set_current(heap);
    return heap;
}

void weir__heaps_count_sent(unsigned size_class)
{
    atomic_fetch_add_explicit(&weir__heaps_all.sent[size_class], 1, memory_order_relaxed);
}
