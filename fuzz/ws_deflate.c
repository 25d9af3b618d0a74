/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permessage-deflate: any bytes are decompressed to the same, or fail, whether they arrive whole or
 * in pieces, and whatever room there is; and messages survive compression and decompression, with
 * and without the context of the previous ones. Input: terms, piece, the bytes.
 */
#include <stdlib.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "protocol/websocket/deflate.h"

#define COUNTS 2 /* bytes before the content */
#define OUTPUT_MAX (256u * 1024)

enum { ROUND_TRIP = 0x80, ALONE = 0x40 }; /* of the first byte; the rest are the bits and level */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static weir_buf *new_buf(void)
{
    weir_buf *buf = NULL;

    expect(weir_buf_create(0, 0, &buf) == 0);
    return buf;
}

static uint8_t bits_of(uint8_t terms)
{
    return 9 + terms % 7;
}

static weir__ws_deflate *new_deflate(uint8_t terms)
{
    uint8_t bits = bits_of(terms);
    weir__ws_deflate *deflate = NULL;

    expect(
        weir__ws_deflate_create(&(weir__ws_deflate_terms){.is_on = true,
                                                          .compress_bits = bits,
                                                          .decompress_bits = bits,
                                                          .compress_alone = (terms & ALONE) != 0,
                                                          .decompress_alone = (terms & ALONE) != 0},
                                1 + (terms & 0x3f) / 7 % 9, &deflate) == 0);
    return deflate;
}

static weir_span cut(weir_span *rest, size_t length)
{
    weir_span part = weir_span_of(rest->data, rest->length < length ? rest->length : length);

    if (part.length > 0)
        rest->data += part.length;
    rest->length -= part.length;
    return part;
}

/* Decompresses a message that comes in pieces, `room` bytes at a time. Returns 0 or the error;
 * WEIR_ETOOLONG above OUTPUT_MAX. */
static int decompress(weir__ws_deflate *deflate, weir_span bytes, size_t piece, size_t room,
                      weir_buf *to)
{
    int result;

    do {
        weir_span part = cut(&bytes, piece);

        do {
            size_t before = weir_buf_readable(to);

            result = weir__ws_deflate_decompress(deflate, &part, bytes.length == 0, room, to);
            expect(weir_buf_readable(to) - before <= room);
            if (weir_buf_readable(to) > OUTPUT_MAX)
                return WEIR_ETOOLONG;
        } while (result == 1);
        expect(result < 0 || part.length == 0);
    } while (result == 0 && bytes.length > 0);
    expect(result == 0 || result == WEIR_EMALFORMED);
    return result;
}

/* The same message twice: the second one may refer to the first. */
static int run(uint8_t terms, weir_span bytes, size_t piece, size_t room, weir_buf *to)
{
    weir__ws_deflate *deflate = new_deflate(terms);
    int err = decompress(deflate, bytes, piece, room, to);

    if (err == 0)
        err = decompress(deflate, bytes, piece, room, to);
    expect(weir__ws_deflate_memory(deflate) < 512u * 1024);
    weir__ws_deflate_free(deflate);
    return err;
}

/* zlib accepts a distance beyond the agreed window as long as the output is in one piece; the
 * largest window has no such distances. */
static void check_pieces(uint8_t terms, weir_span bytes, size_t piece)
{
    weir_buf *whole = new_buf(), *pieces = new_buf();
    int err = run(terms, bytes, SIZE_MAX, SIZE_MAX, whole);
    int again = run(terms, bytes, piece, 1 + piece * 3, pieces);

    if (err != WEIR_ETOOLONG && again != WEIR_ETOOLONG && bits_of(terms) == 15)
        expect(err == again);
    if (err == 0 && again == 0)
        expect(weir_buf_equal(whole, pieces));
    weir_buf_release(whole);
    weir_buf_release(pieces);
}

/* A message of `parts` frames; none of them ends with the tail that the receiver adds. */
static void check_message(weir__ws_deflate *sender, weir__ws_deflate *receiver, weir_span message,
                          size_t piece)
{
    weir_buf *sent = new_buf(), *received = new_buf();
    weir_span rest = message;

    do {
        weir_span part = cut(&rest, piece * 5);

        expect(weir__ws_deflate_compress(sender, part, rest.length == 0, sent) == 0);
    } while (rest.length > 0);
    expect(weir_buf_readable(sent) > 0);
    expect(decompress(receiver, weir_buf_span(sent), piece, SIZE_MAX, received) == 0);
    expect(weir_span_equal(weir_buf_span(received), message));
    weir_buf_release(sent);
    weir_buf_release(received);
}

static void check_round_trip(uint8_t terms, weir_span bytes, size_t piece)
{
    weir__ws_deflate *sender = new_deflate(terms), *receiver = new_deflate(terms);

    while (bytes.length > 0) {
        size_t length = 1 + bytes.data[0];

        check_message(sender, receiver, cut(&bytes, length), piece);
        if (length % 4 == 0)
            check_message(sender, receiver, weir_span_of(NULL, 0), piece);
    }
    weir__ws_deflate_free(sender);
    weir__ws_deflate_free(receiver);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_span bytes;

    if (size < COUNTS || size > 16384)
        return 0;
    bytes = weir_span_of(data + COUNTS, size - COUNTS);
    if ((data[0] & ROUND_TRIP) != 0)
        check_round_trip(data[0], bytes, 1 + (size_t)data[1]);
    else
        check_pieces(data[0], bytes, 1 + (size_t)data[1]);
    return 0;
}
