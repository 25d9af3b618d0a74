/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a guess are those of Netty: 16 to 496 by 16, then doubling. But a guess stays above
 * what comes: a read that fills it would be followed by one that finds nothing.
 */
#include "transport/receive_size.h"

#define FINE_STEPS 31 /* 16, 32, ... 496 */
#define STEPS 52      /* then 512, 1024, ... 1 GiB */
#define STEPS_UP 4

static size_t step_size(unsigned step)
{
    return step < FINE_STEPS ? 16 * (size_t)(step + 1) : (size_t)512 << (step - FINE_STEPS);
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

size_t weir__receive_size_size(const weir__receive_size *guess, const weir_channel_options *options)
{
    return within(step_size(guess->step), options);
}

bool weir__receive_size_update(weir__receive_size *guess, const weir_channel_options *options,
                               size_t size, size_t length)
{
    uint8_t step = guess->step;
    bool was_small = guess->small;

    guess->small = false;
    if (length >= size) {
        if (size < (size_t)options->receive_max)
            guess->step = (uint8_t)(step + STEPS_UP < STEPS ? step + STEPS_UP : STEPS - 1);
    } else if (step > 0 && size > (size_t)options->receive_min && length < step_size(step - 1u)) {
        guess->small = !was_small;
        guess->step = (uint8_t)(step - was_small);
    }
    return guess->step != step;
}
