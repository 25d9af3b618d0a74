/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Board 0 has `first` places, from 0 on; board b has first << (b - 1), and begins at as many.
 */
#include "executor/executor_array.h"

#include <errno.h>

#include "base/memory.h"

static unsigned board_of(const weir__shelf *shelf, size_t index)
{
    size_t times = index / shelf->first;

    return times == 0 ? 0 : 64 - (unsigned)__builtin_clzll(times);
}

static size_t room_of(const weir__shelf *shelf, unsigned board)
{
    return board == 0 ? shelf->first : shelf->first << (board - 1);
}

int weir__shelf_init(weir__shelf *shelf, size_t first)
{
    *shelf = (weir__shelf){.first = first};
    return weir__shelf_reserve(shelf);
}

void weir__shelf_deinit(weir__shelf *shelf)
{
    for (unsigned i = 0; i < WEIR__SHELF_BOARDS; i++)
        weir__free(shelf->boards[i]);
}

int weir__shelf_reserve(weir__shelf *shelf)
{
    size_t count = weir__shelf_count(shelf);
    unsigned board = board_of(shelf, count);

    if (board >= WEIR__SHELF_BOARDS)
        return -ENOMEM;
    if (shelf->boards[board] == NULL)
        shelf->boards[board] = weir__zalloc(room_of(shelf, board) * sizeof(weir__shelf_spot));
    return shelf->boards[board] != NULL ? 0 : -ENOMEM;
}

static weir__shelf_spot *spot_at(const weir__shelf *shelf, size_t index)
{
    unsigned board = board_of(shelf, index);

    return &shelf->boards[board][board == 0 ? index : index - room_of(shelf, board)];
}

weir_executor *weir__shelf_at_later(const weir__shelf *shelf, size_t index)
{
    if (index >= weir__shelf_count(shelf))
        return NULL;
    return atomic_load_explicit(spot_at(shelf, index), memory_order_acquire);
}

void weir__shelf_append(weir__shelf *shelf, weir_executor *executor)
{
    size_t count = weir__shelf_count(shelf);

    atomic_store_explicit(spot_at(shelf, count), executor, memory_order_release);
    atomic_store_explicit(&shelf->count, count + 1, memory_order_release);
}

/* A reader may see the last one twice meanwhile, but no executor that is not there. */
void weir__shelf_remove(weir__shelf *shelf, const weir_executor *executor)
{
    size_t last = weir__shelf_count(shelf) - 1, index = 1;

    while (weir__shelf_at(shelf, index) != executor)
        index++;
    atomic_store_explicit(spot_at(shelf, index), weir__shelf_at(shelf, last), memory_order_release);
    atomic_store_explicit(&shelf->count, last, memory_order_release);
    atomic_store_explicit(spot_at(shelf, last), NULL, memory_order_relaxed);
}
