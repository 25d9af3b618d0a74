/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket/messages.h - the frames of the suite: text, as JSON of sensors, of which zlib leaves a
 * third; masked as a client's are.
 */
#ifndef BENCH_WEBSOCKET_MESSAGES_H
#define BENCH_WEBSOCKET_MESSAGES_H

#include <stdio.h>
#include <string.h>

#include "support/bench.h"

enum { FRAME_HEADER_MAX = 14, READING_MAX = 96 };

/* The opening handshake of a client, with and without compression. */
#define WEBSOCKET_OPENING(extensions)                 \
    "GET / HTTP/1.1\r\n"                              \
    "Host: 127.0.0.1\r\n"                             \
    "Upgrade: websocket\r\n"                          \
    "Connection: Upgrade\r\n"                         \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
    "Sec-WebSocket-Version: 13\r\n" extensions "\r\n"

static const char websocket_opening[] = WEBSOCKET_OPENING("");

/* Fills in a text of that size: the same in every round. */
static inline void message_fill(char *text, size_t size)
{
    uint64_t state = 1;
    size_t length = 0;

    while (length < size) {
        char reading[READING_MAX];
        unsigned sensor = (unsigned)bench_scale((uint32_t)bench_random(&state), 1000);
        unsigned value = (unsigned)bench_scale((uint32_t)bench_random(&state), 100000);
        int written = snprintf(reading, sizeof(reading),
                               "{\"sensor\":%u,\"value\":%u.%03u,\"unit\":\"\u00b0C\"},", sensor,
                               value / 1000, value % 1000);
        size_t part = size - length < (size_t)written ? size - length : (size_t)written;

        memcpy(text + length, reading, part);
        length += part;
    }
    if (size > 0 && (text[size - 1] & 0xc0) == 0xc0)
        text[size - 1] = '.'; /* half of a degree sign */
}

/* Writes the header of a frame; returns its length. `first` is its first byte. */
static inline size_t frame_header(char *bytes, unsigned first, size_t payload, bool masked)
{
    unsigned mask = masked ? 0x80 : 0;
    size_t length = 2;

    bytes[0] = (char)first;
    if (payload < 126) {
        bytes[1] = (char)(mask | payload);
    } else {
        size_t width = payload < 65536 ? 2 : 8;

        bytes[1] = (char)(mask | (width == 2 ? 126 : 127));
        for (size_t i = 0; i < width; i++)
            bytes[length++] = (char)(payload >> 8 * (width - 1 - i));
    }
    return length;
}

/* Writes a masked frame, of up to FRAME_HEADER_MAX bytes more than the payload; its length. */
static inline size_t frame_write(char *bytes, unsigned first, const char *payload, size_t size)
{
    static const char key[4] = {0x37, (char)0xfa, 0x21, 0x3d};
    size_t length = frame_header(bytes, first, size, true);

    memcpy(bytes + length, key, sizeof(key));
    length += sizeof(key);
    for (size_t i = 0; i < size; i++)
        bytes[length + i] = payload[i] ^ key[i % 4];
    return length + size;
}

#endif
