/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of known bytes: sender and receiver each have one with the same seed, so that a lost,
 * duplicated, reordered or changed byte is detected at once. Zero initializes stream 0.
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

/* Writes the next bytes of the stream. */
void stream_write(struct stream *stream, void *memory, size_t length);

/* True if these are the next bytes of the stream; advances it. */
bool stream_check(struct stream *stream, const void *memory, size_t length);

#endif
