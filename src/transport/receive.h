/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets receive into buffers of the pool, of the channel's receive size (receive_size.h).
 * Received bytes are not copied, unless they are so few that they would waste a large buffer.
 */
#ifndef WEIR_TRANSPORT_RECEIVE_H
#define WEIR_TRANSPORT_RECEIVE_H

#include <assert.h>

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

/* Up to this many bytes are copied out of a buffer of which they use less than a quarter. */
#define WEIR__RECEIVE_COPY_MAX 1024

weir_buf *weir__received_copy(weir_buf *buf);

static inline bool weir__received_is_copied(const weir__io_block *block, size_t length)
{
    return length < block->capacity / 4 && length <= WEIR__RECEIVE_COPY_MAX;
}

/* The buffer of a received block, which it takes, without copying it. */
static inline weir_buf *weir__received_whole(const weir__io_block *block, size_t length)
{
    weir_buf *buf = block->cookie;

    assert(length <= block->capacity);
    buf->write = (uint32_t)length;
    return buf;
}

static inline weir_buf *weir__received_buf(const weir__io_block *block, size_t length)
{
    weir_buf *buf = weir__received_whole(block, length);

    return weir__received_is_copied(block, length) ? weir__received_copy(buf) : buf;
}

#endif
