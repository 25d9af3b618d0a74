/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are known by where they stand: sender and receiver each keep a stream of the same
 * seed, and a byte that is lost, doubled, exchanged or changed is seen at once. Zero is the
 * beginning of stream 0.
 */
#ifndef WEIR_TEST_STREAM_H
#define WEIR_TEST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream {
    uint64_t seed;
    uint64_t position;
};

/* The next bytes of the stream. */
void stream_write(struct stream *stream, void *memory, size_t length);

/* Whether these are the next bytes of the stream, which then moves on. */
bool stream_check(struct stream *stream, const void *memory, size_t length);

#endif
