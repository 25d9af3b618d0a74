/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets receive into buffers of the pool, of the channel's receive size (receive_size.h).
 * Received bytes are not copied, unless they are so few that they would waste a large buffer.
 */
#ifndef WEIR_TRANSPORT_RECEIVE_H
#define WEIR_TRANSPORT_RECEIVE_H

#include <weir/buf.h>
#include <weir/channel.h>

#include "loop/io.h"
#include "transport/receive_size.h"

/* Makes a loop's backend receive into buffers. */
void weir__receive_into_buffers(weir__io *io);

/* The number of reads of a handle per turn. */
static inline uint8_t weir__reads_per_turn(const weir_channel_options *options)
{
    return options->reads_per_turn < UINT8_MAX ? (uint8_t)options->reads_per_turn : UINT8_MAX;
}

/* Creates the buffer of a received block, which it takes. */
weir_buf *weir__received_buf(const weir__io_block *block, size_t length);

#endif
