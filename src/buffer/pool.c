/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates and frees blocks, and unmaps memory.
 *
 *      alloc   from the bin, else from returned blocks, else from a slab    (heap.c)
 *      free    into the bin, or if it is another thread's, the outbox       (outbox.c)
 *
 * Memory is unmapped when a thread ends (heaps.c), when the thread of an executor sleeps with more
 * than it needs, on request, and when an allocation would otherwise fail.
 */
#include "buffer/pool.h"

#include <assert.h>
#include <errno.h>

#include "base/turn_hooks.h"
#include "buffer/heaps.h"
#include "os/clock.h"

#define COLD __attribute__((noinline, cold))

#define DECAY_MIN_NS weir_seconds(1)
#define DECAY_MAX_NS weir_seconds(64)
#define KEEP_BYTES ((size_t)1 << 20) /* a thread that has mapped less does not decay */
#define TRIM_RETRY_NS weir_ms(10)

/* The number of requests to trim. Relaxed: threads may notice late. */
static _Atomic uint32_t trim_requests;

/* ---- unmapping ---- */

size_t weir_pool_trim(void)
{
    weir__heap *heap = weir__heap_current;
    size_t bytes = 0;

    if (heap != NULL) {
        weir__outbox_flush(&heap->outboxes);
        bytes = weir__heap_trim(heap);
    }
    atomic_fetch_add_explicit(&trim_requests, 1, memory_order_relaxed);
    return bytes + weir__heaps_trim_orphans();
}

int weir_pool_set_limit(int64_t bytes)
{
    if (bytes < WEIR_OFF)
        return -EINVAL;
    atomic_store_explicit(&weir__mapped_now.limit_bytes, bytes > 0 ? bytes : 0,
                          memory_order_relaxed);
    return 0;
}

static COLD void trim_as_requested(weir__heap *heap, uint32_t requests)
{
    heap->trims_seen = requests;
    (void)weir__heap_trim(heap);
}

static int64_t after(int64_t now_ns, int64_t wait_ns)
{
    return now_ns < WEIR_NEVER - wait_ns ? now_ns + wait_ns : WEIR_NEVER;
}

/* Backs off while there is nothing to unmap, because other threads may still return blocks. */
static int64_t next_wait(int64_t wait_ns, bool more)
{
    if (more)
        return DECAY_MIN_NS;
    return wait_ns < DECAY_MAX_NS ? 2 * wait_ns : DECAY_MAX_NS;
}

/*
 * At most once a second, so that a thread that sleeps often keeps what it needs again immediately;
 * and a sleeping thread is woken for it, so that an idle thread unmaps its memory.
 */
static int64_t decay(weir__heap *heap, int64_t now_ns)
{
    /* The first call; after mapping more; with another clock. */
    if (heap->decay_at_ns == 0 || heap->decay_at_ns > after(now_ns, DECAY_MAX_NS)) {
        heap->decay_wait_ns = DECAY_MIN_NS;
        heap->decay_at_ns = after(now_ns, DECAY_MIN_NS);
    }
    if (now_ns < heap->decay_at_ns)
        return heap->decay_at_ns;
    heap->decay_wait_ns = next_wait(heap->decay_wait_ns, weir__heap_decay(heap));
    heap->decay_at_ns = after(now_ns, heap->decay_wait_ns);
    (void)weir__heaps_trim_orphans();
    return heap->slab_bytes > KEEP_BYTES ? heap->decay_at_ns : WEIR_NEVER;
}

static bool may_decay(const weir__heap *heap)
{
    /* Relaxed: a hint whether there are orphans; they are not accessed here. */
    return heap->slab_bytes > KEEP_BYTES ||
           atomic_load_explicit(&weir__heaps_all.orphans, memory_order_relaxed) != NULL;
}

static int64_t on_turn_end(bool sleeps, int64_t now_ns)
{
    uint32_t requests = atomic_load_explicit(&trim_requests, memory_order_relaxed);
    weir__heap *heap = weir__heap_current;

    if (heap == NULL)
        return WEIR_NEVER;
    weir__outbox_flush(&heap->outboxes);
    if (heap->trims_seen != requests)
        trim_as_requested(heap, requests);
    return sleeps && may_decay(heap) ? decay(heap, now_ns) : WEIR_NEVER;
}

/* ---- allocating ---- */

static weir__heap *attach(void)
{
    weir__heap *heap = weir__heap_attach();

    if (heap == NULL)
        return NULL;
    weir__turn_hook_add(on_turn_end);
    heap->trims_seen = atomic_load_explicit(&trim_requests, memory_order_relaxed);
    return heap;
}

static weir_buf *init_block(weir_buf *block, weir__heap *heap, unsigned size_class, size_t size)
{
    uint32_t offset = size_class * (uint32_t)sizeof(heap->bins[0]);

    block->msg.type = &weir_buf_type;
    __atomic_store_n(&block->msg.refs, 1u, __ATOMIC_RELAXED);
    block->msg.flags = offset << WEIR__POOL_BIN_SHIFT | size_class << WEIR__POOL_CLASS_SHIFT;
    block->data = (uint8_t *)(block + 1);
    block->read = block->write = 0;
    block->capacity = (uint32_t)size;
    block->max = (uint32_t)WEIR_BUF_MAX;
    block->owner = heap;
    return block;
}

static weir_buf *map_huge(size_t payload)
{
    weir__slab *slab = weir__slab_map_huge(payload);
    weir_buf *block;

    if (slab == NULL)
        return NULL;
    block = weir__slab_block(slab, 0);
    weir__block_unpoison_links(block);
    block->slab = slab;
    weir__block_unpoison(block, weir__slab_huge_size(payload));
    return init_block(block, NULL, WEIR__CLASS_HUGE, weir__slab_huge_size(payload));
}

static weir_buf *alloc_from(weir__heap *heap, unsigned size_class)
{
    weir__bin *bin = &heap->bins[size_class];
    weir_buf *block = weir__bin_pop(bin);

    if (block == NULL)
        block = weir__heap_refill(heap, size_class);
    if (block == NULL)
        return NULL;
    weir__block_unpoison(block, bin->size);
    return init_block(block, heap, size_class, bin->size);
}

static weir_buf *try_alloc(size_t payload)
{
    weir__heap *heap = weir__heap_current;

    if (payload > WEIR__CLASS_SIZE_MAX)
        return map_huge(payload);
    if (heap == NULL)
        heap = attach();
    return heap != NULL ? alloc_from(heap, weir__class_of(payload)) : NULL;
}

/*
 * True if trimming unmapped memory. After a failure it is not tried again for a while, unless the
 * thread has more free blocks by then: a thread at the limit would do little else.
 */
static bool trim_for_retry(void)
{
    weir__heap *heap = weir__heap_current;
    int64_t now_ns = weir__monotonic_now();

    if (heap != NULL && now_ns < heap->trim_retry_ns && !weir__heap_may_trim(heap))
        return false;
    if (weir_pool_trim() > 0)
        return true;
    if (heap != NULL)
        heap->trim_retry_ns = now_ns + TRIM_RETRY_NS;
    return false;
}

/* The thread may have no heap: for lack of memory, or because it only allocates huge blocks. */
static COLD void count_failure(size_t payload)
{
    bool huge = payload > WEIR__CLASS_SIZE_MAX;
    unsigned size_class = huge ? WEIR__CLASS_HUGE : weir__class_of(payload);
    weir__heap *heap = weir__heap_current;

    atomic_fetch_add_explicit(&weir__mapped_now.failures, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&weir__mapped_now.classes[size_class].failures, 1,
                              memory_order_relaxed);
    if (heap != NULL)
        weir__owned_counter_add(&heap->failures, 1);
}

weir_buf *weir__pool_alloc_slow(size_t payload)
{
    weir_buf *block = try_alloc(payload);

    if (block == NULL && trim_for_retry())
        block = try_alloc(payload);
    if (block == NULL)
        count_failure(payload);
    return block;
}

size_t weir__pool_capacity_for(size_t payload)
{
    assert(payload <= WEIR_BUF_MAX);
    return payload <= WEIR__CLASS_SIZE_MAX ? weir__class_size(weir__class_of(payload))
                                           : weir__slab_huge_size(payload);
}

/* ---- freeing ---- */

/* Returns a block to another heap; `bin` is that of its size in the heap of this thread. */
static inline void return_block(weir__heap *heap, weir__bin *bin, weir__heap *owner,
                                weir_buf *block)
{
    weir__owned_counter_add(&bin->sent, 1);
    weir__outbox_put(&heap->outboxes, owner, block, bin->size);
}

/* A thread that only releases also gets a heap, for its outboxes. */
static void free_to_heap(weir__heap *owner, unsigned size_class, weir_buf *block)
{
    weir__heap *heap = weir__heap_current != NULL ? weir__heap_current : attach();

    weir__block_poison(block, weir__class_size(size_class));
    if (heap == owner) {
        weir__bin_push(&heap->bins[size_class], block);
    } else if (heap != NULL) {
        return_block(heap, &heap->bins[size_class], owner, block);
    } else {
        weir__heaps_count_sent(size_class);
        weir__heap_return(owner, block, block, 1);
    }
}

static COLD void free_rare(weir_buf *block)
{
    weir__slab *slab = weir__slab_of(block);

    if (slab->heap != NULL) {
        free_to_heap(slab->heap, slab->size_class, block);
    } else {
        weir__block_poison(block, slab->bytes - sizeof(*slab) - sizeof(*block));
        weir__slab_unmap(slab);
    }
}

void weir__pool_free_slow(weir_buf *block)
{
    weir__heap *heap = weir__pool_thread_now.heap;

    if (heap == &weir__heap_none || block->owner == NULL)
        free_rare(block);
    else
        return_block(heap, weir__heap_bin_at(heap, block->msg.flags >> WEIR__POOL_BIN_SHIFT),
                     block->owner, block);
}
