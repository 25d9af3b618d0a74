/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block 0 has `first` slots, from index 0; block b has first << (b - 1) slots, from that index.
 */
#include "executor/executor_array.h"

#include <errno.h>

#include "base/memory.h"

static unsigned block_of(const weir__executor_array *array, size_t index)
{
    size_t times = index / array->first;

    return times == 0 ? 0 : 64 - (unsigned)__builtin_clzll(times);
}

static size_t block_size(const weir__executor_array *array, unsigned block)
{
    return block == 0 ? array->first : array->first << (block - 1);
}

int weir__executor_array_init(weir__executor_array *array, size_t first)
{
    *array = (weir__executor_array){.first = first};
    return weir__executor_array_reserve(array);
}

void weir__executor_array_deinit(weir__executor_array *array)
{
    for (unsigned i = 0; i < WEIR__EXECUTOR_ARRAY_BLOCKS; i++)
        weir__free(array->blocks[i]);
}

int weir__executor_array_reserve(weir__executor_array *array)
{
    size_t count = weir__executor_array_count(array);
    unsigned block = block_of(array, count);

    if (block >= WEIR__EXECUTOR_ARRAY_BLOCKS)
        return -ENOMEM;
    if (array->blocks[block] == NULL)
        array->blocks[block] =
            weir__zalloc(block_size(array, block) * sizeof(weir__executor_array_slot));
    return array->blocks[block] != NULL ? 0 : -ENOMEM;
}

static weir__executor_array_slot *slot_at(const weir__executor_array *array, size_t index)
{
    unsigned block = block_of(array, index);

    return &array->blocks[block][block == 0 ? index : index - block_size(array, block)];
}

weir_executor *weir__executor_array_at_slow(const weir__executor_array *array, size_t index)
{
    if (index >= weir__executor_array_count(array))
        return NULL;
    return atomic_load_explicit(slot_at(array, index), memory_order_acquire);
}

void weir__executor_array_append(weir__executor_array *array, weir_executor *executor)
{
    size_t count = weir__executor_array_count(array);

    atomic_store_explicit(slot_at(array, count), executor, memory_order_release);
    atomic_store_explicit(&array->count, count + 1, memory_order_release);
}

/* A concurrent reader may see the last executor twice, but never a removed one. */
void weir__executor_array_remove(weir__executor_array *array, const weir_executor *executor)
{
    size_t last = weir__executor_array_count(array) - 1, index = 1;

    while (weir__executor_array_at(array, index) != executor)
        index++;
    atomic_store_explicit(slot_at(array, index), weir__executor_array_at(array, last),
                          memory_order_release);
    atomic_store_explicit(&array->count, last, memory_order_release);
    atomic_store_explicit(slot_at(array, last), NULL, memory_order_relaxed);
}
