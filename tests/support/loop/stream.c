/* SPDX-License-Identifier: Apache-2.0 */
/* Each eight bytes are the hash of their index (the finalizer of splitmix64). */
#include "support/loop/stream.h"

#include <string.h>

static uint64_t word_at(const struct stream *stream, uint64_t position)
{
    uint64_t word = (position / 8 + 1) * 0x9e3779b97f4a7c15u + stream->seed;

    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* The bytes from `position` to the end of their word, at most `length`. Returns the number. */
static size_t piece_at(const struct stream *stream, uint64_t position, size_t length,
                       unsigned char piece[8])
{
    uint64_t word = word_at(stream, position);
    size_t skipped = (size_t)(position % 8);
    size_t count = 8 - skipped;

    word >>= 8 * skipped;
    memcpy(piece, &word, sizeof(word));
    return count < length ? count : length;
}

void stream_write(struct stream *stream, void *memory, size_t length)
{
    unsigned char *at = memory;
    unsigned char piece[8];
    size_t count;

    for (; length > 0; length -= count, at += count, stream->position += count) {
        count = piece_at(stream, stream->position, length, piece);
        memcpy(at, piece, count);
    }
}

bool stream_check(struct stream *stream, const void *memory, size_t length)
{
    const unsigned char *at = memory;
    unsigned char piece[8];
    size_t count;
    bool same = true;

    for (; length > 0; length -= count, at += count, stream->position += count) {
        count = piece_at(stream, stream->position, length, piece);
        same &= memcmp(at, piece, count) == 0;
    }
    return same;
}
