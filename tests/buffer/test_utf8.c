/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer/utf8.h"

#include "support/buffer/buf.h"

/* Encodes a code point. Returns the length. */
static size_t encode(uint32_t point, size_t length, uint8_t *bytes)
{
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = length; i-- > 1; point >>= 6)
        bytes[i] = (uint8_t)(0x80 | (point & 0x3f));
    bytes[0] = (uint8_t)(marks[length] | point);
    return length;
}

static size_t shortest(uint32_t point)
{
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

TEST(utf8, is_every_character_in_its_shortest_form)
{
    for (uint32_t point = 0; point < 0x200000; point++) {
        bool is_character = point < 0x110000 && (point < 0xd800 || point > 0xdfff);
        uint8_t bytes[4];
        size_t length = encode(point, shortest(point), bytes);

        assert_int_equal(weir_span_is_utf8(weir_span_of(bytes, length)), is_character);
        assert_int_equal(weir_span_is_utf8(weir_span_of(bytes, length - 1)), length == 1);
    }
}

TEST(utf8, rejects_overlong_forms)
{
    uint8_t bytes[4];

    for (uint32_t point = 0; point < 0x10000; point++)
        for (size_t length = shortest(point) + 1; length <= 4; length++)
            assert_false(weir_span_is_utf8(weir_span_of(bytes, encode(point, length, bytes))));
}

TEST(utf8, rejects_invalid_lead_and_continuation_bytes)
{
    for (int first = 0x80; first < 0x100; first++) {
        for (int second = 0; second < 0x100; second++) {
            uint8_t bytes[] = {'a', (uint8_t)first, (uint8_t)second};
            bool two = first >= 0xc2 && first <= 0xdf && second >= 0x80 && second <= 0xbf;

            assert_int_equal(weir_span_is_utf8(weir_span_of(bytes, 3)), two);
        }
    }
}

static const char mixed[] = "plain text, then gr\xc3\xbc\xc3\x9f"
                            "e \xe2\x82\xac \xf0\x9f\x98\x80, and plain again";

TEST(utf8, can_be_cut_anywhere)
{
    for (size_t cut = 0; cut <= strlen(mixed); cut++) {
        weir_utf8 utf8 = {0, 0, 0};
        bool whole = cut == strlen(mixed) || ((uint8_t)mixed[cut] & 0xc0) != 0x80;

        assert_int_equal(weir_utf8_check(&utf8, weir_span_of(mixed, cut)), 0);
        assert_int_equal(weir_utf8_is_complete(&utf8), whole);
        assert_int_equal(weir_span_is_utf8(weir_span_of(mixed, cut)), whole);
        assert_int_equal(weir_utf8_check(&utf8, weir_span_of_text(mixed + cut)), 0);
        assert_true(weir_utf8_is_complete(&utf8));
    }
}

/* At any position among words of ASCII that are skipped. */
TEST(utf8, sees_a_wrong_byte_anywhere)
{
    for (size_t length = 1; length <= 40; length++) {
        for (size_t at = 0; at < length; at++) {
            char bytes[40];

            memset(bytes, 'x', sizeof(bytes));
            assert_true(weir_span_is_utf8(weir_span_of(bytes, length)));
            bytes[at] = '\x80';
            assert_false(weir_span_is_utf8(weir_span_of(bytes, length)));
        }
    }
}

TEST(utf8, keeps_failing_after_a_failure)
{
    weir_utf8 utf8 = {0, 0, 0};

    assert_int_equal(weir_utf8_check(&utf8, weir_span_of_text("ok\xff")), -EILSEQ);
    assert_int_equal(weir_utf8_check(&utf8, weir_span_of_text("ok")), -EILSEQ);
    assert_int_equal(weir_utf8_check(&utf8, weir_span_of(NULL, 0)), -EILSEQ);
    assert_false(weir_utf8_is_complete(&utf8));
}

TEST(utf8, of_a_buffer_is_utf8_if_the_readable_bytes_are)
{
    weir_buf *buf = make_buf_of("\x80 ok \xc3");

    assert_false(weir_buf_is_utf8(buf));
    assert_int_equal(weir_buf_skip(buf, 1), 0);
    assert_false(weir_buf_is_utf8(buf));
    assert_int_equal(weir_buf_set_write_index(buf, 5), 0);
    assert_true(weir_buf_is_utf8(buf));
    weir_buf_clear(buf);
    assert_true(weir_buf_is_utf8(buf));
    weir_buf_release(buf);
}

/* ---- many bytes at a time ---- */

/* The bytes at which a rule begins or ends. */
static const uint8_t edges[] = {0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
                                0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf4, 0xf5};

/* The number of bytes that are whole, valid characters, by code points. */
static size_t count_valid(const uint8_t *bytes, size_t length)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t at = 0;

    while (at < length) {
        uint8_t first = bytes[at];
        size_t count = first < 0x80   ? 1
                       : first < 0xc0 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                                      : 4;
        uint32_t point = first & (count == 1 ? 0x7f : 0x7fu >> count);

        if (count == 0 || first >= 0xf8 || count > length - at)
            break;
        for (size_t i = 1; i < count; i++) {
            if (bytes[at + i] >> 6 != 2)
                return at;
            point = point << 6 | (bytes[at + i] & 0x3fu);
        }
        if (point < smallest[count] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
            break;
        at += count;
    }
    return at;
}

static bool is_boundary(const uint8_t *bytes, size_t at, size_t length)
{
    return at == length || bytes[at] >> 6 != 2;
}

/* A text with four bytes of all kinds at `at`, in a block, at its end, and across the end. */
static void check_edges(weir__utf8_skip_fn *take, size_t at)
{
    enum { COUNT = sizeof(edges), LENGTH = 96 };

    uint8_t text[LENGTH];

    memset(text, 'x', LENGTH);
    for (unsigned i = 0; i < COUNT * COUNT * COUNT * COUNT; i++) {
        size_t valid, skipped;

        text[at] = edges[i % COUNT];
        text[at + 1] = edges[i / COUNT % COUNT];
        text[at + 2] = edges[i / COUNT / COUNT % COUNT];
        text[at + 3] = edges[i / COUNT / COUNT / COUNT];
        valid = count_valid(text + at, LENGTH - at) + at;
        skipped = take(text, LENGTH);
        if ((skipped > at && count_valid(text + at, skipped - at) != skipped - at) ||
            weir_span_is_utf8(weir_span_of(text, LENGTH)) != (valid == LENGTH))
            fail_msg("%02x %02x %02x %02x at %zu: %zu skipped, %zu valid", text[at], text[at + 1],
                     text[at + 2], text[at + 3], at, skipped, valid);
    }
}

TEST(utf8, skips_only_valid_characters_in_every_variant)
{
    for (const weir__utf8_skipper *skipper = weir__utf8_skippers; skipper->name != NULL;
         skipper++) {
        if (!skipper->is_there())
            continue;
        check_edges(skipper->skip, 28);
        check_edges(skipper->skip, 30);
        check_edges(skipper->skip, 31);
    }
}

/* Text of all lengths of characters, in memory that ends with it. */
TEST(utf8, takes_long_texts_in_any_parts)
{
    static const char *const words[] = {"plain ", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac\xed\x9f\xbf",
                                        "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", "a"};

    for (size_t start = 0; start < 5; start++) {
        weir_buf *buf = make_buf(0, 4096);
        weir_span all;

        for (size_t i = 0; i < 60; i++)
            assert_int_equal(weir_buf_write_string(buf, words[(start + i * i) % 5]), 0);
        all = weir_buf_span(buf);
        assert_true(weir_span_is_utf8(all));
        for (size_t cut = 0; cut <= all.length; cut++) {
            weir_utf8 utf8 = {0, 0, 0};

            assert_int_equal(weir_utf8_check(&utf8, weir_span_of(all.data, cut)), 0);
            assert_int_equal(weir_utf8_is_complete(&utf8), is_boundary(all.data, cut, all.length));
            assert_int_equal(weir_utf8_check(&utf8, weir_span_of(all.data + cut, all.length - cut)),
                             0);
            assert_true(weir_utf8_is_complete(&utf8));
        }
        weir_buf_release(buf);
    }
}

/* Fails at the first wrong byte, not behind it: earlier parts are accepted. */
TEST(utf8, fails_with_the_first_wrong_byte)
{
    char text[200];

    for (size_t at = 0; at < sizeof(text); at++) {
        weir_utf8 utf8 = {0, 0, 0};

        memset(text, 'x', sizeof(text));
        text[at] = '\xff';
        assert_int_equal(weir_utf8_check(&utf8, weir_span_of(text, at)), 0);
        assert_int_equal(weir_utf8_check(&utf8, weir_span_of(text + at, 1)), -EILSEQ);
        utf8 = (weir_utf8){0, 0, 0};
        assert_int_equal(weir_utf8_check(&utf8, weir_span_of(text, sizeof(text))), -EILSEQ);
    }
}
