/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one direction of a connection, from the write to the read, and a check that what is
 * read is what was written: both ends keep a checksum of what has passed, in the memory of the
 * callers. A write leaves its position and checksum for the reader, which compares when it gets
 * there. Any difference fails the run.
 */
#ifndef WEIR_SIM_STREAM_H
#define WEIR_SIM_STREAM_H

#include <sys/socket.h>

#include "sim/world.h"

/* Depends on the bytes and on their order. */
typedef struct weir__sim_checksum {
    uint64_t sum, sum_of_sums;
} weir__sim_checksum;

/* Adds bytes of a message, from an offset on. */
void weir__sim_checksum_add(weir__sim_checksum *checksum, const struct msghdr *message,
                            size_t offset, size_t length);

static inline bool weir__sim_checksum_equals(const weir__sim_checksum *a,
                                             const weir__sim_checksum *b)
{
    return a->sum == b->sum && a->sum_of_sums == b->sum_of_sums;
}

enum {
    WEIR__SIM_STREAM_MARKS = 8,
};

typedef struct weir__sim_stream {
    uint8_t *bytes;         /* a ring */
    size_t size;            /* a power of two; 0 = none yet */
    uint64_t read, written; /* positions */

    weir__sim_checksum read_checksum, written_checksum;
    struct {
        uint64_t position;
        weir__sim_checksum checksum;
    } marks[WEIR__SIM_STREAM_MARKS]; /* of writes that were not read to their end; a queue */
    unsigned first_mark, mark_count;
} weir__sim_stream;

static inline size_t weir__sim_stream_length(const weir__sim_stream *stream)
{
    return (size_t)(stream->written - stream->read);
}

/* Appends the first bytes of a message. */
void weir__sim_stream_write(weir__sim_stream *stream, const struct msghdr *message, size_t length);

/* Copies the first bytes into a message, and removes them unless it is a peek. */
void weir__sim_stream_read(weir__sim_stream *stream, struct msghdr *message, size_t length,
                           bool is_peek);

/* Removes everything, unread. */
void weir__sim_stream_drop(weir__sim_stream *stream);

#endif
