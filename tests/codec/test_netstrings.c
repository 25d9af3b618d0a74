/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/file_range.h>

#include "support/codec/decoder_fixture.h"
#include "support/codec/round_trip.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_netstrings_add(pipeline, feed->arg), 0);
}

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_netstrings_add(pipeline, options);
}

#define FEED(...) (&(const struct feed){.add = add, .arg = WEIR_NETSTRINGS_OPTIONS(__VA_ARGS__)})

TEST(netstrings, are_extracted)
{
    assert_text_fed(FEED(.max_length = 0), "5:hello,0:,12:hello world!,2:ok",
                    "hello||hello world!");
}

TEST(netstrings, over_the_limit_are_skipped)
{
    const char *text = "3:abc,4:abcd,1:e,7:ab", *error = "error(WEIR_ETOOLONG)";
    char expected[64];

    (void)snprintf(expected, sizeof(expected), "abc|%s|e|%s", error, error);
    assert_text_fed(FEED(.max_length = 3), text, expected);
    assert_text_fed(FEED(.max_length = 3, .report_after_skip = true), text, expected);
    assert_text_fed(FEED(.max_length = 3), "9999999999999999999:ab", error);
    assert_text_fed(FEED(.max_length = 3), "9223372036854775808:ab", error);
}

TEST(netstrings, over_the_limit_end_with_a_comma)
{
    const char *text = "4:abcd;1:e,", *expected = "error(WEIR_ETOOLONG)|error(WEIR_EMALFORMED)";

    assert_text_fed(FEED(.max_length = 3), text, expected);
    assert_text_fed(FEED(.max_length = 3, .report_after_skip = true), text, expected);
}

TEST(netstrings, reject_other_forms)
{
    static const char *const texts[] = {"1:a;",   ":a,",     "01:a,",  "00:,", "-1:a,",
                                        " 1:a,",  "1a,1:a,", "1 :a,",  "x",    "1:a,\n1:a,",
                                        "+1:a,1", "1:ab,",   "1::::,", ",1:"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *expected = i == 9 ? "a|error(WEIR_EMALFORMED)" : "error(WEIR_EMALFORMED)";

        assert_text_fed(FEED(.max_length = 0), texts[i], expected);
    }
}

TEST(netstrings, have_lengths_of_19_digits_at_most)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);

    fixture_write_text(embedded, "1234567890123456789");
    assert_string_equal(fixture_error(), "");
    fixture_write_text(embedded, "0");
    assert_string_equal(fixture_error(),
                        "WEIR_EMALFORMED: netstring length of more than 19 digits");
    weir_embedded_release(embedded);
}

TEST(netstrings, that_never_end_take_no_memory)
{
    weir_embedded *embedded = fixture_open(add_options, WEIR_NETSTRINGS_OPTIONS(.max_length = 5));

    fixture_write_text(embedded, "9223372036854775807:");
    assert_string_equal(fixture_error(), "WEIR_ETOOLONG: netstring over the limit of 5 bytes");
    fixture_assert_no_growth(embedded, "0123456789", 10);
    weir_embedded_release(embedded);
}

TEST(netstrings, are_slices_of_the_input)
{
    fixture_assert_slice(add_options, NULL, "1:a,2:bc,", 9, 1, 6);
}

TEST(netstrings, reject_a_limit_beyond_the_buffer_maximum)
{
    assert_int_equal(fixture_try_add(add_options, WEIR_NETSTRINGS_OPTIONS(.max_length = SIZE_MAX)),
                     -EINVAL);
}

/* ---- out ---- */

static void assert_written(weir_embedded *embedded, const char *expected)
{
    weir_buf *buf = weir_buf_of(weir_embedded_read_outbound(embedded));

    assert_non_null(buf);
    assert_int_equal(weir_buf_readable(buf), strlen(expected));
    assert_memory_equal(weir_buf_bytes(buf), expected, strlen(expected));
    weir_buf_release(buf);
}

TEST(netstrings, are_written_around_a_file)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    weir_file_range *range = NULL;
    weir_msg *file;

    assert_int_equal(weir_file_range_create(0, 7, 1234, 0, &range), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_file_range_msg(range)), 0);
    assert_written(embedded, "1234:");
    file = weir_embedded_read_outbound(embedded);
    assert_ptr_equal(weir_file_range_of(file), range);
    weir_msg_release(file);
    assert_written(embedded, ",");
    weir_embedded_release(embedded);
}

TEST(netstrings, round_trip)
{
    check_round_trip(&(const struct round_trip){
        .name = "netstrings",
        .add_encoder = add_options,
        .add_decoder = add_options,
        .length_max = 600,
    });
}

TEST(netstrings, survive_allocation_failures)
{
    const char *text = "3:abc,16:----------------,2:de,";

    fixture_assert_survives(add_options, WEIR_NETSTRINGS_OPTIONS(.max_length = 9), text,
                            strlen(text));
}
