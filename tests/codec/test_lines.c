/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines: Netty's LineBasedFrameDecoderTest, and more.
 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include "support/codec/decoder_fixture.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_lines_add(pipeline, feed->arg), 0);
}

#define FEED(...) (&(const struct feed){.add = add, .arg = WEIR_LINES_OPTIONS(__VA_ARGS__)})

TEST(lines, end_with_lf_or_crlf)
{
    assert_text_fed(FEED(.max_length = 0), "one\ntwo\r\n\n\r\nthree\rfour\r\r\nfive",
                    "one|two|||three\rfour\r");
}

TEST(lines, may_end_with_only_one_of_them)
{
    assert_text_fed(FEED(.end = WEIR_LINE_END_LF), "one\ntwo\r\n", "one|two\r");
    assert_text_fed(FEED(.end = WEIR_LINE_END_CRLF), "one\ntwo\r\n\r\r\n", "one\ntwo|\r");
}

TEST(lines, may_keep_their_end)
{
    assert_text_fed(FEED(.keep_end = true), "one\ntwo\r\n\n", "one\n|two\r\n|\n");
}

TEST(lines, of_exactly_the_limit_are_accepted)
{
    assert_text_fed(FEED(.max_length = 3), "abc\nabc\r\nabc\r", "abc|abc|error(WEIR_ETOOLONG)");
    assert_text_fed(FEED(.max_length = 3, .keep_end = true), "abc\r\n", "abc\r\n");
}

TEST(lines, over_the_limit_are_skipped)
{
    const char *text = "abcd\nab\nabcdefgh\r\nab\nab\rd\nc\nabcd";
    const char *expected = "error(WEIR_ETOOLONG)|ab|error(WEIR_ETOOLONG)|ab|error(WEIR_ETOOLONG)|c|"
                           "error(WEIR_ETOOLONG)";

    assert_text_fed(FEED(.max_length = 3), text, expected);
    assert_text_fed(FEED(.max_length = 3, .report_after_skip = true), text, expected);
}

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_lines_add(pipeline, options);
}

TEST(lines, are_slices_of_the_input)
{
    fixture_assert_slice(add_options, NULL, "a\nbc\r\n", 6, 1, 2);
}

TEST(lines, report_a_long_line_at_once_or_after_skipping)
{
    weir_embedded *embedded = fixture_open(add_options, WEIR_LINES_OPTIONS(.max_length = 3));

    fixture_write_text(embedded, "abcd");
    assert_string_equal(fixture_error(), "WEIR_ETOOLONG: line over the limit of 3 bytes");
    weir_embedded_release(embedded);
    embedded =
        fixture_open(add_options, WEIR_LINES_OPTIONS(.max_length = 3, .report_after_skip = true));
    fixture_write_text(embedded, "abcdefgh");
    assert_string_equal(fixture_error(), "");
    fixture_write_text(embedded, "\n");
    assert_string_equal(fixture_error(), "WEIR_ETOOLONG: line over the limit of 3 bytes");
    weir_embedded_release(embedded);
}

TEST(lines, that_never_end_take_no_memory)
{
    weir_embedded *embedded = fixture_open(add_options, WEIR_LINES_OPTIONS(.max_length = 30));

    fixture_assert_no_growth(embedded, "0123456789\r", 11);
    weir_embedded_release(embedded);
}

TEST(lines, reject_invalid_options)
{
    assert_int_equal(fixture_try_add(add_options, WEIR_LINES_OPTIONS(.max_length = SIZE_MAX)),
                     -EINVAL);
    assert_int_equal(fixture_try_add(add_options, WEIR_LINES_OPTIONS(.end = (enum weir_line_end)3)),
                     -EINVAL);
}

TEST(lines, survive_allocation_failures)
{
    const char *text = "one\r\ntwo\nthree, four, five\nsix\n";

    fixture_assert_survives(add_options, WEIR_LINES_OPTIONS(.max_length = 9), text, strlen(text));
}
