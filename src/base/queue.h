/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue with many producers and one consumer, which can be closed.
 *
 *      head:  newest -> ... -> oldest      producers push at the newest end, one CAS each
 *                                          the consumer takes the whole stack by one exchange,
 *                                          and reverses it into a chain, oldest first
 *
 * `head` packs the address of the newest node with the number of nodes, so that any thread can read
 * the length without a second atomic operation. CLOSED is a value of head: a push either precedes
 * the close, and the closer gets the node, or it fails. A push is a single CAS: a stalled producer
 * blocks no other thread.
 *
 * Memory order. The members of a node are written before the CAS (release) that publishes it, and
 * read after the exchange (acquire) that takes it; CASes between the two continue the release
 * sequence. The CAS and the load in weir__queue_is_empty are also sequentially consistent, for the
 * sleep protocol in executor/executor.c: a producer pushes and then reads `next_wakeup`, the
 * consumer writes `next_wakeup` and then checks the queue; at least one of them sees the other.
 *
 * Invariants: - Only the consumer takes and closes. Opening requires the lock of the executor. -
 * The count saturates at WEIR__QUEUE_COUNT_MAX and is exact below it.
 */
#ifndef WEIR_BASE_QUEUE_H
#define WEIR_BASE_QUEUE_H

#include <assert.h>
#include <stdatomic.h>

#include <weir/base.h>

/*
 * Addresses have 48 bits and the lowest 3 are zero: 45 for the node, 19 for the count. Tags in the
 * upper bits (MTE, TBI, LAM) would be lost, and with 5-level page tables an allocator may return
 * more than 48 bits if it asks for them: executors are not created from such memory.
 */
#define WEIR__QUEUE_COUNT_BITS 19
#define WEIR__QUEUE_COUNT_MAX ((UINT64_C(1) << WEIR__QUEUE_COUNT_BITS) - 1)
#define WEIR__QUEUE_EMPTY UINT64_C(0)
#define WEIR__QUEUE_CLOSED UINT64_C(1) /* no node but a count of 1 */

typedef struct weir__queue {
    _Atomic uint64_t head;
    /*
     * A recently pushed node, for leak checkers, which do not understand `head`: a program may end
     * with tasks in the queue. Never read.
     */
    _Atomic(const weir_queue_node *) newest;
} weir__queue;

/* A list of nodes, oldest first, used by one thread. Initialized to zeroes. */
typedef struct weir__chain {
    weir_queue_node *first;
    weir_queue_node *last;
} weir__chain;

static inline void weir__chain_append(weir__chain *chain, weir_queue_node *node)
{
    node->next = NULL;
    if (chain->first == NULL)
        chain->first = node;
    else
        chain->last->next = node;
    chain->last = node;
}

static inline weir_queue_node *weir__chain_pop(weir__chain *chain)
{
    weir_queue_node *node = chain->first;

    if (node != NULL) {
        chain->first = node->next;
        __builtin_prefetch(chain->first);
    }
    return node;
}

/* Puts the nodes of `front`, which are some, before those of the chain. */
static inline void weir__chain_prepend(weir__chain *chain, const weir__chain *front)
{
    front->last->next = chain->first;
    if (chain->first == NULL)
        chain->last = front->last;
    chain->first = front->first;
}

/* Inserts a node after another one of the chain, or before all if that is NULL. */
static inline void weir__chain_insert(weir__chain *chain, weir_queue_node *after,
                                      weir_queue_node *node)
{
    weir_queue_node **link = after != NULL ? &after->next : &chain->first;

    node->next = *link;
    *link = node;
    if (node->next == NULL)
        chain->last = node;
}

static inline uint64_t weir__queue_pack(const weir_queue_node *node, uint64_t count)
{
    return (uint64_t)(uintptr_t)node << (WEIR__QUEUE_COUNT_BITS - 3) | count;
}

static inline weir_queue_node *weir__queue_node(uint64_t head)
{
    return (weir_queue_node *)(uintptr_t)(head >> WEIR__QUEUE_COUNT_BITS << 3);
}

/* True if the queue can hold a node at this address. */
static inline bool weir__queue_may_hold(const void *address)
{
    return ((uintptr_t)address & 7) == 0 && (uint64_t)(uintptr_t)address >> 48 == 0;
}

static inline void weir__queue_init(weir__queue *queue)
{
    atomic_init(&queue->head, WEIR__QUEUE_CLOSED);
    atomic_init(&queue->newest, NULL);
}

static inline bool weir__queue_push(weir__queue *queue, weir_queue_node *node)
{
    uint64_t head, count;

    assert(weir__queue_may_hold(node));
    __builtin_prefetch(&queue->head,
                       1); /* for writing, to transfer the cache line once instead of twice */
    head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    do {
        if (head == WEIR__QUEUE_CLOSED)
            return false;
        node->next = weir__queue_node(head);
        count = head & WEIR__QUEUE_COUNT_MAX;
        count += count < WEIR__QUEUE_COUNT_MAX;
    } while (!atomic_compare_exchange_weak_explicit(&queue->head, &head,
                                                    weir__queue_pack(node, count),
                                                    memory_order_seq_cst, memory_order_relaxed));
    atomic_store_explicit(&queue->newest, node, memory_order_relaxed);
    return true;
}

/* True also if the queue is closed. */
static inline bool weir__queue_is_empty(const weir__queue *queue)
{
    return atomic_load_explicit(&queue->head, memory_order_seq_cst) <= WEIR__QUEUE_CLOSED;
}

static inline uint64_t weir__queue_count(const weir__queue *queue)
{
    uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);

    return head == WEIR__QUEUE_CLOSED ? 0 : head & WEIR__QUEUE_COUNT_MAX;
}

/* Appends the nodes to the chain, oldest first. Returns their number. */
static inline uint64_t weir__queue_reverse(uint64_t head, weir__chain *chain)
{
    weir_queue_node *node = weir__queue_node(head), *newest = node, *oldest = NULL, *next;
    uint64_t count = 0;

    for (; node != NULL; node = next, count++) {
        next = node->next;
        node->next = oldest;
        oldest = node;
    }
    if (count == 0)
        return 0;
    if (chain->first == NULL)
        chain->first = oldest;
    else
        chain->last->next = oldest;
    chain->last = newest;
    return count;
}

/* Moves all nodes to the end of the chain. Returns their number. */
static inline uint64_t weir__queue_take(weir__queue *queue, weir__chain *chain)
{
    if (weir__queue_is_empty(queue))
        return 0;
    return weir__queue_reverse(
        atomic_exchange_explicit(&queue->head, WEIR__QUEUE_EMPTY, memory_order_seq_cst), chain);
}

/* Closes the queue, so that pushes fail, and moves its nodes to the end of the chain. */
static inline uint64_t weir__queue_close(weir__queue *queue, weir__chain *chain)
{
    uint64_t head =
        atomic_exchange_explicit(&queue->head, WEIR__QUEUE_CLOSED, memory_order_seq_cst);

    return head == WEIR__QUEUE_CLOSED ? 0 : weir__queue_reverse(head, chain);
}

static inline bool weir__queue_close_if_empty(weir__queue *queue)
{
    uint64_t head = WEIR__QUEUE_EMPTY;

    return atomic_compare_exchange_strong_explicit(&queue->head, &head, WEIR__QUEUE_CLOSED,
                                                   memory_order_seq_cst, memory_order_relaxed);
}

static inline void weir__queue_open(weir__queue *queue)
{
    atomic_store_explicit(&queue->head, WEIR__QUEUE_EMPTY, memory_order_seq_cst);
}

#endif
