/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: Netty's JsonObjectDecoderTest, and nesting that would overflow a recursive parser.
 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>

#include "support/codec/decoder_fixture.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_json_splitter_add(pipeline, feed->arg), 0);
}

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_json_splitter_add(pipeline, options);
}

#define FEED(...) (&(const struct feed){.add = add, .arg = WEIR_JSON_SPLITTER_OPTIONS(__VA_ARGS__)})

TEST(json_splitter, finds_objects_and_arrays)
{
    assert_text_fed(FEED(.max_length = 0), "{\"a\":[1,2]} \r\n\t{}[3][]  {\"b\"",
                    "{\"a\":[1,2]}|{}|[3]|[]");
}

TEST(json_splitter, ignores_brackets_in_strings)
{
    assert_text_fed(FEED(.max_length = 0), "{\"}\":\"]\"}[\"{\"]", "{\"}\":\"]\"}|[\"{\"]");
    assert_text_fed(FEED(.max_length = 0), "[\"\\\"]\"][\"\\\\\"]", "[\"\\\"]\"]|[\"\\\\\"]");
    assert_text_fed(FEED(.max_length = 0), "[\"\\\\\\\"]\"]", "[\"\\\\\\\"]\"]");
}

TEST(json_splitter, rejects_anything_else_between_values)
{
    assert_text_fed(FEED(.max_length = 0), "{} 12 {}", "{}|error(WEIR_EMALFORMED)");
    assert_text_fed(FEED(.max_length = 0), "]", "error(WEIR_EMALFORMED)");
    assert_text_fed(FEED(.max_length = 0), "{},{}", "{}|error(WEIR_EMALFORMED)");
}

TEST(json_splitter, skips_values_over_the_limit)
{
    const char *text = " [1,2] [\"]]]\",2]{}[1,234";
    const char *expected = "[1,2]|error(WEIR_ETOOLONG)|{}|error(WEIR_ETOOLONG)";

    assert_text_fed(FEED(.max_length = 5), text, expected);
    assert_text_fed(FEED(.max_length = 5, .report_after_skip = true), text, expected);
}

TEST(json_splitter, passes_slices_on)
{
    fixture_assert_slice(add_options, NULL, "{} [1]", 6, 1, 3);
}

TEST(json_splitter, rejects_a_limit_beyond_the_buffer_maximum)
{
    assert_int_equal(
        fixture_try_add(add_options, WEIR_JSON_SPLITTER_OPTIONS(.max_length = SIZE_MAX)), -EINVAL);
}

/* ---- deep ---- */

#define DEPTH ((size_t)1 << 20)

static weir_msg *make_nest(size_t depth)
{
    weir_buf *nest = NULL;

    assert_int_equal(weir_buf_create(2 * depth, 0, &nest), 0);
    assert_int_equal(weir_buf_write_fill(nest, '[', depth), 0);
    assert_int_equal(weir_buf_write_fill(nest, ']', depth), 0);
    return weir_buf_msg(nest);
}

TEST(json_splitter, counts_a_million_brackets)
{
    weir_embedded *embedded =
        fixture_open(add_options, WEIR_JSON_SPLITTER_OPTIONS(.max_length = 2 * DEPTH));
    weir_msg *msg;

    assert_int_equal(weir_embedded_write_inbound(embedded, make_nest(DEPTH)), 0);
    msg = weir_embedded_read_inbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 2 * DEPTH);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(json_splitter, finds_the_end_of_a_deep_value_over_the_limit)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    weir_msg *msg;

    assert_int_equal(weir_embedded_write_inbound(embedded, make_nest(DEPTH)), 0);
    assert_string_equal(fixture_error(),
                        "WEIR_ETOOLONG: JSON value over the limit of 1048576 bytes");
    fixture_write_text(embedded, "{}");
    msg = weir_embedded_read_inbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 2);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(json_splitter, keeps_nothing_of_a_value_that_never_ends)
{
    weir_embedded *embedded =
        fixture_open(add_options, WEIR_JSON_SPLITTER_OPTIONS(.max_length = 20));

    fixture_assert_no_growth(embedded, "[{\"a\":1},", 9);
    weir_embedded_release(embedded);
}

TEST(json_splitter, survives_allocation_failures)
{
    const char *text = "{\"a\":1} [1,2,3,4,5,6,7,8] [1]";

    fixture_assert_survives(add_options, WEIR_JSON_SPLITTER_OPTIONS(.max_length = 9), text,
                            strlen(text));
}
