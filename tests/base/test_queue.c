/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue, closing it, and the chain that it is taken into.
 */
#include "base/queue.h"

#include <stdlib.h>

#include "os/thread.h"
#include "support/test.h"

struct item {
    weir_queue_node node;
    int number;
};

/* The number of the item popped, 0 if there was none. */
static int pop(weir__chain *chain)
{
    weir_queue_node *node = weir__chain_pop(chain);

    return node != NULL ? WEIR_CONTAINER_OF(node, struct item, node)->number : 0;
}

static void open_queue(weir__queue *queue)
{
    weir__queue_init(queue);
    weir__queue_open(queue);
}

static void push_all(weir__queue *queue, struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i].number = i + 1;
        assert_true(weir__queue_push(queue, &items[i].node));
    }
}

/* ---- the chain ---- */

TEST(chain, pops_in_the_order_appended)
{
    struct item items[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    weir__chain chain = {0};

    for (int i = 0; i < 3; i++)
        weir__chain_append(&chain, &items[i].node);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(pop(&chain), i);
    assert_null(chain.first);
    assert_null(weir__chain_pop(&chain));
}

TEST(chain, that_was_emptied_is_used_again)
{
    struct item items[2] = {{.number = 1}, {.number = 2}};
    weir__chain chain = {0};

    weir__chain_append(&chain, &items[0].node);
    assert_int_equal(pop(&chain), 1);
    weir__chain_append(&chain, &items[1].node);
    assert_int_equal(pop(&chain), 2);
    assert_null(weir__chain_pop(&chain));
}

/* ---- one thread ---- */

static const void *address(uintptr_t number)
{
    return (const void *)number;
}

TEST(queue, holds_addresses_of_48_bits_without_tags)
{
    const uint64_t last = UINT64_C(0xfffffffffff8);

    assert_true(weir__queue_may_hold(address(last)));
    assert_ptr_equal(weir__queue_node(weir__queue_pack(address(last), WEIR__QUEUE_COUNT_MAX)),
                     address(last));
    assert_false(weir__queue_may_hold(address(last + 8)));
    assert_false(weir__queue_may_hold(address(last | UINT64_C(1) << 56)));
    assert_false(weir__queue_may_hold(address(last - 4)));
}

TEST(queue, begins_closed_and_empty)
{
    weir__queue queue;
    struct item item;

    weir__queue_init(&queue);
    assert_true(weir__queue_is_empty(&queue));
    assert_int_equal(weir__queue_count(&queue), 0);
    assert_false(weir__queue_push(&queue, &item.node));
    assert_true(weir__queue_is_empty(&queue));
}

TEST(queue, is_taken_oldest_first)
{
    struct item items[4];
    weir__chain chain = {0};
    weir__queue queue;

    open_queue(&queue);
    push_all(&queue, items, 4);
    assert_false(weir__queue_is_empty(&queue));
    assert_int_equal(weir__queue_count(&queue), 4);
    assert_int_equal(weir__queue_take(&queue, &chain), 4);
    assert_true(weir__queue_is_empty(&queue));
    assert_int_equal(weir__queue_count(&queue), 0);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(pop(&chain), i);
    assert_null(weir__chain_pop(&chain));
}

TEST(queue, is_taken_to_the_end_of_the_chain)
{
    struct item items[2], early = {.number = 7};
    weir__chain chain = {0};
    weir__queue queue;

    open_queue(&queue);
    weir__chain_append(&chain, &early.node);
    push_all(&queue, items, 2);
    assert_int_equal(weir__queue_take(&queue, &chain), 2);
    assert_int_equal(pop(&chain), 7);
    assert_int_equal(pop(&chain), 1);
    assert_int_equal(pop(&chain), 2);
}

TEST(queue, taken_when_empty_leaves_the_chain_alone)
{
    struct item early = {.number = 7};
    weir__chain chain = {0};
    weir__queue queue;

    open_queue(&queue);
    weir__chain_append(&chain, &early.node);
    assert_int_equal(weir__queue_take(&queue, &chain), 0);
    assert_int_equal(pop(&chain), 7);
    assert_null(chain.first);
}

TEST(queue, close_returns_its_nodes_and_rejects_pushes)
{
    struct item items[3], late = {.number = 9};
    weir__chain chain = {0};
    weir__queue queue;

    open_queue(&queue);
    push_all(&queue, items, 3);
    assert_int_equal(weir__queue_close(&queue, &chain), 3);
    assert_false(weir__queue_push(&queue, &late.node));
    assert_true(weir__queue_is_empty(&queue));
    assert_int_equal(weir__queue_count(&queue), 0);
    assert_int_equal(weir__queue_take(&queue, &chain), 0);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(pop(&chain), i);
    assert_null(weir__chain_pop(&chain));
}

TEST(queue, can_be_closed_when_empty_and_when_closed)
{
    weir__chain chain = {0};
    weir__queue queue;

    open_queue(&queue);
    assert_int_equal(weir__queue_close(&queue, &chain), 0);
    assert_int_equal(weir__queue_close(&queue, &chain), 0);
    assert_null(chain.first);
}

TEST(queue, closes_if_empty_only_when_it_is)
{
    weir__chain chain = {0};
    weir__queue queue;
    struct item item;

    open_queue(&queue);
    push_all(&queue, &item, 1);
    assert_false(weir__queue_close_if_empty(&queue));
    assert_int_equal(weir__queue_count(&queue), 1);
    assert_int_equal(weir__queue_take(&queue, &chain), 1);
    assert_true(weir__queue_close_if_empty(&queue));
    assert_false(weir__queue_push(&queue, &item.node));
}

TEST(queue, opens_again)
{
    struct item items[2];
    weir__chain chain = {0};
    weir__queue queue;

    open_queue(&queue);
    assert_true(weir__queue_close_if_empty(&queue));
    weir__queue_open(&queue);
    push_all(&queue, items, 2);
    assert_int_equal(weir__queue_take(&queue, &chain), 2);
}

/* Stack, static and heap: the addresses of a process differ in all their bits. */
TEST(queue, packs_any_address_with_any_count)
{
    static struct item on_data;
    struct item on_stack, *on_heap = malloc(sizeof(*on_heap));
    const weir_queue_node *nodes[] = {&on_data.node, &on_stack.node, &on_heap->node};
    const uint64_t counts[] = {1, 2, 63, WEIR__QUEUE_COUNT_MAX};

    assert_non_null(on_heap);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 4; j++) {
            uint64_t head = weir__queue_pack(nodes[i], counts[j]);

            assert_ptr_equal(weir__queue_node(head), nodes[i]);
            assert_int_equal(head & WEIR__QUEUE_COUNT_MAX, counts[j]);
            assert_true(head > WEIR__QUEUE_CLOSED);
        }
    free(on_heap);
}

TEST(queue, holds_more_than_it_can_count)
{
    const int count = (int)WEIR__QUEUE_COUNT_MAX + 3;
    struct item *items = malloc((size_t)count * sizeof(*items));
    weir__chain chain = {0};
    weir__queue queue;

    assert_non_null(items);
    open_queue(&queue);
    for (int i = 0; i < count; i++) {
        items[i].number = i;
        if (!weir__queue_push(&queue, &items[i].node))
            fail();
    }
    assert_int_equal(weir__queue_count(&queue), WEIR__QUEUE_COUNT_MAX);
    assert_int_equal(weir__queue_take(&queue, &chain), count);
    for (int i = 0; i < count; i++)
        if (weir__chain_pop(&chain) != &items[i].node)
            fail_msg("item %d is not where it belongs", i);
    assert_null(weir__chain_pop(&chain));
    free(items);
}

/* ---- several threads ---- */

#define PRODUCERS 4
#define ITEMS_EACH 25000

struct producer {
    weir__thread thread;
    weir__queue *queue;
    struct item *items;
    int pushed; /* pushed before the queue was closed */
    _Atomic bool *go;
    _Atomic int *total;
};

static void produce(void *arg)
{
    struct producer *producer = arg;

    while (!atomic_load(producer->go))
        weir__thread_yield();
    for (int i = 0; i < ITEMS_EACH; i++) {
        producer->items[i].number = i;
        if (!weir__queue_push(producer->queue, &producer->items[i].node))
            break;
        producer->pushed++;
        atomic_fetch_add_explicit(producer->total, 1, memory_order_relaxed);
    }
}

static void start_producers(struct producer *producers, weir__queue *queue, _Atomic bool *go,
                            _Atomic int *total)
{
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){
            .queue = queue,
            .items = malloc(ITEMS_EACH * sizeof(struct item)),
            .go = go,
            .total = total,
        };
        assert_non_null(producers[i].items);
        assert_int_equal(
            weir__thread_start("producer", produce, &producers[i], &producers[i].thread), 0);
    }
    atomic_store(go, true);
}

static void join_producers(struct producer *producers)
{
    for (int i = 0; i < PRODUCERS; i++)
        weir__thread_join(&producers[i].thread);
}

static struct producer *producer_of(struct producer *producers, const struct item *item)
{
    for (int i = 0; i < PRODUCERS; i++)
        if (item >= producers[i].items && item < producers[i].items + ITEMS_EACH)
            return &producers[i];
    return NULL;
}

/* The items of each producer arrive in order and without gaps; `seen` counts them. */
static void check_chain(weir__chain *chain, struct producer *producers, int *seen)
{
    weir_queue_node *node;

    while ((node = weir__chain_pop(chain)) != NULL) {
        struct item *item = WEIR_CONTAINER_OF(node, struct item, node);
        struct producer *producer = producer_of(producers, item);

        if (producer == NULL || item->number != seen[producer - producers]++)
            fail_msg("item %d is out of order", item->number);
    }
}

static void free_items(struct producer *producers)
{
    for (int i = 0; i < PRODUCERS; i++)
        free(producers[i].items);
}

TEST(queue, keeps_the_order_of_each_of_several_producers)
{
    struct producer producers[PRODUCERS];
    int seen[PRODUCERS] = {0}, taken = 0;
    weir__chain chain = {0};
    _Atomic bool go = false;
    _Atomic int total = 0;
    weir__queue queue;

    open_queue(&queue);
    start_producers(producers, &queue, &go, &total);
    while (taken < PRODUCERS * ITEMS_EACH) {
        taken += (int)weir__queue_take(&queue, &chain);
        check_chain(&chain, producers, seen);
    }
    join_producers(producers);
    assert_int_equal(weir__queue_take(&queue, &chain), 0);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(seen[i], ITEMS_EACH);
    free_items(producers);
}

/* A push that succeeded precedes the close, and the closer has its item: none is lost. */
TEST(queue, closed_among_pushes_holds_exactly_those_that_succeeded)
{
    for (int round = 1; round <= 20; round++) {
        struct producer producers[PRODUCERS];
        int seen[PRODUCERS] = {0};
        weir__chain chain = {0};
        _Atomic bool go = false;
        _Atomic int total = 0;
        weir__queue queue;

        open_queue(&queue);
        start_producers(producers, &queue, &go, &total);
        while (atomic_load_explicit(&total, memory_order_relaxed) < round * 1000)
            (void)weir__queue_take(&queue, &chain);
        (void)weir__queue_close(&queue, &chain);
        join_producers(producers);
        check_chain(&chain, producers, seen);
        for (int i = 0; i < PRODUCERS; i++)
            assert_int_equal(seen[i], producers[i].pushed);
        free_items(producers);
    }
}
