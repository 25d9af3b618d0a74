/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of accounts, and the rest.
 */
#include "base/sharded_counters.h"

#include "os/thread.h"

static struct {
    weir__mutex lock; /* guards the list, and keeps its accounts open */
    weir__list accounts;
} book = {.lock = WEIR__MUTEX_INIT, .accounts = {&book.accounts, &book.accounts}};

static _Atomic uint64_t rest[WEIR__SHARD_COUNTERS];

void weir__counter_shard_open(weir__counter_shard *account)
{
    weir__mutex_lock(&book.lock);
    weir__list_append(&book.accounts, &account->link);
    weir__mutex_unlock(&book.lock);
}

void weir__counter_shard_close(weir__counter_shard *account)
{
    weir__mutex_lock(&book.lock);
    weir__list_remove(&account->link);
    for (unsigned i = 0; i < WEIR__SHARD_COUNTERS; i++)
        weir__counter_shard_add(NULL, i,
                                atomic_load_explicit(&account->figures[i], memory_order_relaxed));
    weir__mutex_unlock(&book.lock);
}

/* Release, and acquire below: see the header. */
void weir__counter_shard_add(weir__counter_shard *account, unsigned figure, uint64_t n)
{
    if (account == NULL)
        atomic_fetch_add_explicit(&rest[figure], n, memory_order_release);
    else
        atomic_store_explicit(
            &account->figures[figure],
            atomic_load_explicit(&account->figures[figure], memory_order_relaxed) + n,
            memory_order_release);
}

uint64_t weir__counter_shard_sum(unsigned figure)
{
    uint64_t sum;

    weir__mutex_lock(&book.lock);
    sum = atomic_load_explicit(&rest[figure], memory_order_acquire);
    weir_list_foreach (link, &book.accounts)
        sum += atomic_load_explicit(
            &WEIR_CONTAINER_OF(link, weir__counter_shard, link)->figures[figure],
            memory_order_acquire);
    weir__mutex_unlock(&book.lock);
    return sum;
}
