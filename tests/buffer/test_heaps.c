/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks released on another thread, and heaps of ended threads.
 */
#include "buffer/heaps.h"

#include <stdio.h>
#include <string.h>

#include <weir/thread.h>

#include "base/turn_hooks.h"
#include "support/buffer/buf_relay.h"
#include "support/buffer/pool.h"
#include "support/memory.h"
#include "support/test.h"

#define KIB ((size_t)1 << 10)

static void assert_blocks(uint64_t in_use, uint64_t cached, uint64_t in_transit)
{
    struct blocks blocks = count_blocks();

    assert_int_equal(blocks.in_use, in_use);
    assert_int_equal(blocks.cached, cached);
    assert_int_equal(blocks.in_transit, in_transit);
}

static uint64_t orphan_count(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.orphans;
}

/* ---- the way home ---- */

/* Blocks of the main thread's heap that another thread frees, and the counts that this thread saw.
 */
struct delivery {
    weir_buf *blocks[100];
    size_t count;
    weir__heap *owner;
    uint32_t delivered;   /* blocks returned before the thread ended */
    uint32_t after_flush; /* and after its turn */
    weir__heap *heap;     /* of the thread itself, at its end */
};

static uint32_t delivered_to(const weir__heap *heap)
{
    return atomic_load_explicit(&heap->remote.count, memory_order_relaxed);
}

static void deliver(void *arg)
{
    struct delivery *delivery = arg;

    give_blocks(delivery->blocks, delivery->count);
    delivery->delivered = delivered_to(delivery->owner);
    (void)weir__turn_hooks_run(false, 0);
    delivery->after_flush = delivered_to(delivery->owner);
    delivery->heap = weir__heap_current;
}

static struct delivery deliver_from_thread(size_t count, size_t payload)
{
    struct delivery delivery = {.count = count};

    take_blocks(delivery.blocks, count, payload);
    delivery.owner = weir__heap_current;
    run_on_thread(deliver, &delivery);
    return delivery;
}

TEST(heaps, blocks_freed_by_another_thread_are_returned_and_counted)
{
    weir_buf *block;

    (void)deliver_from_thread(100, 1000);
    assert_blocks(0, 0, 100);
    block = weir__pool_alloc(1000);
    assert_blocks(1, 99, 0);
    weir__pool_free(block);
    assert_blocks(0, 100, 0);
}

TEST(heaps, blocks_are_returned_to_their_class)
{
    weir_buf *blocks[2];
    struct delivery delivery = {.count = 2};

    take_blocks(delivery.blocks, 1, 100);
    take_blocks(delivery.blocks + 1, 1, 10000);
    delivery.owner = weir__heap_current;
    run_on_thread(deliver, &delivery);
    take_blocks(blocks, 1, 100);
    take_blocks(blocks + 1, 1, 10000);
    assert_ptr_equal(blocks[0], delivery.blocks[0]);
    assert_ptr_equal(blocks[1], delivery.blocks[1]);
    give_blocks(blocks, 2);
}

TEST(heaps, an_outbox_is_delivered_when_it_holds_32_blocks)
{
    struct delivery delivery = deliver_from_thread(31, 100);

    assert_int_equal(delivery.delivered, 0);
    assert_int_equal(delivery.after_flush, 31);
    (void)weir_pool_trim();
    delivery = deliver_from_thread(33, 100);
    assert_int_equal(delivery.delivered, 32);
    assert_int_equal(delivery.after_flush, 33);
}

TEST(heaps, an_outbox_is_delivered_when_it_holds_256_kib)
{
    struct delivery delivery = deliver_from_thread(5, 64 * KIB);

    assert_int_equal(delivery.delivered, 4);
}

static void give_and_trim(void *arg)
{
    struct delivery *delivery = arg;

    give_blocks(delivery->blocks, delivery->count);
    (void)weir_pool_trim();
    delivery->delivered = delivered_to(delivery->owner);
}

TEST(heaps, trim_delivers_what_is_in_the_outboxes)
{
    struct delivery delivery = {.count = 3};

    take_blocks(delivery.blocks, 3, 100);
    delivery.owner = weir__heap_current;
    run_on_thread(give_and_trim, &delivery);
    assert_int_equal(delivery.delivered, 3);
}

#define OWNERS (3 * WEIR__OUTBOX_COUNT) /* some must share an outbox */

struct owners {
    weir_buf *blocks[OWNERS];
    weir__heap *heaps[OWNERS];
    unsigned count;
};

/* Concurrent threads, each with a heap; when they end, a block of each is still allocated. */
static void take_and_start_the_next(void *arg)
{
    struct owners *owners = arg;

    owners->blocks[owners->count] = weir__pool_alloc(100);
    owners->heaps[owners->count++] = weir__heap_current;
    if (owners->count < OWNERS)
        run_on_thread(take_and_start_the_next, owners);
}

TEST(heaps, many_owners_all_get_their_blocks)
{
    struct owners owners = {.count = 0};

    run_on_thread(take_and_start_the_next, &owners);
    assert_blocks(OWNERS, 0, 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = round; i < OWNERS; i += 2)
            weir__pool_free(owners.blocks[i]);
    assert_blocks(0, 1, OWNERS - 1); /* this thread has adopted one of the heaps */
    (void)weir__turn_hooks_run(false, 0);
    for (unsigned i = 0; i < OWNERS; i++)
        if (owners.heaps[i] != weir__heap_current)
            assert_int_equal(delivered_to(owners.heaps[i]), 1);
}

static void give_without_memory(void *arg)
{
    struct delivery *delivery = arg;

    test_memory_fail_at(1);
    weir__pool_free(delivery->blocks[0]);
    test_memory_fail_at(0);
    delivery->heap = weir__heap_current;
    delivery->delivered = delivered_to(delivery->owner);
}

TEST(heaps, a_thread_without_memory_for_a_heap_can_free)
{
    struct delivery delivery = {.count = 1};

    take_blocks(delivery.blocks, 1, 100);
    delivery.owner = weir__heap_current;
    run_on_thread(give_without_memory, &delivery);
    assert_null(delivery.heap);
    assert_int_equal(delivery.delivered, 1);
    assert_blocks(0, 0, 1);
    assert_ptr_equal(weir__pool_alloc(100), delivery.blocks[0]);
    weir__pool_free(delivery.blocks[0]);
    assert_blocks(0, 1, 0);
}

/* ---- heaps without a thread ---- */

static void take_some(void *arg)
{
    struct delivery *delivery = arg;

    take_blocks(delivery->blocks, delivery->count, 1000);
    delivery->heap = weir__heap_current;
}

TEST(heaps, a_thread_without_allocated_blocks_leaves_no_memory)
{
    (void)deliver_from_thread(10, 100);
    assert_int_equal(orphan_count(), 0);
}

TEST(heaps, a_heap_with_allocated_blocks_is_orphaned_and_adopted)
{
    struct delivery first = {.count = 2}, second = {.count = 1};

    run_on_thread(take_some, &first);
    assert_int_equal(orphan_count(), 1);
    assert_blocks(2, 0, 0);

    run_on_thread(take_some, &second);
    assert_ptr_equal(second.heap, first.heap);
    assert_int_equal(orphan_count(), 1);
    assert_blocks(3, 0, 0);

    weir__pool_free(first.blocks[0]); /* now the heap and its blocks belong to this thread */
    assert_ptr_equal(weir__heap_current, first.heap);
    assert_int_equal(orphan_count(), 0);
    assert_blocks(2, 1, 0);
    give_blocks(first.blocks + 1, 1);
    give_blocks(second.blocks, 1);
    assert_blocks(0, 3, 0);
}

TEST(heaps, an_orphans_memory_is_reclaimed_by_trim)
{
    struct delivery delivery = {.count = 3};
    weir_buf *own = weir__pool_alloc(100);
    weir_pool_stats stats;

    run_on_thread(take_some, &delivery);
    give_blocks(delivery.blocks, 3);
    assert_blocks(1, 0, 3);
    assert_int_equal(orphan_count(), 1);
    assert_int_equal(weir_pool_trim(), weir__slab_bytes(weir__class_of(1000)));
    assert_int_equal(orphan_count(), 0);
    assert_blocks(1, 0, 0);
    weir_pool_read_stats(&stats);
    assert_int_equal(stats.caches, 1);
    weir__pool_free(own);
}

TEST(heaps, an_orphans_memory_is_reclaimed_by_an_executor_that_sleeps)
{
    struct delivery delivery = {.count = 3};
    weir_buf *own = weir__pool_alloc(100);
    int64_t now_ns = weir_seconds(1);

    run_on_thread(take_some, &delivery);
    give_blocks(delivery.blocks, 3);
    assert_int_equal(weir__turn_hooks_run(true, now_ns), now_ns + weir_seconds(1));
    assert_int_equal(orphan_count(), 1);
    assert_true(weir__turn_hooks_run(true, now_ns + weir_seconds(1)) == WEIR_NEVER);
    assert_int_equal(orphan_count(), 0);
    weir__pool_free(own);
}

static weir_buf *kept;

static void give_kept(void *arg)
{
    (void)arg;
    weir__pool_free(kept);
}

static void keep_until_exit(void *arg)
{
    int *err = arg;

    *err = weir_thread_on_exit(give_kept, NULL); /* runs after the exit hook of the heap */
    kept = weir__pool_alloc(100);
}

TEST(heaps, a_block_freed_while_the_thread_ends_is_not_lost)
{
    int err = -1;

    run_on_thread(keep_until_exit, &err);
    assert_int_equal(err, 0);
    assert_int_equal(orphan_count(), 0);
    assert_blocks(0, 0, 0);
}

TEST(heaps, cache_stats_name_their_thread)
{
    struct delivery delivery = {.count = 2};
    weir_buf *own = weir__pool_alloc(100);
    char text[8192], expected[80];

    run_on_thread(take_some, &delivery);
    weir__pool_free(delivery.blocks[0]);
    (void)weir_pool_describe(text, sizeof(text));
    assert_non_null(strstr(text, "                  orphan         1         0         1         1"
                                 "      64 KiB      64 KiB         0\n"));
    (void)snprintf(expected, sizeof(expected), " %d         1         0         0         1",
                   (int)weir__thread_id());
    assert_non_null(strstr(text, expected));
    weir__pool_free(delivery.blocks[1]);
    weir__pool_free(own);
}

TEST(heaps, caches_are_read_one_by_one)
{
    struct delivery delivery = {.count = 2};
    weir_buf *own = weir__pool_alloc(100);
    weir_pool_cache_stats caches[3] = {{0}};
    const weir_pool_cache_stats *orphan, *mine;

    run_on_thread(take_some, &delivery);
    weir__pool_free(delivery.blocks[0]);
    assert_int_equal(weir_pool_read_cache_stats(caches, 1), 2);
    assert_int_equal(caches[1].number, 0); /* was not written */
    assert_int_equal(weir_pool_read_cache_stats(caches, 3), 2);
    orphan = caches[0].thread_id == 0 ? &caches[0] : &caches[1];
    mine = orphan == &caches[0] ? &caches[1] : &caches[0];

    assert_int_equal(orphan->thread_id, 0);
    assert_string_equal(orphan->thread_name, "test");
    assert_int_equal(orphan->blocks.in_use, 1);
    assert_int_equal(orphan->blocks.in_transit, 1);
    assert_int_equal(orphan->blocks.mapped_bytes, weir__slab_bytes(weir__class_of(1000)));
    assert_int_equal(mine->thread_id, weir__thread_id());
    assert_int_equal(mine->number, weir__heap_current->registry.number);
    assert_int_equal(mine->blocks.in_use, 1);
    assert_int_equal(mine->blocks.slabs, 1);
    assert_int_equal(mine->blocks.failures, 0);
    weir__pool_free(delivery.blocks[1]);
    weir__pool_free(own);
}

static void give_all(void *arg)
{
    struct delivery *delivery = arg;

    give_blocks(delivery->blocks, delivery->count);
}

TEST(heaps, returned_blocks_are_usable_immediately_after_a_failure)
{
    struct delivery delivery;
    weir_buf *large;

    assert_int_equal(weir_pool_set_limit(2 << 20), 0);
    delivery.count = take_blocks(delivery.blocks, 100, 64 << 10);
    assert_true(delivery.count < 100);
    run_on_thread(give_all, &delivery);
    large = weir__pool_alloc(3 << 19);
    assert_non_null(large);
    weir__pool_free(large);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
}

/* ---- asking others ---- */

static void ask_for_trim(void *arg)
{
    (void)arg;
    (void)weir_pool_trim();
}

TEST(heaps, other_threads_trim_when_their_turn_ends)
{
    weir_buf *block = weir__pool_alloc(1000);

    weir__pool_free(block);
    (void)weir__turn_hooks_run(false, 0);
    assert_blocks(0, 1, 0);
    run_on_thread(ask_for_trim, NULL);
    assert_blocks(0, 1, 0);
    (void)weir__turn_hooks_run(false, 0);
    assert_blocks(0, 0, 0);
}

/* ---- all at once ---- */

TEST(heaps, four_threads_pass_buffers_and_all_memory_is_returned)
{
    struct relay relay = {.seed = 7, .buffers = 20000};
    const char *fault = relay_run(&relay);

    if (fault != NULL)
        fail_msg("%s", fault);
    assert_int_equal(relay.made, relay.released);
    assert_true(relay.passed > relay.made);
}
