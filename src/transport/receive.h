/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sockets receive into: buffers of the pool, of the channel's guess (guess.h). What came is
 * handed on without a copy, unless it is so little that it would hold a large buffer for nothing.
 */
#ifndef WEIR_TRANSPORT_RECEIVE_H
#define WEIR_TRANSPORT_RECEIVE_H

#include <weir/buf.h>
#include <weir/channel.h>

#include "loop/io.h"
#include "transport/receive_size.h"

/* Makes a loop's backend receive into buffers, if it does not yet. */
void weir__receive_into_buffers(weir__io *io);

/* How many reads a handle gets in a turn: its `reads`. */
static inline uint8_t weir__reads_per_turn(const weir_channel_options *options)
{
    return options->reads_per_turn < UINT8_MAX ? (uint8_t)options->reads_per_turn : UINT8_MAX;
}

/* What has been received: a buffer, which is the caller's. The block is taken. */
weir_buf *weir__received_buf(const weir__io_block *block, size_t length);

#endif
