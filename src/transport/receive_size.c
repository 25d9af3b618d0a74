/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As in Netty, but the size stays above the usual read: one that fills the buffer would be followed
 * by one that finds nothing.
 */
#include "transport/receive_size.h"

#define STEPS 52 /* 16 to 1 GiB */
#define STEPS_UP 4

static size_t step_size(unsigned step)
{
    return weir__receive_size_below(step + 1);
}

/* The smallest step that holds `size`. */
static unsigned step_for(size_t size)
{
    unsigned step = 0;

    while (step < STEPS - 1 && step_size(step) < size)
        step++;
    return step;
}

static size_t within(size_t size, const weir_channel_options *options)
{
    if (size < (size_t)options->receive_min)
        return (size_t)options->receive_min;
    return size < (size_t)options->receive_max ? size : (size_t)options->receive_max;
}

weir__receive_size weir__receive_size_first(const weir_channel_options *options)
{
    return (weir__receive_size){.step = (uint8_t)step_for((size_t)options->receive_initial)};
}

size_t weir__receive_size_size(const weir__receive_size *receive_size,
                               const weir_channel_options *options)
{
    return within(step_size(receive_size->step), options);
}

bool weir__receive_size_update(weir__receive_size *receive_size,
                               const weir_channel_options *options, size_t size, size_t length)
{
    uint8_t step = receive_size->step;
    bool was_small = receive_size->small;

    receive_size->small = false;
    if (length >= size) {
        if (size < (size_t)options->receive_max)
            receive_size->step = (uint8_t)(step + STEPS_UP < STEPS ? step + STEPS_UP : STEPS - 1);
    } else if (step > 0 && size > (size_t)options->receive_min && length < step_size(step - 1u)) {
        receive_size->small = !was_small;
        receive_size->step = (uint8_t)(step - was_small);
    }
    return receive_size->step != step;
}
