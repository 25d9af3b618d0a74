/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executors of a group, by index. A shelf grows by boards, each as long as all before it, and
 * what stands on it never moves: so it is read without a lock while it grows.
 */
#ifndef WEIR_EXECUTOR_SHELF_H
#define WEIR_EXECUTOR_SHELF_H

#include <stdatomic.h>

#include <weir/executor.h>

#define WEIR__SHELF_BOARDS 32

typedef struct weir__shelf {
    _Atomic size_t count;
    size_t first; /* the room of the first board */
    weir_executor **boards[WEIR__SHELF_BOARDS];
} weir__shelf;

/* Makes the first board. Fails: -ENOMEM. */
int weir__shelf_init(weir__shelf *shelf, size_t first);
void weir__shelf_deinit(weir__shelf *shelf);

/* One thread at a time: makes sure that there is room for one more; puts it there. Fails: -ENOMEM.
 */
int weir__shelf_reserve(weir__shelf *shelf);
void weir__shelf_append(weir__shelf *shelf, weir_executor *executor);

/* Any thread. Acquire: who sees the count sees the executors, and the boards that they are on. */
static inline size_t weir__shelf_count(const weir__shelf *shelf)
{
    return atomic_load_explicit(&shelf->count, memory_order_acquire);
}

/* Where the index is, whether something stands there or not. The board must be there. */
weir_executor **weir__shelf_spot(const weir__shelf *shelf, size_t index);

/* Any thread: NULL beyond the last. */
static inline weir_executor *weir__shelf_at(const weir__shelf *shelf, size_t index)
{
    if (index >= weir__shelf_count(shelf))
        return NULL;
    return index < shelf->first ? shelf->boards[0][index] : *weir__shelf_spot(shelf, index);
}

#endif
