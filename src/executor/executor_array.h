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

#define WEIR__EXECUTOR_ARRAY_BOARDS 32

typedef _Atomic(weir_executor *) weir__executor_array_spot; /* NULL = nothing stands there yet */

typedef struct weir__executor_array {
    _Atomic size_t count;
    size_t first; /* the room of the first board */
    weir__executor_array_spot *boards[WEIR__EXECUTOR_ARRAY_BOARDS];
} weir__executor_array;

/* Makes the first board. Fails: -ENOMEM. */
int weir__executor_array_init(weir__executor_array *shelf, size_t first);
void weir__executor_array_deinit(weir__executor_array *shelf);

/* One thread at a time: makes sure that there is room for one more; puts it there. Fails: -ENOMEM.
 */
int weir__executor_array_reserve(weir__executor_array *shelf);
void weir__executor_array_append(weir__executor_array *shelf, weir_executor *executor);

/* The same: the executor is there, and not the first. */
void weir__executor_array_remove(weir__executor_array *shelf, const weir_executor *executor);

/* Any thread. Acquire: who sees the count sees the boards. */
static inline size_t weir__executor_array_count(const weir__executor_array *shelf)
{
    return atomic_load_explicit(&shelf->count, memory_order_acquire);
}

/* Beyond the first board. */
weir_executor *weir__executor_array_at_later(const weir__executor_array *shelf, size_t index);

/* Any thread: NULL beyond the last. Acquire: who sees an executor sees it as it was made. */
static inline weir_executor *weir__executor_array_at(const weir__executor_array *shelf,
                                                     size_t index)
{
    if (__builtin_expect(index >= shelf->first, 0))
        return weir__executor_array_at_later(shelf, index);
    return atomic_load_explicit(&shelf->boards[0][index], memory_order_acquire);
}

#endif
