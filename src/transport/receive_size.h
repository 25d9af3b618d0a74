/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a channel expects to receive at a time: follows what comes. A read that fills the guess
 * makes the next one four steps larger, two in a row that would not have filled the next smaller
 * one make it one step smaller.
 */
#ifndef WEIR_TRANSPORT_RECEIVE_SIZE_H
#define WEIR_TRANSPORT_RECEIVE_SIZE_H

#include <weir/channel.h>

typedef struct weir__receive_size {
    uint8_t step;
    bool small; /* the last read would not have filled the next smaller step */
} weir__receive_size;

/* The guess that a channel begins with, and its size. */
weir__receive_size weir__receive_size_first(const weir_channel_options *options);
size_t weir__receive_size_size(const weir__receive_size *guess,
                               const weir_channel_options *options);

/* A read has brought `length` of the `size` bytes that were asked for. Returns whether the guess is
 * another one now. */
bool weir__receive_size_update(weir__receive_size *guess, const weir_channel_options *options,
                               size_t size, size_t length);

#endif
