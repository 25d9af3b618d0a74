/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts in a shard, in the shared counters, and across the closing of a shard.
 */
#include "base/sharded_counters.h"

#include <stdatomic.h>

#include "os/thread.h"
#include "support/test.h"

#define LAST (WEIR__SHARD_COUNTERS - 1)

TEST(shard, is_part_of_the_sum)
{
    uint64_t before = weir__counter_shard_sum(3), other = weir__counter_shard_sum(4);
    weir__counter_shard one = {0}, two = {0};

    weir__counter_shard_open(&one);
    weir__counter_shard_open(&two);
    weir__counter_shard_add(&one, 3, 5);
    weir__counter_add(one.counters[3], 2);
    weir__counter_shard_add(&two, 3, 10);
    weir__counter_shard_add(NULL, 3, 100);
    assert_int_equal(weir__counter_shard_sum(3) - before, 117);
    assert_int_equal(weir__counter_shard_sum(4) - other, 0);
    weir__counter_shard_close(&one);
    weir__counter_shard_close(&two);
}

TEST(shard, adds_its_counts_to_the_shared_ones_on_close)
{
    uint64_t first = weir__counter_shard_sum(0), last = weir__counter_shard_sum(LAST);
    weir__counter_shard shard = {0};

    weir__counter_shard_open(&shard);
    weir__counter_shard_add(&shard, 0, 7);
    weir__counter_shard_add(&shard, LAST, 8);
    weir__counter_shard_close(&shard);
    assert_int_equal(weir__counter_shard_sum(0) - first, 7);
    assert_int_equal(weir__counter_shard_sum(LAST) - last, 8);
}

/* ---- readers beside writers that come and go ---- */

enum { WRITERS = 3, ACCOUNTS = 200, ADDITIONS = 50, TAKEN = 10, GIVEN = 11 };

static _Atomic bool is_over;
static _Atomic unsigned mistakes;

/* Each addition to TAKEN follows one to GIVEN, in another shard or in the shared counters. */
static void write_accounts(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        weir__counter_shard shard = {0};

        weir__counter_shard_open(&shard);
        for (unsigned k = 0; k < ADDITIONS; k++) {
            weir__counter_shard_add(k % 2 == 0 ? &shard : NULL, GIVEN, 1);
            weir__counter_shard_add(k % 3 == 0 ? &shard : NULL, TAKEN, 1);
        }
        weir__counter_shard_close(&shard);
    }
}

static void read_sums(void *arg)
{
    uint64_t last = 0, taken, given;

    (void)arg;
    while (!atomic_load(&is_over)) {
        taken = weir__counter_shard_sum(TAKEN);
        given = weir__counter_shard_sum(GIVEN);
        if (taken < last || given < taken)
            atomic_fetch_add(&mistakes, 1);
        last = taken;
    }
}

TEST(shard, sums_never_decrease_and_respect_release_order)
{
    weir__thread writers[WRITERS], reader;

    assert_int_equal(weir__thread_start("reader", read_sums, NULL, &reader), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(weir__thread_start("writer", write_accounts, NULL, &writers[i]), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        weir__thread_join(&writers[i]);
    atomic_store(&is_over, true);
    weir__thread_join(&reader);
    assert_int_equal(atomic_load(&mistakes), 0);
    assert_int_equal(weir__counter_shard_sum(TAKEN), WRITERS * ACCOUNTS * ADDITIONS);
    assert_int_equal(weir__counter_shard_sum(GIVEN), WRITERS * ACCOUNTS * ADDITIONS);
}
