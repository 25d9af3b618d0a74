/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptive receive size of a channel. A read that fills the buffer makes the next one four
 * steps larger; two in a row that would not have filled the next smaller step make it one step
 * smaller.
 */
#ifndef WEIR_TRANSPORT_RECEIVE_SIZE_H
#define WEIR_TRANSPORT_RECEIVE_SIZE_H

#include <weir/channel.h>

typedef struct weir__receive_size {
    uint8_t step;
    bool small; /* the last read would not have filled the next smaller step */
} weir__receive_size;

/* The initial receive size of a channel, and its bytes. */
weir__receive_size weir__receive_size_first(const weir_channel_options *options);
size_t weir__receive_size_size(const weir__receive_size *receive_size,
                               const weir_channel_options *options);

/* The steps are those of Netty: 16 to 496 by 16, then 512, 1024, ... */
#define WEIR__RECEIVE_FINE_STEPS 31

/* The bytes of the step below; 0 below the first. */
static inline size_t weir__receive_size_below(unsigned step)
{
    return step <= WEIR__RECEIVE_FINE_STEPS ? 16 * (size_t)step
                                            : (size_t)512 << (step - WEIR__RECEIVE_FINE_STEPS - 1);
}

/* Adapts to a read of `length` bytes into a buffer of `size`. True if the size has changed. */
bool weir__receive_size_update(weir__receive_size *receive_size,
                               const weir_channel_options *options, size_t size, size_t length);

/* True if a read of `length` bytes into a buffer of `size` changes nothing, as most do. */
static inline bool weir__receive_size_fits(const weir__receive_size *receive_size, size_t size,
                                           size_t length)
{
    return !receive_size->small && length < size &&
           length >= weir__receive_size_below(receive_size->step);
}

#endif
