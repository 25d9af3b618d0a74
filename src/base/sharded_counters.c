/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of shards, and the shared counters.
 */
#include "base/sharded_counters.h"

#include "os/thread.h"

static struct {
    weir__mutex lock; /* guards the list; held while shards are read, so that none is closed */
    weir__list shards;
} registry = {.lock = WEIR__MUTEX_INIT, .shards = {&registry.shards, &registry.shards}};

static _Atomic uint64_t shared[WEIR__SHARD_COUNTERS];

void weir__counter_shard_open(weir__counter_shard *shard)
{
    weir__mutex_lock(&registry.lock);
    weir__list_append(&registry.shards, &shard->link);
    weir__mutex_unlock(&registry.lock);
}

void weir__counter_shard_close(weir__counter_shard *shard)
{
    weir__mutex_lock(&registry.lock);
    weir__list_remove(&shard->link);
    for (unsigned i = 0; i < WEIR__SHARD_COUNTERS; i++)
        weir__counter_shard_add(NULL, i,
                                atomic_load_explicit(&shard->counters[i], memory_order_relaxed));
    weir__mutex_unlock(&registry.lock);
}

/* Release, and acquire below: see the header. */
void weir__counter_shard_add(weir__counter_shard *shard, unsigned counter, uint64_t n)
{
    if (shard == NULL)
        atomic_fetch_add_explicit(&shared[counter], n, memory_order_release);
    else
        atomic_store_explicit(
            &shard->counters[counter],
            atomic_load_explicit(&shard->counters[counter], memory_order_relaxed) + n,
            memory_order_release);
}

uint64_t weir__counter_shard_sum(unsigned counter)
{
    uint64_t sum;

    weir__mutex_lock(&registry.lock);
    sum = atomic_load_explicit(&shared[counter], memory_order_acquire);
    weir_list_foreach (link, &registry.shards)
        sum += atomic_load_explicit(
            &WEIR_CONTAINER_OF(link, weir__counter_shard, link)->counters[counter],
            memory_order_acquire);
    weir__mutex_unlock(&registry.lock);
    return sum;
}
