/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/stream.h"

#include <stdlib.h>

#include "sim/network.h"

/* ---- the check ---- */

void weir__sim_checksum_add(weir__sim_checksum *checksum, const struct msghdr *message,
                            size_t offset, size_t length)
{
    for (size_t i = 0; i < (size_t)message->msg_iovlen && length > 0; i++) {
        const uint8_t *bytes = message->msg_iov[i].iov_base;
        size_t size = message->msg_iov[i].iov_len;

        if (offset >= size) {
            offset -= size;
            continue;
        }
        for (; offset < size && length > 0; length--) {
            checksum->sum += bytes[offset++];
            checksum->sum_of_sums += checksum->sum;
        }
        offset = 0;
    }
}

static void check_mark(weir__sim_stream *stream, uint64_t position)
{
    const weir__sim_checksum *written = &stream->marks[stream->first_mark].checksum;

    if (!weir__sim_checksum_equals(written, &stream->read_checksum))
        weir_sim_fail(weir__sim,
                      "a stream has delivered other bytes than were written, before %llu",
                      (unsigned long long)position);
    stream->first_mark = (stream->first_mark + 1) % WEIR__SIM_STREAM_MARKS;
    stream->mark_count--;
}

static void check_read(weir__sim_stream *stream, const struct msghdr *message, size_t length)
{
    uint64_t position = stream->read, end = stream->read + length;

    if (end > stream->written)
        weir_sim_fail(weir__sim, "a stream has delivered %llu bytes, but %llu were written",
                      (unsigned long long)end, (unsigned long long)stream->written);
    while (position < end) {
        uint64_t to = end;

        if (stream->mark_count > 0 && stream->marks[stream->first_mark].position < to)
            to = stream->marks[stream->first_mark].position;
        weir__sim_checksum_add(&stream->read_checksum, message, (size_t)(position - stream->read),
                               (size_t)(to - position));
        position = to;
        if (stream->mark_count > 0 && stream->marks[stream->first_mark].position == position)
            check_mark(stream, position);
    }
}

/* The last mark moves if there is no room for another. */
static void add_mark(weir__sim_stream *stream)
{
    unsigned slot;

    if (stream->mark_count < WEIR__SIM_STREAM_MARKS)
        stream->mark_count++;
    slot = (stream->first_mark + stream->mark_count - 1) % WEIR__SIM_STREAM_MARKS;
    stream->marks[slot].position = stream->written;
    stream->marks[slot].checksum = stream->written_checksum;
}

/* ---- the ring ---- */

static void grow(weir__sim_stream *stream, size_t needed)
{
    size_t size = stream->size > 0 ? stream->size : 2048;
    uint8_t *bytes;

    while (size < needed)
        size *= 2;
    bytes = malloc(size);
    if (bytes == NULL)
        abort();
    for (uint64_t at = stream->read; at < stream->written; at++)
        bytes[at & (size - 1)] = stream->bytes[at & (stream->size - 1)];
    free(stream->bytes);
    stream->bytes = bytes;
    stream->size = size;
}

void weir__sim_stream_write(weir__sim_stream *stream, const struct msghdr *message, size_t length)
{
    size_t at, first;

    if (length == 0)
        return;
    if (weir__sim_stream_length(stream) + length > stream->size)
        grow(stream, weir__sim_stream_length(stream) + length);
    at = (size_t)stream->written & (stream->size - 1);
    first = stream->size - at < length ? stream->size - at : length;
    (void)weir__sim_copy_in(stream->bytes + at, first, message, 0);
    (void)weir__sim_copy_in(stream->bytes, length - first, message, first);
    stream->written += length;
    weir__sim_checksum_add(&stream->written_checksum, message, 0, length);
    add_mark(stream);
}

void weir__sim_stream_read(weir__sim_stream *stream, struct msghdr *message, size_t length,
                           bool is_peek)
{
    size_t at = (size_t)stream->read & (stream->size - 1);
    size_t first = stream->size - at < length ? stream->size - at : length;

    if (length == 0)
        return;
    (void)weir__sim_copy_out(message, 0, stream->bytes + at, first);
    (void)weir__sim_copy_out(message, first, stream->bytes, length - first);
    if (is_peek)
        return;
    check_read(stream, message, length);
    stream->read += length;
}

void weir__sim_stream_drop(weir__sim_stream *stream)
{
    free(stream->bytes);
    stream->bytes = NULL;
    stream->size = 0;
    stream->read = stream->written;
    stream->mark_count = 0;
    stream->read_checksum = stream->written_checksum;
}
