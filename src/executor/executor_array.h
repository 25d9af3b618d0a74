/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executors of a group, by index. A shelf grows by boards, each as long as all before it, and
 * boards never move: so it is read without a lock while it grows. The last executor takes the place
 * of one that is removed.
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_ARRAY_H
#define WEIR_EXECUTOR_EXECUTOR_ARRAY_H

#include <stdatomic.h>

#include <weir/executor.h>

#define WEIR__SHELF_BOARDS 32

typedef _Atomic(weir_executor *) weir__shelf_spot; /* NULL = nothing stands there yet */

typedef struct weir__shelf {
    _Atomic size_t count;
    size_t first; /* the room of the first board */
    weir__shelf_spot *boards[WEIR__SHELF_BOARDS];
} weir__shelf;

/* Makes the first board. Fails: -ENOMEM. */
int weir__shelf_init(weir__shelf *shelf, size_t first);
void weir__shelf_deinit(weir__shelf *shelf);

/* One thread at a time: makes sure that there is room for one more; puts it there. Fails: -ENOMEM.
 */
int weir__shelf_reserve(weir__shelf *shelf);
void weir__shelf_append(weir__shelf *shelf, weir_executor *executor);

/* The same: the executor is there, and not the first. */
void weir__shelf_remove(weir__shelf *shelf, const weir_executor *executor);

/* Any thread. Acquire: who sees the count sees the boards. */
static inline size_t weir__shelf_count(const weir__shelf *shelf)
{
    return atomic_load_explicit(&shelf->count, memory_order_acquire);
}

/* Beyond the first board. */
weir_executor *weir__shelf_at_later(const weir__shelf *shelf, size_t index);

/* Any thread: NULL beyond the last. Acquire: who sees an executor sees it as it was made. */
static inline weir_executor *weir__shelf_at(const weir__shelf *shelf, size_t index)
{
    if (__builtin_expect(index >= shelf->first, 0))
        return weir__shelf_at_later(shelf, index);
    return atomic_load_explicit(&shelf->boards[0][index], memory_order_acquire);
}

#endif
