/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Board 0 has `first` places, from 0 on; board b has first << (b - 1), and begins at as many.
 */
#include "executor/executor_array.h"

#include <errno.h>

#include "base/memory.h"

static unsigned board_of(const weir__executor_array *shelf, size_t index)
{
    size_t times = index / shelf->first;

    return times == 0 ? 0 : 64 - (unsigned)__builtin_clzll(times);
}

static size_t room_of(const weir__executor_array *shelf, unsigned board)
{
    return board == 0 ? shelf->first : shelf->first << (board - 1);
}

int weir__executor_array_init(weir__executor_array *shelf, size_t first)
{
    *shelf = (weir__executor_array){.first = first};
    return weir__executor_array_reserve(shelf);
}

void weir__executor_array_deinit(weir__executor_array *shelf)
{
    for (unsigned i = 0; i < WEIR__EXECUTOR_ARRAY_BOARDS; i++)
        weir__free(shelf->boards[i]);
}

int weir__executor_array_reserve(weir__executor_array *shelf)
{
    size_t count = weir__executor_array_count(shelf);
    unsigned board = board_of(shelf, count);

    if (board >= WEIR__EXECUTOR_ARRAY_BOARDS)
        return -ENOMEM;
    if (shelf->boards[board] == NULL)
        shelf->boards[board] =
            weir__zalloc(room_of(shelf, board) * sizeof(weir__executor_array_spot));
    return shelf->boards[board] != NULL ? 0 : -ENOMEM;
}

static weir__executor_array_spot *spot_at(const weir__executor_array *shelf, size_t index)
{
    unsigned board = board_of(shelf, index);

    return &shelf->boards[board][board == 0 ? index : index - room_of(shelf, board)];
}

weir_executor *weir__executor_array_at_later(const weir__executor_array *shelf, size_t index)
{
    if (index >= weir__executor_array_count(shelf))
        return NULL;
    return atomic_load_explicit(spot_at(shelf, index), memory_order_acquire);
}

void weir__executor_array_append(weir__executor_array *shelf, weir_executor *executor)
{
    size_t count = weir__executor_array_count(shelf);

    atomic_store_explicit(spot_at(shelf, count), executor, memory_order_release);
    atomic_store_explicit(&shelf->count, count + 1, memory_order_release);
}

/* A reader may see the last one twice meanwhile, but no executor that is not there. */
void weir__executor_array_remove(weir__executor_array *shelf, const weir_executor *executor)
{
    size_t last = weir__executor_array_count(shelf) - 1, index = 1;

    while (weir__executor_array_at(shelf, index) != executor)
        index++;
    atomic_store_explicit(spot_at(shelf, index), weir__executor_array_at(shelf, last),
                          memory_order_release);
    atomic_store_explicit(&shelf->count, last, memory_order_release);
    atomic_store_explicit(spot_at(shelf, last), NULL, memory_order_relaxed);
}
