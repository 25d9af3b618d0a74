/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delimited frames: Netty's DelimiterBasedFrameDecoderTest, and random streams against a reference.
 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include "support/codec/decoder_fixture.h"
#include "support/codec/reference_frames.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_delimited_add(pipeline, feed->arg), 0);
}

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_delimited_add(pipeline, options);
}

#define SPANS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct row {
    weir_span spans[4];
    weir_delimited_options options;
};

static struct row *make_row(struct row *row, const char *const *delimiters)
{
    row->options = *WEIR_DELIMITED_OPTIONS();
    for (; delimiters[row->options.count] != NULL; row->options.count++)
        row->spans[row->options.count] = weir_span_of_text(delimiters[row->options.count]);
    row->options.delimiters = row->spans;
    return row;
}

static void check(const char *const *delimiters, const char *text, const char *expected)
{
    struct row row;
    struct feed feed = {.add = add, .arg = &make_row(&row, delimiters)->options};

    assert_text_fed(&feed, text, expected);
}

TEST(delimited, frames_end_with_any_of_the_delimiters)
{
    check(SPANS(";"), "one;two;;rest", "one|two|");
    check(SPANS(";", "\n"), "one;two\nthree;\n", "one|two|three|");
    check(SPANS("--end--"), "a--en--end--b--end-", "a--en");
}

TEST(delimited, the_shortest_frame_wins)
{
    check(SPANS("bc", "abcd"), "xabcdyabcd", "x|y");
    check(SPANS("\n", "\r\n"), "a\r\nb\nc\r", "a|b");
}

TEST(delimited, the_first_in_the_list_wins_at_the_same_position)
{
    check(SPANS("\r\n", "\r"), "a\rb\r\nc\r", "a|b|c");
    check(SPANS("\r", "\r\n"), "a\rb\r\nc\r", "a|b|\nc");
}

TEST(delimited, delimiters_may_overlap_themselves)
{
    check(SPANS("aab"), "aaab-aaaab", "a|-aa");
}

TEST(delimited, delimiters_may_hold_any_byte_and_be_kept)
{
    const weir_span ends[] = {weir_span_of("\0\xff", 2)};
    const struct feed feed = {
        .add = add, .arg = WEIR_DELIMITED_OPTIONS(.delimiters = ends, .count = 1, .max_length = 9)};
    struct row row;
    struct feed keeping = {.add = add, .arg = &make_row(&row, SPANS("--"))->options};

    row.options.keep_delimiter = true;
    assert_fed(&feed, "ab\0\xff\xff\0\0\xff", 8, "ab|\xff");
    assert_text_fed(&keeping, "a--b---c", "a--|b--");
}

TEST(delimited, frames_over_the_limit_are_skipped)
{
    struct row row;
    struct feed feed = {.add = add, .arg = &make_row(&row, SPANS("--", ";"))->options};

    row.options.max_length = 3;
    assert_text_fed(&feed, "abc--abcd--ab-cd;e;abc-",
                    "abc|error(WEIR_ETOOLONG)|"
                    "error(WEIR_ETOOLONG)|e|"
                    "error(WEIR_ETOOLONG)");
    row.options.report_after_skip = true;
    assert_text_fed(&feed, "abc--abcd--ab-cd;e;abcd",
                    "abc|error(WEIR_ETOOLONG)|"
                    "error(WEIR_ETOOLONG)|e|"
                    "error(WEIR_ETOOLONG)");
}

#define TRY(...) fixture_try_add(add_options, WEIR_DELIMITED_OPTIONS(__VA_ARGS__))

TEST(delimited, rejects_invalid_options)
{
    const weir_span empty[] = {weir_span_of("", 0)}, fine[] = {weir_span_of(";", 1)};
    char large[WEIR_DELIMITER_MAX + 1] = "";
    const weir_span long_one[] = {weir_span_of(large, sizeof(large))};

    assert_int_equal(fixture_try_add(add_options, NULL), -EINVAL);
    assert_int_equal(TRY(.delimiters = empty, .count = 1), -EINVAL);
    assert_int_equal(TRY(.delimiters = long_one, .count = 1), -EINVAL);
    assert_int_equal(TRY(.delimiters = fine, .count = 257), -EINVAL);
    assert_int_equal(TRY(.delimiters = fine, .count = 1, .max_length = SIZE_MAX), -EINVAL);
}

/* ---- random ones, of few letters, so that much looks like a delimiter ---- */

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 16;
}

static void fill(uint8_t *bytes, size_t length, uint32_t *random)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)('a' + next_random(random) % 3);
}

static void check_random(uint32_t seed)
{
    struct transcript expected = {0};
    uint32_t random = seed;
    uint8_t text[80], delimiters[4][4];
    weir_span spans[4];
    weir_delimited_options options = {.size = sizeof(options), .delimiters = spans};

    options.count = 1 + next_random(&random) % 4;
    options.max_length = 1 + next_random(&random) % 20;
    options.keep_delimiter = next_random(&random) % 2 == 0;
    options.report_after_skip = next_random(&random) % 2 == 0;
    for (size_t i = 0; i < options.count; i++) {
        spans[i] = weir_span_of(delimiters[i], 1 + next_random(&random) % 4);
        fill(delimiters[i], spans[i].length, &random);
    }
    fill(text, sizeof(text), &random);
    reference_delimited(&options, text, sizeof(text), &expected);
    if (!transcript_is_same_for_cuts(&expected, add_options, &options, text, sizeof(text), random))
        fail_msg("seed %u", seed);
    transcript_clear(&expected);
}

TEST(delimited, agrees_with_a_plain_reference)
{
    for (uint32_t seed = 1; seed <= 1000; seed++)
        check_random(seed);
}

TEST(delimited, survives_allocation_failures)
{
    const weir_span ends[] = {weir_span_of(";", 1)};
    const char *text = "one;two;three, four, five;six;";

    fixture_assert_survives(add_options,
                            WEIR_DELIMITED_OPTIONS(.delimiters = ends, .count = 1, .max_length = 9),
                            text, strlen(text));
}
