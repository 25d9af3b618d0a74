/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocating and freeing blocks on one thread: blocks, limit, trimming, lack of memory.
 */
#include "buffer/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/metric.h>
#include <weir/thread.h>

#include "base/poison.h"
#include "base/turn_hooks.h"
#include "buffer/heaps.h"
#include "os/pages.h"
#include "os/thread.h"
#include "support/buffer/pool.h"
#include "support/child.h"
#include "support/memory.h"
#include "support/test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SECOND weir_seconds(1)

static uint64_t mapped_bytes(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.mapped_bytes;
}

static uint64_t failures(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.failures;
}

/* ---- blocks ---- */

static void check_block(size_t payload)
{
    weir_buf *block = weir__pool_alloc(payload);

    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 64, 0);
    assert_ptr_equal(block->data, (uint8_t *)(block + 1));
    assert_true(block->capacity >= payload);
    assert_int_equal(block->capacity, weir__pool_capacity_for(payload));
    assert_ptr_equal(block->owner, payload <= MIB ? weir__heap_current : NULL);
    assert_true(weir_msg_is(&block->msg, &weir_buf_type));
    assert_int_equal(block->msg.refs, 1);
    assert_int_equal(block->read, 0);
    assert_int_equal(block->write, 0);
    assert_int_equal(block->max, WEIR_BUF_MAX);
    memset(block->data, 0xff, block->capacity);
    weir__pool_free(block);
}

TEST(pool, a_block_is_a_header_with_at_least_the_payload_behind_it)
{
    const size_t payloads[] = {0,       1,           63,         64,         65,
                               255,     256,         257,        320,        321,
                               4 * KIB, 4 * KIB + 1, 100 * KIB,  1000 * KIB, MIB - 1,
                               MIB,     MIB + 1,     MIB + 4096, 5 * MIB,    5 * MIB + 1};

    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++)
        check_block(payloads[i]);
}

TEST(pool, a_header_alone_has_no_capacity)
{
    weir_buf *block = weir__pool_alloc(0);

    assert_int_equal(block->capacity, 0);
    weir__pool_free(block);
}

TEST(pool, alloc_rejects_more_than_the_maximum)
{
    assert_null(weir__pool_alloc(WEIR_BUF_MAX + 1));
    assert_null(weir__pool_alloc(SIZE_MAX));
    assert_true(weir__pool_capacity_for(WEIR_BUF_MAX) <= UINT32_MAX);
}

TEST(pool, the_block_freed_last_is_allocated_next)
{
    weir_buf *blocks[3], *again[3];

    take_blocks(blocks, 3, 1000);
    give_blocks(blocks, 3);
    take_blocks(again, 3, 1000);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(again[i], blocks[2 - i]);
    give_blocks(again, 3);
}

/* For sizes with an entry in the table of the heap and for larger ones. */
TEST(pool, a_block_that_is_allocated_again_is_an_empty_buffer)
{
    const size_t payloads[] = {0, 100, 4 * KIB, 4 * KIB + 1, MIB};

    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        weir_buf *block = weir__pool_alloc(payloads[i]);

        block->read = block->write = block->capacity;
        block->msg.refs = 0;
        block->block = block;
        weir__pool_free(block);
        check_block(payloads[i]);
    }
}

TEST(pool, a_changed_header_is_reset_before_its_block_is_freed)
{
    weir_buf *block = weir__pool_alloc(100), *again;
    uint32_t flags = block->msg.flags;
    uint8_t memory[1];

    block->msg.flags |= 0xff;
    block->data = memory;
    block->capacity = block->max = 1;
    weir__pool_reset(block, weir__class_of(100));
    weir__pool_free(block);
    again = weir__pool_alloc(100);
    assert_ptr_equal(again, block);
    assert_int_equal(again->msg.flags, flags);
    weir__pool_free(again);
    check_block(100);
}

TEST(pool, blocks_do_not_overlap)
{
    enum { COUNT = 3000 };
    static weir_buf *blocks[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = weir__pool_alloc(i * 7919 % 5000);
        blocks[i]->max = (uint32_t)i;
        memset(blocks[i]->data, (int)i, blocks[i]->capacity);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(blocks[i]->max, i);
        for (size_t k = 0; k < blocks[i]->capacity; k++)
            assert_int_equal(blocks[i]->data[k], (uint8_t)i);
    }
    give_blocks(blocks, COUNT);
}

TEST(pool, a_huge_block_is_mapped_and_unmapped_immediately)
{
    uint64_t before = mapped_bytes();
    weir_buf *block = weir__pool_alloc(3 * MIB);
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    assert_int_equal(stats.huge.in_use, 1);
    assert_int_equal(stats.huge.mapped_bytes, weir__pages_round(3 * MIB + 128));
    assert_true(stats.huge.peak_bytes >= stats.huge.mapped_bytes);
    assert_int_equal(stats.mapped_bytes, before + stats.huge.mapped_bytes);
    weir__pool_free(block);
    assert_int_equal(mapped_bytes(), before);
}

/* ---- the limit ---- */

TEST(pool, rejects_a_limit_below_off)
{
    assert_int_equal(weir_pool_set_limit(WEIR_OFF - 1), -EINVAL);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
    assert_int_equal(weir_pool_set_limit(0), 0);
}

TEST(pool, the_limit_is_reached_to_the_byte)
{
    size_t slab = weir__slab_bytes(weir__class_of(100)), huge = weir__pages_round(2 * MIB + 128);
    weir_buf *block;

    assert_int_equal(weir_pool_set_limit((int64_t)slab - 1), 0);
    assert_null(weir__pool_alloc(100));
    assert_int_equal(weir_pool_set_limit((int64_t)slab), 0);
    block = weir__pool_alloc(100);
    assert_non_null(block);
    weir__pool_free(block);
    assert_int_equal(weir_pool_trim(), slab);

    assert_int_equal(weir_pool_set_limit((int64_t)huge - 1), 0);
    assert_null(weir__pool_alloc(2 * MIB));
    assert_int_equal(weir_pool_set_limit((int64_t)huge), 0);
    block = weir__pool_alloc(2 * MIB);
    assert_non_null(block);
    weir__pool_free(block);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
}

TEST(pool, beyond_the_limit_there_is_no_memory_and_it_is_counted)
{
    weir_buf *blocks[64];
    uint64_t failures_before = failures();
    size_t count;

    assert_int_equal(weir_pool_set_limit((int64_t)(2 * MIB)), 0);
    count = take_blocks(blocks, 64, 64 * KIB);
    assert_true(count >= 16 && count < 32);
    assert_int_equal(failures(), failures_before + 1);
    assert_true(mapped_bytes() <= 2 * MIB);

    weir__pool_free(blocks[--count]);
    blocks[count] = weir__pool_alloc(64 * KIB);
    assert_non_null(blocks[count]);
    assert_null(weir__pool_alloc(2 * MIB));
    assert_int_equal(failures(), failures_before + 2);
    give_blocks(blocks, count + 1);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
}

TEST(pool, memory_that_is_cached_makes_room_within_the_limit)
{
    weir_buf *blocks[12];

    assert_int_equal(weir_pool_set_limit((int64_t)(2 * MIB)), 0);
    assert_int_equal(take_blocks(blocks, 12, 64 * KIB), 12);
    give_blocks(blocks, 12);
    assert_int_equal(take_blocks(blocks, 1, 3 * MIB / 2), 1);
    give_blocks(blocks, 1);
    assert_int_equal(take_blocks(blocks, 12, 60 * KIB), 12);
    give_blocks(blocks, 12);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
}

TEST(pool, freed_memory_is_usable_immediately_after_a_failure)
{
    weir_buf *blocks[64];
    size_t count;

    assert_int_equal(weir_pool_set_limit((int64_t)(2 * MIB)), 0);
    count = take_blocks(blocks, 64, 64 * KIB);
    assert_true(count < 64);
    give_blocks(blocks, count);
    assert_int_equal(take_blocks(blocks, 1, 3 * MIB / 2), 1);
    give_blocks(blocks, 1);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
}

TEST(pool, the_peak_stays_when_memory_was_unmapped)
{
    weir_pool_stats stats;
    weir_buf *block = weir__pool_alloc(40 * MIB);

    weir__pool_free(block);
    weir_pool_read_stats(&stats);
    assert_true(stats.peak_bytes >= 40 * MIB);
    assert_true(stats.mapped_bytes < 40 * MIB);
    assert_true(stats.huge.peak_bytes >= 40 * MIB);
    assert_int_equal(stats.huge.mapped_bytes, 0);
}

/* ---- trimming ---- */

TEST(pool, trim_unmaps_unused_slabs)
{
    enum { COUNT = 500 };
    weir_buf *blocks[COUNT];
    uint64_t mapped;

    take_blocks(blocks, COUNT, 4000);
    mapped = mapped_bytes();
    assert_int_equal(weir_pool_trim(), 0);
    give_blocks(blocks, COUNT);
    assert_int_equal(mapped_bytes(), mapped);
    assert_int_equal(weir_pool_trim(), mapped);
    assert_int_equal(mapped_bytes(), 0);
    assert_int_equal(weir_pool_trim(), 0);
}

TEST(pool, one_block_in_use_keeps_its_slab_and_no_other)
{
    enum { COUNT = 500 };
    weir_buf *blocks[COUNT];

    take_blocks(blocks, COUNT, 4000);
    give_blocks(blocks, COUNT / 2);
    give_blocks(blocks + COUNT / 2 + 1, COUNT - COUNT / 2 - 1);
    (void)weir_pool_trim();
    assert_int_equal(mapped_bytes(), weir__slab_of(blocks[COUNT / 2])->bytes);
    assert_int_equal(count_blocks().in_use, 1);

    take_blocks(blocks, COUNT / 2, 4000); /* its neighbours are unchanged */
    give_blocks(blocks, COUNT / 2 + 1);
}

TEST(pool, a_sleeping_thread_with_little_memory_keeps_it)
{
    weir_buf *blocks[8];

    take_blocks(blocks, 8, 4000);
    give_blocks(blocks, 8);
    assert_true(weir__turn_hooks_run(true, SECOND) == WEIR_NEVER);
    assert_true(weir__turn_hooks_run(true, 100 * SECOND) == WEIR_NEVER);
    assert_int_equal(count_blocks().cached, 8);
}

static uint64_t slabs_of(size_t payload)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.classes[weir__class_of(payload)].slabs;
}

TEST(pool, a_sleeping_thread_with_much_memory_unmaps_it_gradually)
{
    enum { COUNT = 512 };
    weir_buf *blocks[COUNT];
    uint64_t idle;
    int64_t now_ns = SECOND;

    take_blocks(blocks, COUNT, 64 * KIB);
    give_blocks(blocks + 1, COUNT - 2); /* the first and the last slab must stay */
    idle = slabs_of(64 * KIB) - 2;
    assert_int_equal(weir__turn_hooks_run(true, now_ns), now_ns + SECOND);
    assert_int_equal(weir__turn_hooks_run(true, now_ns + SECOND - 1), now_ns + SECOND);

    now_ns += SECOND; /* these were needed a second ago */
    assert_int_equal(weir__turn_hooks_run(true, now_ns), now_ns + SECOND);
    assert_int_equal(slabs_of(64 * KIB), idle + 2);
    for (; idle > 1; idle /= 2) {
        now_ns += SECOND;
        assert_int_equal(weir__turn_hooks_run(true, now_ns), now_ns + SECOND);
        assert_int_equal(slabs_of(64 * KIB), idle / 2 + 2);
    }
    now_ns += SECOND; /* the rest is in use: it backs off */
    assert_int_equal(weir__turn_hooks_run(true, now_ns), now_ns + 2 * SECOND);
    assert_int_equal(weir__turn_hooks_run(true, now_ns + 2 * SECOND), now_ns + 6 * SECOND);
    assert_int_equal(slabs_of(64 * KIB), 2);

    weir__pool_free(blocks[0]);
    weir__pool_free(blocks[COUNT - 1]);
    (void)weir_pool_trim();
    assert_true(weir__turn_hooks_run(true, now_ns + SECOND) == WEIR_NEVER);
}

static void give_all(void *arg)
{
    weir_buf **blocks = arg;

    for (size_t i = 0; blocks[i] != NULL; i++)
        weir__pool_free(blocks[i]);
}

TEST(pool, blocks_returned_to_a_sleeping_thread_are_unmapped_too)
{
    enum { COUNT = 64 };
    weir_buf *blocks[COUNT + 1] = {NULL};
    int64_t now_ns = SECOND, next_ns = SECOND;
    weir__thread other;

    take_blocks(blocks, COUNT, 64 * KIB);
    for (int i = 0; i < 20; i++) {
        now_ns = next_ns;
        next_ns = weir__turn_hooks_run(true, now_ns);
    }
    assert_int_equal(next_ns, now_ns + 64 * SECOND);
    assert_int_equal(weir__thread_start("other", give_all, blocks, &other), 0);
    weir__thread_join(&other);
    for (int i = 0; i < 20 && now_ns < WEIR_NEVER; i++)
        now_ns = weir__turn_hooks_run(true, now_ns + 64 * SECOND);
    assert_true(now_ns == WEIR_NEVER);
    assert_true(slabs_of(64 * KIB) <= 1); /* a MiB is not much */
    (void)weir_pool_trim();
}

TEST(pool, classes_that_need_refills_are_kept)
{
    enum { COUNT = 64 };
    weir_buf *blocks[COUNT + 64];
    uint64_t before;

    for (int64_t now_ns = SECOND; now_ns < 10 * SECOND; now_ns += SECOND) {
        take_blocks(blocks, COUNT, 64 * KIB);
        take_blocks(blocks + COUNT, (size_t)(now_ns / SECOND), 64 * KIB); /* a few more each time */
        before = mapped_bytes();
        give_blocks(blocks, COUNT + (size_t)(now_ns / SECOND));
        assert_int_equal(weir__turn_hooks_run(true, now_ns), now_ns + SECOND);
        assert_int_equal(mapped_bytes(), before);
    }
}

TEST(pool, a_turn_that_goes_on_keeps_what_is_cached)
{
    enum { COUNT = 64 };
    weir_buf *blocks[COUNT];
    uint64_t before;

    take_blocks(blocks, COUNT, 64 * KIB);
    give_blocks(blocks, COUNT);
    before = mapped_bytes();
    for (int64_t now_ns = SECOND; now_ns < 10 * SECOND; now_ns += SECOND)
        assert_true(weir__turn_hooks_run(false, now_ns) == WEIR_NEVER);
    assert_int_equal(mapped_bytes(), before);
}

TEST(pool, tolerates_a_clock_that_goes_backwards_or_stands_at_never)
{
    enum { COUNT = 64 };
    weir_buf *blocks[COUNT];

    take_blocks(blocks, COUNT, 64 * KIB);
    give_blocks(blocks, COUNT);
    assert_int_equal(weir__turn_hooks_run(true, 1000 * SECOND), 1001 * SECOND);
    assert_int_equal(weir__turn_hooks_run(true, SECOND), 2 * SECOND);
    assert_true(weir__turn_hooks_run(true, WEIR_NEVER - 1) > WEIR_NEVER - 1);
}

/* ---- no memory ---- */

static int take_one_of_each(void)
{
    const size_t payloads[] = {0, 100, 5000, MIB, 2 * MIB};
    weir_buf *blocks[5];
    size_t count = 0;

    while (count < 5 && take_blocks(blocks + count, 1, payloads[count]) == 1)
        count++;
    give_blocks(blocks, count);
    return count == 5 ? 0 : -ENOMEM;
}

static void end_thread_heap(void)
{
    weir_locals_remove_all();
    assert_null(weir__heap_current);
}

TEST(pool, each_allocation_may_fail)
{
    for (unsigned n = 1;; n++) {
        int err;

        end_thread_heap(); /* starts without memory */
        test_memory_fail_at(n);
        err = take_one_of_each();
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        test_memory_fail_at(0);
        assert_int_equal(count_blocks().in_use, 0);
        assert_int_equal(take_one_of_each(), 0);
    }
    test_memory_fail_at(0);
}

TEST(pool, cached_memory_is_unmapped_before_an_allocation_fails)
{
    weir_buf *blocks[8];
    uint64_t failures_before = failures();

    take_blocks(blocks, 8, 64 * KIB);
    give_blocks(blocks, 8);
    test_memory_fail_at(1);
    assert_null(weir__pool_alloc(4 * MIB)); /* the test refuses twice */
    assert_int_equal(mapped_bytes(), 0);
    assert_int_equal(failures(), failures_before + 1);
}

/* ---- where the memory is ---- */

TEST(pool, everything_that_is_mapped_is_accounted_for)
{
    enum { COUNT = 300 };
    weir_buf *blocks[COUNT], *huge = weir__pool_alloc(2 * MIB);
    weir_pool_stats stats;

    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = weir__pool_alloc(i * i);
    give_blocks(blocks, COUNT / 3);
    weir_pool_read_stats(&stats);
    assert_int_equal(stats.mapped_bytes, stats.in_use_bytes + stats.cached_bytes +
                                             stats.in_transit_bytes + stats.spare_bytes);
    assert_int_equal(stats.mapped_bytes, weir__pages_mapped());
    assert_int_equal(stats.caches, 1);
    assert_int_equal(stats.orphans, 0);
    assert_int_equal(count_blocks().in_use, COUNT - COUNT / 3);
    assert_int_equal(count_blocks().cached, COUNT / 3);
    give_blocks(blocks + COUNT / 3, COUNT - COUNT / 3);
    weir__pool_free(huge);
}

TEST(pool, class_stats_count_their_blocks)
{
    weir_buf *blocks[3];
    weir_pool_stats stats;
    const weir_pool_block_stats *count;

    take_blocks(blocks, 3, 640);
    weir__pool_free(blocks[2]);
    weir_pool_read_stats(&stats);
    count = &stats.classes[weir__class_of(640)];
    assert_int_equal(count->size, 640);
    assert_int_equal(count->in_use, 2);
    assert_int_equal(count->cached, 1);
    assert_int_equal(count->in_transit, 0);
    assert_int_equal(count->slabs, 1);
    assert_int_equal(count->mapped_bytes, weir__slab_bytes(weir__class_of(640)));
    give_blocks(blocks, 2);
}

static weir_pool_cache_stats own_cache(void)
{
    weir_pool_cache_stats cache;

    assert_int_equal(weir_pool_read_cache_stats(&cache, 1), 1);
    return cache;
}

TEST(pool, a_class_and_a_cache_have_a_peak_that_stays)
{
    const size_t payload = 448 * KIB; /* not used by another test, because peaks are never reset */
    uint64_t slab = weir__slab_bytes(weir__class_of(payload)), in_cache;
    weir_buf *blocks[6];
    weir_pool_stats stats;

    end_thread_heap();
    take_blocks(blocks, 6, payload);
    in_cache = own_cache().blocks.peak_bytes;
    assert_int_equal(in_cache, slabs_of(payload) * slab);
    give_blocks(blocks, 6);
    (void)weir_pool_trim();
    take_blocks(blocks, 1, payload);
    weir_pool_read_stats(&stats);
    assert_int_equal(stats.classes[weir__class_of(payload)].peak_bytes, in_cache);
    assert_int_equal(stats.classes[weir__class_of(payload)].mapped_bytes, slab);
    assert_int_equal(own_cache().blocks.peak_bytes, in_cache);
    assert_int_equal(own_cache().blocks.mapped_bytes, slab);
    give_blocks(blocks, 1);
}

TEST(pool, a_failure_is_counted_for_the_size_and_the_cache)
{
    unsigned asked = weir__class_of(64 * KIB);
    weir_pool_stats before, after;
    weir_buf *block;

    end_thread_heap();
    block = weir__pool_alloc(100);
    weir_pool_read_stats(&before);
    assert_int_equal(weir_pool_set_limit((int64_t)before.mapped_bytes), 0);
    assert_null(weir__pool_alloc(64 * KIB));
    assert_null(weir__pool_alloc(64 * KIB));
    assert_null(weir__pool_alloc(2 * MIB));
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
    weir_pool_read_stats(&after);
    assert_int_equal(after.failures, before.failures + 3);
    assert_int_equal(after.classes[asked].failures, before.classes[asked].failures + 2);
    assert_int_equal(after.classes[asked + 1].failures, before.classes[asked + 1].failures);
    assert_int_equal(after.huge.failures, before.huge.failures + 1);
    assert_int_equal(own_cache().blocks.failures, 3);
    weir__pool_free(block);
}

TEST(pool, a_failure_without_a_cache_is_counted_for_the_size_alone)
{
    weir_pool_stats before, after;

    end_thread_heap();
    weir_pool_read_stats(&before);
    test_memory_fail_at(1);
    assert_null(weir__pool_alloc(100));
    test_memory_fail_at(0);
    weir_pool_read_stats(&after);
    assert_int_equal(after.classes[2].failures, before.classes[2].failures + 1);
    assert_int_equal(weir_pool_read_cache_stats(NULL, 0), 0);
}

TEST(pool, describes_itself_in_a_table)
{
    weir_buf *blocks[2], *huge = weir__pool_alloc(2 * MIB);
    char text[8192];
    size_t length;

    take_blocks(blocks, 2, 600);
    weir__pool_free(blocks[1]);
    length = weir_pool_describe(text, sizeof(text));
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "limit none"));
    assert_non_null(strstr(text, "                   640 B         1         1         0         1"
                                 "      64 KiB "));
    assert_non_null(
        strstr(text, "                    huge         1         0         0         0"));
    assert_null(strstr(text, " 896 KiB ")); /* not used by any test */
    weir__pool_free(blocks[0]);
    weir__pool_free(huge);
}

TEST(pool, a_description_is_truncated_and_returns_its_length)
{
    char text[200], whole[8192];
    size_t length = weir_pool_describe(whole, sizeof(whole));

    assert_true(length > sizeof(text));
    assert_int_equal(weir_pool_describe(text, sizeof(text)), length);
    assert_int_equal(strlen(text), sizeof(text) - 1);
    assert_memory_equal(text, whole, sizeof(text) - 1);
    assert_int_equal(weir_pool_describe(NULL, 0), length);
}

TEST(pool, its_metrics_are_registered_while_there_is_a_cache)
{
    weir_buf *block = weir__pool_alloc(2000);
    weir_metric_value value;
    char name[WEIR_METRIC_NAME_SIZE];

    assert_int_equal(weir_metric_read("pool.mapped_bytes", &value), 0);
    assert_int_equal(value.value, mapped_bytes());
    (void)snprintf(name, sizeof(name), "pool.cache.out_bytes{cache=\"%llu\"}",
                   (unsigned long long)weir__heap_current->registry.number);
    assert_int_equal(weir_metric_read(name, &value), 0);
    assert_int_equal(value.value, 64 + 2048);
    weir__pool_free(block);
    assert_int_equal(weir_metric_read(name, &value), 0);
    assert_int_equal(value.value, 0);
    end_thread_heap();
    assert_int_equal(weir_metric_read(name, &value), -ENOENT);
    assert_int_equal(weir_metric_read("pool.mapped_bytes", &value), -ENOENT);
}

TEST(pool, a_name_that_is_taken_costs_a_metric_but_no_buffer)
{
    weir_metric_value value;
    weir_metric *taken;
    weir_buf *block;

    end_thread_heap();
    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, "pool.mapped_bytes", &taken), 0);
    block = weir__pool_alloc(2000);
    assert_non_null(block);
    assert_int_equal(weir_metric_read("pool.mapped_bytes", &value), 0);
    assert_int_equal(value.value, 0);
    assert_int_equal(weir_metric_read("pool.peak_bytes", &value), 0);
    weir__pool_free(block);
    end_thread_heap();
    assert_int_equal(weir_metric_read("pool.mapped_bytes", &value), 0);
    weir_metric_release(taken);
}

/* ---- use after release ---- */

#ifdef WEIR__ASAN
static volatile uint8_t seen;

static void use_while_taken(void)
{
    weir_buf *block = weir__pool_alloc(100);

    block->data[127] = 1;
    seen = block->data[127];
    weir__pool_free(block);
}

static void read_payload_after_give(void)
{
    weir_buf *block = weir__pool_alloc(100);
    const uint8_t *data = block->data;

    weir__pool_free(block);
    seen = data[99];
}

static void write_header_after_give(void)
{
    weir_buf *block = weir__pool_alloc(100);

    weir__pool_free(block);
    block->read = 1;
}

static void read_huge_after_give(void)
{
    weir_buf *block = weir__pool_alloc(2 * MIB);
    const uint8_t *data = block->data;

    weir__pool_free(block);
    seen = data[0];
}

static void write_beyond_the_end(void)
{
    weir_buf *blocks[2];

    take_blocks(blocks, 2, 100);
    blocks[0]->data[128] = 1;
}

static void give_twice(void)
{
    weir_buf *block = weir__pool_alloc(100);

    weir__pool_free(block);
    weir__pool_free(block);
}

TEST(pool, asan_detects_use_of_free_blocks)
{
    assert_true(child_survives(use_while_taken));
    assert_false(child_survives(read_payload_after_give));
    assert_false(child_survives(write_header_after_give));
    assert_false(child_survives(read_huge_after_give));
    assert_false(child_survives(write_beyond_the_end));
    assert_false(child_survives(give_twice));
}
#endif
