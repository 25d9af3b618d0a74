/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content codings: round trips in pieces, real tools, damaged input, bombs and memory.
 */
#include "protocol/http/content_coding.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/memory.h"
#include "support/protocol/http/coded_content.h"
#include "support/test.h"

#define OUT_SIZE 65536

static const weir__http_decoder_limits roomy = {.max_decoded = 64 << 20, .max_ratio = 100000};
static const weir__http_decoder_limits usual = {.max_decoded = 16 << 20, .max_ratio = 100};

static weir__http_content_decoder *make_decoder(const char *list,
                                                const weir__http_decoder_limits *limits)
{
    weir_span span = weir_span_of_text(list);
    weir__http_content_decoder *decoder = NULL;

    assert_int_equal(weir__http_content_decoder_create(&span, 1, limits, &decoder), 0);
    return decoder;
}

static weir_buf *make_out(size_t size)
{
    weir_buf *out = NULL;

    assert_int_equal(weir_buf_create(size, 0, &out), 0);
    return out;
}

/* Decodes in pieces of `piece` bytes, with room for `room` at a time. Appends to `all`. */
static int decode_in_pieces(weir__http_content_decoder *decoder, weir_span in, size_t piece,
                            size_t room, weir_buf *all)
{
    int result = 0;

    while (in.length > 0 && result >= 0) {
        weir_span next = {in.data, in.length < piece ? in.length : piece};

        in.data += next.length;
        in.length -= next.length;
        do {
            weir_buf *out = make_out(room);

            assert_int_equal(weir_buf_set_capacity(out, room), 0);
            result = weir__http_content_decoder_run(decoder, &next, out);
            assert_int_equal(weir_buf_write_bytes(all, weir_buf_bytes(out), weir_buf_readable(out)),
                             0);
            weir_buf_release(out);
        } while (result > 0);
        if (result == 0)
            assert_int_equal(next.length, 0);
    }
    return result;
}

static void assert_decodes(const char *list, const weir_buf *coded, const weir_buf *plain,
                           size_t piece, size_t room)
{
    weir__http_content_decoder *decoder = make_decoder(list, &roomy);
    weir_buf *all = make_out(0);

    assert_int_equal(decode_in_pieces(decoder, weir_buf_span(coded), piece, room, all), 0);
    assert_true(weir__http_content_decoder_is_complete(decoder));
    assert_true(weir_buf_equal(all, plain));
    weir_buf_release(all);
    weir__http_content_decoder_free(decoder);
}

/* The error that decoding ends with; 1 if the content is incomplete. */
static int decode_all(const char *list, weir_span coded, const weir__http_decoder_limits *limits)
{
    weir__http_content_decoder *decoder = make_decoder(list, limits);
    weir_buf *all = make_out(0);
    int err = decode_in_pieces(decoder, coded, 1000, OUT_SIZE, all);

    if (err == 0)
        err = !weir__http_content_decoder_is_complete(decoder);
    weir_buf_release(all);
    weir__http_content_decoder_free(decoder);
    return err;
}

static void assert_round_trips(const weir_buf *plain, size_t piece, bool flushes)
{
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *coding = weir__http_codings[i];
        weir_buf *coded = content_encode(coding, plain, piece, flushes);

        assert_decodes(coding->name, coded, plain, SIZE_MAX, OUT_SIZE);
        assert_decodes(coding->name, coded, plain, 1, 64);
        assert_decodes(coding->name, coded, plain, 777, 4096);
        weir_buf_release(coded);
    }
}

TEST(content_coding, round_trips_however_it_is_cut)
{
    static const size_t lengths[] = {0, 1, 2, 100, 1000, 40000, 300000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        weir_buf *text = content_text(lengths[i]), *noise = content_noise(lengths[i]);

        assert_round_trips(text, SIZE_MAX, false);
        assert_round_trips(text, 5000, true);
        assert_round_trips(noise, 999, false);
        weir_buf_release(text);
        weir_buf_release(noise);
    }
}

TEST(content_coding, a_flush_makes_everything_so_far_decodable)
{
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        weir__http_content_decoder *decoder = make_decoder(weir__http_codings[i]->name, &usual);
        weir__http_content_encoder encoder = {0};
        weir_buf *out = make_out(0), *all = make_out(0);

        assert_int_equal(weir__http_content_encoder_begin(&encoder, weir__http_codings[i], 5, -1),
                         0);
        for (unsigned n = 1; n <= 3; n++) {
            weir_buf_clear(out);
            assert_int_equal(weir__http_content_encoder_run(&encoder,
                                                            weir_span_of_text("data: tick\n\n"),
                                                            WEIR__HTTP_CODING_FLUSH, out),
                             0);
            assert_int_equal(decode_in_pieces(decoder, weir_buf_span(out), SIZE_MAX, OUT_SIZE, all),
                             0);
            assert_int_equal(weir_buf_readable(all), n * strlen("data: tick\n\n"));
            assert_false(weir__http_content_decoder_is_complete(decoder));
        }
        weir__http_content_encoder_end(&encoder);
        weir__http_content_decoder_free(decoder);
        weir_buf_release(out);
        weir_buf_release(all);
    }
}

static void assert_tool_agrees(const char *name, const char *encoder, const char *decoder)
{
    weir_buf *text = content_text(200000), *coded, *back;
    weir_span span = weir_span_of_text(name);

    if (weir__http_coding_find(span) == NULL)
        goto done;
    coded = content_pipe(encoder, text);
    if (coded == NULL)
        goto done; /* not installed */
    assert_decodes(name, coded, text, 1000, OUT_SIZE);
    weir_buf_release(coded);
    coded = content_encode(weir__http_coding_find(span), text, 10000, false);
    back = content_pipe(decoder, coded);
    assert_non_null(back);
    assert_true(weir_buf_equal(back, text));
    weir_buf_release(coded);
    weir_buf_release(back);
done:
    weir_buf_release(text);
}

#define PYTHON(code) "python3 -c 'import sys, zlib; i = sys.stdin.buffer.read(); " code "'"
#define PRINT(expression) PYTHON("sys.stdout.buffer.write(" expression ")")

TEST(content_coding, agrees_with_real_tools)
{
    assert_tool_agrees("gzip", "gzip -9", "gzip -d");
    assert_tool_agrees("zstd", "zstd -c", "zstd -dc");
    assert_tool_agrees("br", "brotli -c", "brotli -dc");
    assert_tool_agrees("deflate", PRINT("zlib.compress(i)"), PRINT("zlib.decompress(i)"));
    assert_tool_agrees("deflate",
                       PYTHON("c = zlib.compressobj(wbits=-15); "
                              "sys.stdout.buffer.write(c.compress(i) + c.flush())"),
                       PRINT("zlib.decompress(i)"));
}

TEST(content_coding, gzip_may_have_several_members)
{
    weir_buf *text = content_text(1000), *twice = make_out(0);
    weir_buf *coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false), *both = make_out(0);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_buf_write_bytes(twice, weir_buf_bytes(text), 1000), 0);
        assert_int_equal(
            weir_buf_write_bytes(both, weir_buf_bytes(coded), weir_buf_readable(coded)), 0);
    }
    assert_decodes("x-gzip", both, twice, SIZE_MAX, OUT_SIZE);
    assert_decodes("GZIP", both, twice, 1, 100);
    weir_buf_release(text);
    weir_buf_release(twice);
    weir_buf_release(coded);
    weir_buf_release(both);
}

TEST(content_coding, detects_the_end_of_the_content)
{
    weir_buf *text = content_text(5000), *coded;

    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const char *name = weir__http_codings[i]->name;
        weir_span span;

        coded = content_encode(weir__http_codings[i], text, SIZE_MAX, false);
        span = weir_buf_span(coded);
        assert_int_equal(decode_all(name, span, &usual), 0);
        for (size_t length = 1; length < span.length; length += 1 + length / 7)
            assert_int_equal(decode_all(name, weir_span_of(span.data, length), &usual), 1);
        assert_int_equal(decode_all(name, weir_span_of(span.data, span.length - 1), &usual), 1);
        assert_int_equal(decode_all(name, weir_span_of(span.data, 0), &usual), 0);
        assert_int_equal(weir_buf_write_string(coded, "garbage"), 0);
        assert_int_equal(decode_all(name, weir_buf_span(coded), &usual), WEIR_EMALFORMED);
        weir_buf_release(coded);
    }
    weir_buf_release(text);
}

TEST(content_coding, rejects_damaged_content)
{
    weir_buf *text = content_text(5000);

    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *coding = weir__http_codings[i];
        weir_buf *coded = content_encode(coding, text, SIZE_MAX, false);
        int damaged = 0;

        for (size_t at = 0; at < weir_buf_readable(coded); at += 5) {
            weir_buf *copy = NULL;
            int err;

            assert_int_equal(weir_buf_copy(coded, 0, weir_buf_readable(coded), &copy), 0);
            *(uint8_t *)(uintptr_t)(weir_buf_bytes(copy) + at) ^= 0x55;
            err = decode_all(coding->name, weir_buf_span(copy), &usual);
            assert_true(err == 0 || err == 1 || err == WEIR_EMALFORMED || err == WEIR_ETOOLONG);
            damaged += err != 0;
            weir_buf_release(copy);
        }
        assert_true(damaged > 5);
        weir_buf_release(coded);
    }
    assert_int_equal(decode_all("gzip", weir_span_of_text("plain text"), &usual), WEIR_EMALFORMED);
    weir_buf_release(text);
}

TEST(content_coding, lists_are_decoded_in_reverse)
{
    const weir__http_coding *const inner = &weir__http_gzip;
    const weir__http_coding *const outer = weir__http_codings[0];
    weir_buf *text = content_text(100000);
    weir_buf *once = content_encode(inner, text, SIZE_MAX, false);
    weir_buf *twice = content_encode(outer, once, SIZE_MAX, false);
    weir_buf *thrice = content_encode(&weir__http_deflate, twice, SIZE_MAX, false);
    char list[64];

    (void)snprintf(list, sizeof(list), " gzip,identity ,\t%s,", outer->name);
    assert_decodes(list, twice, text, SIZE_MAX, OUT_SIZE);
    assert_decodes(list, twice, text, 1, 100);
    (void)snprintf(list, sizeof(list), "gzip,%s,deflate", outer->name);
    assert_decodes(list, thrice, text, 100, 1000);
    weir_buf_release(text);
    weir_buf_release(once);
    weir_buf_release(twice);
    weir_buf_release(thrice);
}

TEST(content_coding, knows_which_lists_it_cannot_decode)
{
    static const char *const rejected[] = {"compress", "gzip, x", "gzip;q=1", "gzip gzip",
                                           "gzip,gzip,gzip,gzip"};
    static const char *const nothing[] = {"", "identity", "Identity, identity", " , "};
    weir__http_content_decoder *decoder = NULL;
    weir_span lists[2];

    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        lists[0] = weir_span_of_text(rejected[i]);
        assert_int_equal(weir__http_content_decoder_create(lists, 1, &usual, &decoder), -ENOTSUP);
    }
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        lists[0] = weir_span_of_text(nothing[i]);
        assert_int_equal(weir__http_content_decoder_create(lists, 1, &usual, &decoder), 0);
        assert_null(decoder);
    }
    lists[0] = lists[1] = weir_span_of_text("gzip, gzip");
    assert_int_equal(weir__http_content_decoder_create(lists, 2, &usual, &decoder), -ENOTSUP);
}

TEST(content_coding, stops_bombs)
{
    const weir__http_coding *const once[] = {&weir__http_gzip, NULL};
    const weir__http_coding *const twice[] = {&weir__http_gzip, &weir__http_gzip, NULL};
    weir_buf *bomb = content_bomb(8 << 20, once);
    size_t before;

    assert_int_equal(decode_all("gzip", weir_buf_span(bomb), &usual), WEIR_ETOOLONG);
    weir_buf_release(bomb);
    bomb = content_bomb(8 << 20, twice); /* 1 : 100,000 */
    assert_true(weir_buf_readable(bomb) < 800);
    assert_int_equal(decode_all("gzip,gzip", weir_buf_span(bomb), &usual), WEIR_ETOOLONG);
    before = test_memory_live_bytes();
    weir_buf_release(bomb);
    assert_true(test_memory_live_bytes() <= before);
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *const one[] = {weir__http_codings[i], NULL};

        bomb = content_bomb(20 << 20, one);
        assert_int_equal(decode_all(one[0]->name, weir_buf_span(bomb), &usual), WEIR_ETOOLONG);
        assert_int_equal(decode_all(one[0]->name, weir_buf_span(bomb), &roomy), 0);
        weir_buf_release(bomb);
    }
}

TEST(content_coding, an_inner_bomb_is_stopped_by_what_it_makes)
{
    /* 4 MiB of empty gzip members become nothing, but cost time. */
    weir_buf *empty = make_out(0), *members = make_out(0), *member, *bomb;

    member = content_encode(&weir__http_gzip, empty, SIZE_MAX, false);
    while (weir_buf_readable(members) < 4 << 20)
        assert_int_equal(
            weir_buf_write_bytes(members, weir_buf_bytes(member), weir_buf_readable(member)), 0);
    bomb = content_encode(&weir__http_gzip, members, SIZE_MAX, false);
    assert_int_equal(decode_all("gzip, gzip", weir_buf_span(bomb), &usual), WEIR_ETOOLONG);
    weir_buf_release(empty);
    weir_buf_release(members);
    weir_buf_release(member);
    weir_buf_release(bomb);
}

static void decode_within(const weir_buf *coded, const char *name, size_t max_bytes)
{
    weir__http_content_decoder *decoder = make_decoder(name, &usual);
    weir_buf *out = make_out(OUT_SIZE);
    weir_span in = weir_buf_span(coded);
    size_t before = test_memory_live_bytes(), most = 0;
    int result;

    do {
        weir_buf_clear(out);
        result = weir__http_content_decoder_run(decoder, &in, out);
        if (test_memory_live_bytes() - before > most)
            most = test_memory_live_bytes() - before;
    } while (result > 0);
    assert_int_equal(result, WEIR_ETOOLONG);
    assert_in_range(most, 1, max_bytes);
    weir_buf_release(out);
    weir__http_content_decoder_free(decoder);
}

TEST(content_coding, decoders_have_bounded_memory)
{
    const weir__http_coding *const twice[] = {&weir__http_gzip, &weir__http_gzip, NULL};
    weir_buf *bomb = content_bomb(8 << 20, twice);

    decode_within(bomb, "gzip, gzip", 128 << 10);
    weir_buf_release(bomb);
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *const one[] = {weir__http_codings[i], NULL};

        bomb = content_bomb(20 << 20, one);
        decode_within(bomb, one[0]->name, 1 << 20);
        weir_buf_release(bomb);
    }
}

TEST(content_coding, rejects_windows_above_the_bound)
{
    weir_buf *zeroes = make_out(64 << 20), *coded;

    if (weir__http_coding_find(weir_span_of_text("zstd")) == NULL)
        WEIR_TEST_SKIP("built without zstd");
    assert_int_equal(weir_buf_write_fill(zeroes, 0, 64 << 20), 0);
    coded = content_pipe("zstd --long=27 -c", zeroes);
    if (coded != NULL)
        assert_int_equal(decode_all("zstd", weir_buf_span(coded), &roomy), WEIR_ETOOLONG);
    weir_buf_release(coded);
    weir_buf_release(zeroes);
}

TEST(content_coding, encoders_of_short_content_are_small)
{
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        weir__http_content_encoder encoder = {0};
        size_t before = test_memory_live_bytes();
        weir_buf *out = make_out(4096);

        assert_int_equal(weir__http_content_encoder_begin(&encoder, weir__http_codings[i], 5, 2000),
                         0);
        assert_int_equal(weir__http_content_encoder_run(&encoder, weir_span_of_text("hello"),
                                                        WEIR__HTTP_CODING_FLUSH, out),
                         0);
        if (strcmp(weir__http_codings[i]->name, "br") != 0) /* which has an arena */
            assert_in_range(test_memory_live_bytes() - before, 1000, 100 << 10);
        weir__http_content_encoder_end(&encoder);
        weir_buf_release(out);
    }
}

/* An allocation that fails inside the Brotli library ends the process. */
TEST(content_coding, a_brotli_encoder_allocates_nothing_after_it_was_created)
{
    const weir__http_coding *brotli = weir__http_coding_find(weir_span_of_text("br"));
    weir_buf *text = content_text(60000), *noise = content_noise(60000), *out = make_out(0);

    for (int level = 1; brotli != NULL && level <= 9; level++) {
        weir__http_content_encoder encoder = {0};
        size_t left;

        assert_int_equal(weir__http_content_encoder_begin(&encoder, brotli, level, -1), 0);
        left = encoder.memory.left;
        for (unsigned i = 0; i < 8; i++) {
            weir_buf_clear(out);
            assert_int_equal(weir__http_content_encoder_run(
                                 &encoder, weir_buf_span(i % 3 == 0 ? noise : text),
                                 i % 4 == 2 ? WEIR__HTTP_CODING_FLUSH : WEIR__HTTP_CODING_RUN, out),
                             0);
            assert_int_equal(encoder.memory.left, left);
        }
        weir__http_content_encoder_end(&encoder);
    }
    weir_buf_release(text);
    weir_buf_release(noise);
    weir_buf_release(out);
}

/* Encodes and decodes; each step may fail for want of memory. */
static int round_trip(const weir__http_coding *coding, const weir_buf *text)
{
    weir_span name = weir_span_of_text(coding->name), in;
    weir__http_content_decoder *decoder = NULL;
    weir__http_content_encoder encoder = {0};
    weir_buf *coded = NULL, *out = NULL;
    int err = weir_buf_create(0, 0, &coded);

    if (err == 0)
        err = weir_buf_create(OUT_SIZE, 0, &out);
    if (err == 0)
        err = weir__http_content_encoder_begin(&encoder, coding, 9, -1);
    if (err == 0)
        err = weir__http_content_encoder_run(&encoder, weir_buf_span(text),
                                             WEIR__HTTP_CODING_FINISH, coded);
    if (err == 0)
        err = weir__http_content_decoder_create(&name, 1, &usual, &decoder);
    if (err == 0) {
        in = weir_buf_span(coded);
        err = weir__http_content_decoder_run(decoder, &in, out);
    }
    if (err == 0)
        assert_true(weir_buf_equal(out, text));
    weir__http_content_encoder_end(&encoder);
    weir__http_content_decoder_free(decoder);
    weir_buf_release(coded);
    weir_buf_release(out);
    return err;
}

TEST(content_coding, survives_allocation_failures)
{
    weir_buf *text = content_text(20000);

    for (size_t i = 0; i < weir__http_coding_count; i++)
        for (unsigned n = 1;; n++) {
            int err;

            test_memory_fail_at(n);
            err = round_trip(weir__http_codings[i], text);
            if (!test_memory_failed())
                break;
            assert_true(err == -ENOMEM || err == 0);
        }
    test_memory_fail_at(0);
    weir_buf_release(text);
}
