/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <weir/error.h>

#include "protocol/websocket/deflate.h"
#include "support/memory.h"
#include "support/test.h"

#define HELLO weir_span_of_text("Hello")

static weir__ws_deflate *create(const weir__ws_deflate_terms *terms)
{
    weir__ws_deflate *deflate;

    assert_int_equal(weir__ws_deflate_create(terms, 6, &deflate), 0);
    return deflate;
}

static weir__ws_deflate *create_plain(void)
{
    return create(
        &(weir__ws_deflate_terms){.is_on = true, .compress_bits = 12, .decompress_bits = 15});
}

static weir_buf *create_buf(void)
{
    weir_buf *buf;

    assert_int_equal(weir_buf_create(64, 0, &buf), 0);
    return buf;
}

static void expect_text(const weir_buf *buf, weir_span expected)
{
    assert_int_equal(weir_buf_readable(buf), expected.length);
    assert_memory_equal(weir_buf_bytes(buf), expected.data, expected.length);
}

/* Decompresses one message, whole. */
static void expect_message(weir__ws_deflate *deflate, weir_span payload, weir_span expected)
{
    weir_buf *out = create_buf();

    assert_int_equal(weir__ws_deflate_decompress(deflate, &payload, true, SIZE_MAX, out), 0);
    assert_int_equal(payload.length, 0);
    expect_text(out, expected);
    weir_buf_release(out);
}

static int decompress_bytes(weir__ws_deflate *deflate, const void *bytes, size_t length)
{
    weir_span payload = weir_span_of(bytes, length);
    weir_buf *out = create_buf();
    int result = weir__ws_deflate_decompress(deflate, &payload, true, SIZE_MAX, out);

    weir_buf_release(out);
    return result;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Words, new ones and repetitions from any distance. The same for the same seed. */
static void fill(uint8_t *bytes, size_t length, uint32_t seed)
{
    for (size_t i = 0; i < length;) {
        size_t word = 5 + next_random(&seed) % 20;
        size_t distance = i > 0 ? 1 + next_random(&seed) % i : 0;
        bool is_new = i < 50 || next_random(&seed) % 8 == 0;

        for (; word > 0 && i < length; word--, i++)
            bytes[i] = is_new ? (uint8_t)('a' + next_random(&seed) % 26) : bytes[i - distance];
    }
}

/* ---- the examples of RFC 7692, 7.2.3 ---- */

TEST(deflate, decompresses_the_examples_of_the_rfc)
{
    static const uint8_t hello[] = {0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00};
    static const uint8_t again[] = {0xf2, 0x00, 0x11, 0x00, 0x00};
    static const uint8_t stored[] = {0x00, 0x05, 0x00, 0xfa, 0xff, 0x48,
                                     0x65, 0x6c, 0x6c, 0x6f, 0x00};
    static const uint8_t final[] = {0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00};
    static const uint8_t two_blocks[] = {0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff,
                                         0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00};
    static const uint8_t empty[] = {0x00};
    weir__ws_deflate *deflate = create_plain();

    expect_message(deflate, weir_span_of(hello, sizeof(hello)), HELLO);
    expect_message(deflate, weir_span_of(again, sizeof(again)), HELLO);
    expect_message(deflate, weir_span_of(stored, sizeof(stored)), HELLO);
    expect_message(deflate, weir_span_of(final, sizeof(final)), HELLO);
    expect_message(deflate, weir_span_of(again, sizeof(again)), HELLO); /* the window is kept */
    expect_message(deflate, weir_span_of(final, sizeof(final) - 1), HELLO);
    expect_message(deflate, weir_span_of(again, sizeof(again)), HELLO);
    expect_message(deflate, weir_span_of(two_blocks, sizeof(two_blocks)), HELLO);
    expect_message(deflate, weir_span_of(empty, 1), weir_span_of("", 0));
    expect_message(deflate, weir_span_of(hello, sizeof(hello)), HELLO);
    weir__ws_deflate_free(deflate);
}

TEST(deflate, refuses_messages_that_do_not_end_with_a_block)
{
    static const uint8_t hello[] = {0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00};
    static const uint8_t reserved[] = {0x07, 0x00};              /* a block of type 3 */
    static const uint8_t far[] = {0xf2, 0x00, 0x11, 0x00, 0x00}; /* refers to what is not there */
    weir__ws_deflate *deflate;

    for (size_t length = 0; length < sizeof(hello); length++) {
        deflate = create_plain();
        assert_int_equal(decompress_bytes(deflate, hello, length), WEIR_EMALFORMED);
        weir__ws_deflate_free(deflate);
    }
    deflate = create_plain();
    assert_int_equal(decompress_bytes(deflate, reserved, sizeof(reserved)), WEIR_EMALFORMED);
    weir__ws_deflate_free(deflate);
    deflate = create_plain();
    assert_int_equal(decompress_bytes(deflate, far, sizeof(far)), WEIR_EMALFORMED);
    weir__ws_deflate_free(deflate);
}

TEST(deflate, refuses_what_refers_to_earlier_messages_without_takeover)
{
    static const uint8_t hello[] = {0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00};
    static const uint8_t again[] = {0xf2, 0x00, 0x11, 0x00, 0x00};
    weir__ws_deflate *deflate = create(&(weir__ws_deflate_terms){
        .is_on = true, .compress_bits = 12, .decompress_bits = 15, .decompress_alone = true});

    assert_int_equal(decompress_bytes(deflate, hello, sizeof(hello)), 0);
    assert_int_equal(decompress_bytes(deflate, hello, sizeof(hello)), 0);
    assert_int_equal(decompress_bytes(deflate, again, sizeof(again)), WEIR_EMALFORMED);
    weir__ws_deflate_free(deflate);
}

TEST(deflate, makes_one_byte_of_an_empty_message)
{
    weir__ws_deflate *deflate = create_plain();

    for (int i = 0; i < 3; i++) {
        weir_buf *out = create_buf();

        assert_int_equal(weir__ws_deflate_compress(deflate, weir_span_of("", 0), true, out), 0);
        expect_text(out, weir_span_of("", 1));
        expect_message(deflate, weir_buf_span(out), weir_span_of("", 0));
        weir_buf_release(out);
    }
    weir__ws_deflate_free(deflate);
}

/* ---- both directions ---- */

/* A message in parts, each for a frame of its own, decompressed in pieces. */
static void expect_round_trip(weir__ws_deflate *from, weir__ws_deflate *to, const uint8_t *bytes,
                              size_t length, size_t part, size_t piece)
{
    weir_buf *wire = create_buf(), *out = create_buf();
    size_t done = 0;

    do {
        size_t next = length - done < part ? length - done : part;
        bool is_last = done + next == length;

        assert_int_equal(
            weir__ws_deflate_compress(from, weir_span_of(bytes + done, next), is_last, wire), 0);
        done += next;
    } while (done < length);
    while (weir_buf_readable(wire) > 0) {
        size_t next = weir_buf_readable(wire) < piece ? weir_buf_readable(wire) : piece;
        bool is_last = next == weir_buf_readable(wire);
        weir_span span = weir_span_of(weir_buf_bytes(wire), next);
        int more;

        do {
            size_t before = weir_buf_readable(out);

            more = weir__ws_deflate_decompress(to, &span, is_last, 100, out);
            assert_true(weir_buf_readable(out) - before <= 100);
        } while (more > 0);
        assert_int_equal(more, 0);
        assert_int_equal(span.length, 0);
        (void)weir_buf_skip(wire, next);
    }
    expect_text(out, weir_span_of(bytes, length));
    weir_buf_release(wire);
    weir_buf_release(out);
}

TEST(deflate, gives_back_what_it_has_compressed)
{
    static const size_t lengths[] = {0, 1, 99, 100, 101, 200, 1000, 5000};
    static const size_t pieces[] = {1, 7, 100, SIZE_MAX};
    uint8_t bytes[5000];

    for (unsigned bits = 9; bits <= 15; bits++) {
        for (unsigned alone = 0; alone < 2; alone++) {
            weir__ws_deflate_terms terms = {.is_on = true,
                                            .compress_bits = (uint8_t)bits,
                                            .decompress_bits = (uint8_t)bits,
                                            .compress_alone = alone != 0,
                                            .decompress_alone = alone != 0};
            weir__ws_deflate *from = create(&terms), *to = create(&terms);

            for (unsigned i = 0; i < 32; i++) {
                size_t length = lengths[i % 8];

                fill(bytes, length, i);
                expect_round_trip(from, to, bytes, length, pieces[i / 8], pieces[(i + bits) % 4]);
            }
            weir__ws_deflate_free(from);
            weir__ws_deflate_free(to);
        }
    }
}

/* The decompressor of other implementations: zlib with the same window. */
TEST(deflate, uses_no_larger_window_than_agreed)
{
    enum { LENGTH = 60000 };

    uint8_t *bytes = malloc(LENGTH), *out = malloc(LENGTH + 100);

    fill(bytes, LENGTH, 1);
    for (int bits = 9; bits <= 15; bits++) {
        weir__ws_deflate *deflate =
            create(&(weir__ws_deflate_terms){.is_on = true, .compress_bits = (uint8_t)bits});
        weir_buf *wire = create_buf();
        z_stream stream = {.next_out = out, .avail_out = LENGTH + 100};

        assert_true(weir__ws_deflate_compresses(deflate));
        assert_int_equal(
            weir__ws_deflate_compress(deflate, weir_span_of(bytes, LENGTH), true, wire), 0);
        assert_true(weir_buf_readable(wire) < LENGTH * 3 / 4);
        assert_int_equal(weir_buf_write_bytes(wire, "\0\0\xff\xff", 4), 0);
        assert_int_equal(inflateInit2(&stream, -bits), Z_OK);
        stream.next_in = weir_buf_space(wire) - weir_buf_readable(wire);
        while (weir_buf_readable(wire) > 0) { /* in small steps, so that it uses its window */
            stream.avail_in = 1;
            assert_int_equal(inflate(&stream, Z_SYNC_FLUSH), Z_OK);
            (void)weir_buf_skip(wire, 1);
        }
        assert_int_equal(stream.total_out, LENGTH);
        assert_memory_equal(out, bytes, LENGTH);
        (void)inflateEnd(&stream);
        weir_buf_release(wire);
        weir__ws_deflate_free(deflate);
    }
    free(bytes);
    free(out);
}

/* ---- limits and memory ---- */

TEST(deflate, stops_at_the_maximum)
{
    enum { LENGTH = 1 << 20 };

    uint8_t *zeroes = calloc(1, LENGTH);
    weir__ws_deflate *deflate = create_plain();
    weir_buf *wire = create_buf(), *out = create_buf();
    weir_span rest;

    assert_int_equal(weir__ws_deflate_compress(deflate, weir_span_of(zeroes, LENGTH), true, wire),
                     0);
    rest = weir_buf_span(wire);
    assert_int_equal(weir__ws_deflate_decompress(deflate, &rest, true, 1000, out), 1);
    assert_int_equal(weir_buf_readable(out), 1000);
    assert_true(weir_buf_capacity(out) <= 8192);
    assert_int_equal(weir__ws_deflate_decompress(deflate, &rest, true, LENGTH - 1000, out), 1);
    assert_int_equal(weir_buf_readable(out), LENGTH);
    assert_int_equal(weir__ws_deflate_decompress(deflate, &rest, true, 1, out), 0);
    expect_text(out, weir_span_of(zeroes, LENGTH));
    weir_buf_release(wire);
    weir_buf_release(out);
    weir__ws_deflate_free(deflate);
    free(zeroes);
}

/* As weir/websocket.h says. */
TEST(deflate, holds_the_memory_that_the_header_promises)
{
    uint8_t bytes[5000];
    weir__ws_deflate *deflate = create_plain();
    weir_buf *wire = create_buf();
    size_t idle = weir__ws_deflate_memory(deflate), compressing;

    assert_true(idle < 512);
    fill(bytes, sizeof(bytes), 1);
    assert_int_equal(
        weir__ws_deflate_compress(deflate, weir_span_of(bytes, sizeof(bytes)), true, wire), 0);
    compressing = weir__ws_deflate_memory(deflate);
    assert_in_range(compressing - idle, 50 * 1024, 54 * 1024);
    expect_message(deflate, weir_buf_span(wire), weir_span_of(bytes, sizeof(bytes)));
    assert_in_range(weir__ws_deflate_memory(deflate) - compressing, 36 * 1024, 39 * 1024);
    weir_buf_release(wire);
    weir__ws_deflate_free(deflate);
}

TEST(deflate, holds_nothing_between_messages_without_takeover)
{
    weir__ws_deflate *deflate = create(&(weir__ws_deflate_terms){.is_on = true,
                                                                 .compress_bits = 12,
                                                                 .decompress_bits = 15,
                                                                 .compress_alone = true,
                                                                 .decompress_alone = true});
    size_t idle = weir__ws_deflate_memory(deflate);
    weir_buf *wire = create_buf();

    assert_int_equal(weir__ws_deflate_compress(deflate, HELLO, false, wire), 0);
    assert_true(weir__ws_deflate_memory(deflate) > idle);
    assert_int_equal(weir__ws_deflate_compress(deflate, HELLO, true, wire), 0);
    assert_int_equal(weir__ws_deflate_memory(deflate), idle);
    expect_message(deflate, weir_buf_span(wire), weir_span_of_text("HelloHello"));
    assert_int_equal(weir__ws_deflate_memory(deflate), idle);
    weir_buf_release(wire);
    weir__ws_deflate_free(deflate);
}

TEST(deflate, does_not_compress_for_a_window_that_zlib_does_not_have)
{
    weir__ws_deflate *deflate =
        create(&(weir__ws_deflate_terms){.is_on = true, .compress_bits = 8, .decompress_bits = 15});

    assert_false(weir__ws_deflate_compresses(deflate));
    weir__ws_deflate_free(deflate);
}

/* Every allocation fails in turn; a message is whole or an error. */
TEST(deflate, survives_without_memory)
{
    static const weir__ws_deflate_terms terms = {
        .is_on = true, .compress_bits = 12, .decompress_bits = 15};

    for (unsigned n = 1;; n++) {
        weir__ws_deflate *deflate = NULL;
        weir_buf *wire = create_buf(), *out = create_buf();
        weir_span rest;
        int err;

        test_memory_fail_at(n);
        err = weir__ws_deflate_create(&terms, 6, &deflate);
        if (err == 0)
            err = weir__ws_deflate_compress(deflate, HELLO, true, wire);
        rest = weir_buf_span(wire);
        if (err == 0)
            err = weir__ws_deflate_decompress(deflate, &rest, true, SIZE_MAX, out);
        assert_int_equal(err, test_memory_failed() ? -ENOMEM : 0);
        weir__ws_deflate_free(deflate);
        weir_buf_release(wire);
        weir_buf_release(out);
        if (!test_memory_failed())
            break;
        assert_true(n < 100);
    }
    test_memory_fail_at(0);
}
