/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec/cases.h - the cases of decoders in memory, after a competitor's own part.
 *
 *      decode kind=lines size=32 count=4      a stream of 1 MiB, `count` times: frames of `size`
 * bytes with their delimiters
 *
 * They answer with `ns` of each frame and `kib_ns` of each KiB of the stream. It comes in reads
 * of 64 KiB, which cut frames in two; Base64, which is no framing, a message at a time.
 */
#ifndef BENCH_CODEC_CASES_H
#define BENCH_CODEC_CASES_H

#include <stdio.h>
#include <string.h>

#include "support/bench.h"

#define READ_SIZE 65536
#define STREAM_SIZE (16 * READ_SIZE)

enum kind { FIXED, LINES, DELIMITED, LENGTH_FIELD, VARINT, NETSTRINGS, JSON, BASE64 };

/* ---- what a competitor defines ---- */

/* A decoder of frames that have `size` bytes. */
static void decoder_open(enum kind kind, size_t size);
static void decoder_close(void);

/* Decodes the next read of the stream, which stays where it is. */
static void decode(const uint8_t *bytes, size_t length);

/* How many frames there were, since it was opened. */
static int64_t frames_decoded(void);

/* ---- the stream ---- */

static size_t put_front(enum kind kind, uint8_t *to, size_t size, size_t length)
{
    size_t rest = size;

    switch (kind) {
    case LENGTH_FIELD:
        for (size_t i = 0; i < 4; i++)
            to[i] = (uint8_t)(size >> (24 - 8 * i));
        return 4;
    case VARINT:
        for (length = 0; rest >= 0x80; rest >>= 7)
            to[length++] = (uint8_t)(rest | 0x80);
        to[length++] = (uint8_t)rest;
        return length;
    case NETSTRINGS:
        return (size_t)snprintf((char *)to, length, "%zu:", size);
    case JSON:
        memcpy(to, "{\"a\":\"", 6);
        return 6;
    default:
        return 0;
    }
}

static const char *back_of(enum kind kind, size_t n)
{
    switch (kind) {
    case LINES:
        return "\r\n";
    case DELIMITED:
        return n % 2 == 0 ? ";" : "\n";
    case NETSTRINGS:
        return ",";
    case JSON:
        return "\"}";
    default:
        return "";
    }
}

/* The n-th frame, whose `size` bytes are letters. Returns its length. */
static size_t put_frame(enum kind kind, uint8_t *to, size_t size, size_t n)
{
    const char *back = back_of(kind, n);
    size_t length = put_front(kind, to, size, 24);

    for (size_t i = 0; i < size; i++)
        to[length++] = (uint8_t)('a' + i % 26);
    memcpy(to + length, back, strlen(back));
    return length + strlen(back);
}

/* ---- measuring ---- */

struct stream {
    uint8_t *bytes;
    size_t length; /* whole frames */
    size_t frame;
};

static void make_stream(struct stream *stream, enum kind kind, size_t size)
{
    stream->bytes = bench_alloc(STREAM_SIZE + size + 64, 1);
    stream->length = 0;
    for (size_t n = 0; stream->length < STREAM_SIZE; n++) {
        stream->frame = put_frame(kind, stream->bytes + stream->length, size, n);
        stream->length += stream->frame;
    }
}

static void decode_stream(const struct stream *stream, size_t read_size)
{
    for (size_t at = 0; at < stream->length; at += read_size)
        decode(stream->bytes + at,
               stream->length - at < read_size ? stream->length - at : read_size);
}

static void decode_case(bench_round *round)
{
    static const char *const kinds[] = {"fixed",        "lines",  "delimited",
                                        "length-field", "varint", "netstrings",
                                        "json",         "base64", NULL};
    enum kind kind = (enum kind)bench_choice(round, "kind", kinds);
    size_t size = (size_t)bench_setting(round, "size", 32);
    int64_t count = bench_setting(round, "count", 4), frames, began_ns, ns;
    struct stream stream;
    size_t read_size;

    bench_pin(bench_cpu(1));
    make_stream(&stream, kind, size);
    read_size = kind == BASE64 ? stream.frame : READ_SIZE;
    decoder_open(kind, size);
    decode_stream(&stream, read_size);
    frames = frames_decoded();
    bench_require(frames == (int64_t)(stream.length / stream.frame), "finding every frame");
    began_ns = bench_now_ns();
    for (int64_t i = 0; i < count; i++)
        decode_stream(&stream, read_size);
    ns = bench_now_ns() - began_ns;
    bench_require(frames_decoded() == frames * (count + 1), "finding every frame");
    decoder_close();
    bench_report(round, "ns", (double)ns / (double)(frames * count));
    bench_report(round, "kib_ns", 1024.0 * (double)ns / (double)((int64_t)stream.length * count));
    bench_free(stream.bytes);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"decode", decode_case}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}

#endif
