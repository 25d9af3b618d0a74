/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executors of a group, by index. The array grows by blocks, each as long as all before it.
 * Blocks never move, so it is read without a lock while it grows. Removing an executor moves the
 * last one into its slot.
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_ARRAY_H
#define WEIR_EXECUTOR_EXECUTOR_ARRAY_H

#include <stdatomic.h>

#include <weir/executor.h>

#define WEIR__EXECUTOR_ARRAY_BLOCKS 32

typedef _Atomic(weir_executor *) weir__executor_array_slot; /* NULL: empty */

typedef struct weir__executor_array {
    _Atomic size_t count;
    size_t first; /* slots of the first block */
    weir__executor_array_slot *blocks[WEIR__EXECUTOR_ARRAY_BLOCKS];
} weir__executor_array;

/* Allocates the first block. Fails: -ENOMEM. */
int weir__executor_array_init(weir__executor_array *array, size_t first);
void weir__executor_array_deinit(weir__executor_array *array);

/* One thread at a time: reserves a slot, then fills it. Fails: -ENOMEM. */
int weir__executor_array_reserve(weir__executor_array *array);
void weir__executor_array_append(weir__executor_array *array, weir_executor *executor);

/* One thread at a time. The executor is in the array and not the first. */
void weir__executor_array_remove(weir__executor_array *array, const weir_executor *executor);

/* Any thread. Acquire: a reader of the count sees the blocks. */
static inline size_t weir__executor_array_count(const weir__executor_array *array)
{
    return atomic_load_explicit(&array->count, memory_order_acquire);
}

/* For an index beyond the first block. */
weir_executor *weir__executor_array_at_slow(const weir__executor_array *array, size_t index);

/* Any thread; NULL beyond the last. Acquire: a reader sees the executor initialized. */
static inline weir_executor *weir__executor_array_at(const weir__executor_array *array,
                                                     size_t index)
{
    if (index >= array->first)
        return weir__executor_array_at_slow(array, index);
    return atomic_load_explicit(&array->blocks[0][index], memory_order_acquire);
}

#endif
