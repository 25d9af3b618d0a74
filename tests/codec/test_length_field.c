/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames with a length field: Netty's LengthFieldBasedFrameDecoderTest, a grid of all parameters
 * against a reference, and hostile input.
 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include "support/codec/decoder_fixture.h"
#include "support/codec/reference_frames.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_length_field_add(pipeline, feed->arg), 0);
}

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_length_field_add(pipeline, options);
}

#define FEED(...) (&(const struct feed){.add = add, .arg = WEIR_LENGTH_FIELD_OPTIONS(__VA_ARGS__)})
#define BYTES(text) (text), sizeof(text) - 1

TEST(length_field, extracts_frames_and_strips_the_field)
{
    assert_fed(FEED(.width = 2, .strip = 2), BYTES("\0\5hello\0\0\0\2ok"), "hello||ok");
    assert_fed(FEED(.width = 1, .strip = 1),
               BYTES("\3abc\1d\5never"
                     "\5cut"),
               "abc|d|never");
}

TEST(length_field, keeps_the_field_unless_stripped)
{
    assert_fed(FEED(.width = 1), BYTES("\3abc\1d"), "\3abc|\1d");
}

TEST(length_field, supports_an_offset)
{
    assert_fed(FEED(.offset = 2, .width = 1, .strip = 3), BYTES("xx\3abcyy\1d"), "abc|d");
    assert_fed(FEED(.offset = 1, .width = 1, .adjustment = 1, .strip = 2), BYTES("x\2-abx\0-"),
               "-ab|-");
}

TEST(length_field, supports_lengths_that_include_the_header)
{
    assert_fed(FEED(.width = 2, .adjustment = -2, .strip = 2), BYTES("\0\5abc\0\2\0\3d"), "abc||d");
}

TEST(length_field, supports_both_byte_orders_and_every_width)
{
    assert_fed(FEED(.width = 3, .order = WEIR_LITTLE_ENDIAN, .strip = 3), BYTES("\2\0\0ab\1\0\0c"),
               "ab|c");
    assert_fed(FEED(.width = 8, .strip = 8), BYTES("\0\0\0\0\0\0\0\2ab"), "ab");
    assert_fed(FEED(.strip = 4), BYTES("\0\0\0\2ab"), "ab");
}

TEST(length_field, skips_a_frame_over_the_limit_and_continues)
{
    assert_fed(FEED(.max_length = 4, .width = 1, .strip = 1), BYTES("\3abc\4abcd\1e"),
               "abc|error(WEIR_ETOOLONG)|e");
    assert_fed(FEED(.max_length = 4, .width = 1, .strip = 1, .report_after_skip = true),
               BYTES("\3abc\4abcd\1e\7ab"), "abc|error(WEIR_ETOOLONG)|e|error(WEIR_ETOOLONG)");
}

TEST(length_field, rejects_invalid_lengths)
{
    assert_fed(FEED(.width = 1, .adjustment = -2), BYTES("\2\1x"), "\2|error(WEIR_EMALFORMED)");
    assert_fed(FEED(.width = 1, .strip = 3), BYTES("\3abc\1x\2cd"), "c|error(WEIR_EMALFORMED)");
}

TEST(length_field, handles_huge_lengths)
{
    assert_fed(FEED(.width = 8), BYTES("\x80\0\0\0\0\0\0\0abc"), "error(WEIR_ETOOLONG)");
    assert_fed(FEED(.width = 8), BYTES("\xff\xff\xff\xff\xff\xff\xff\xff-abc"),
               "error(WEIR_ETOOLONG)");
    assert_fed(FEED(.width = 8, .adjustment = -8), BYTES("\xff\xff\xff\xff\xff\xff\xff\xff-abc"),
               "error(WEIR_ETOOLONG)");
}

/* ---- error reports ---- */

TEST(length_field, reports_the_limit_as_soon_as_the_length_is_known)
{
    weir_embedded *embedded =
        fixture_open(add_options, WEIR_LENGTH_FIELD_OPTIONS(.max_length = 20, .width = 1));

    fixture_write(embedded, "\x40", 1);
    assert_string_equal(fixture_error(), "WEIR_ETOOLONG: frame over the limit of 20 bytes");
    weir_embedded_release(embedded);
}

TEST(length_field, may_report_after_the_frame_was_skipped)
{
    weir_embedded *embedded =
        fixture_open(add_options, WEIR_LENGTH_FIELD_OPTIONS(.max_length = 2, .width = 1,
                                                            .report_after_skip = true));

    fixture_write(embedded, "\3ab", 3);
    assert_string_equal(fixture_error(), "");
    fixture_write(embedded, "c", 1);
    assert_string_equal(fixture_error(), "WEIR_ETOOLONG: frame over the limit of 2 bytes");
    weir_embedded_release(embedded);
}

TEST(length_field, takes_no_memory_for_what_it_skips)
{
    weir_embedded *embedded = fixture_open(add_options, WEIR_LENGTH_FIELD_OPTIONS(.width = 8));

    fixture_write(embedded, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8);
    fixture_assert_no_growth(embedded, "0123456789", 10);
    weir_embedded_release(embedded);
}

static void remove_it(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "length-field", NULL), 0);
}

TEST(length_field, may_be_removed_by_an_error_handler)
{
    static const weir_handler remover = {.name = "remover", .error = remove_it};
    weir_embedded *embedded = NULL;
    weir_msg *msg;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_length_field_add(weir_embedded_pipeline(embedded),
                                           WEIR_LENGTH_FIELD_OPTIONS(.max_length = 2, .width = 1)),
                     0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &remover, NULL), 0);
    fixture_write(embedded, "GET /", 5);
    msg = weir_embedded_read_inbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 5);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(length_field, copies_nothing)
{
    fixture_assert_slice(add_options, WEIR_LENGTH_FIELD_OPTIONS(.width = 1, .strip = 1),
                         BYTES("\3abc\1d"), 1, 5);
}

/* ---- options ---- */

#define TRY(...) fixture_try_add(add_options, WEIR_LENGTH_FIELD_OPTIONS(__VA_ARGS__))

TEST(length_field, rejects_options_without_valid_frames)
{
    assert_int_equal(fixture_try_add(add_options, NULL), 0);
    assert_int_equal(TRY(.width = 9), -EINVAL);
    assert_int_equal(TRY(.order = (enum weir_byte_order)2), -EINVAL);
    assert_int_equal(TRY(.max_length = SIZE_MAX), -EINVAL);
    assert_int_equal(TRY(.max_length = 8, .offset = 4), 0);
    assert_int_equal(TRY(.max_length = 8, .offset = 5), -EINVAL);
    assert_int_equal(TRY(.max_length = 8, .offset = SIZE_MAX), -EINVAL);
    assert_int_equal(TRY(.max_length = 8, .strip = 9), -EINVAL);
    assert_int_equal(TRY(.max_length = 8, .adjustment = 4), 0);
    assert_int_equal(TRY(.max_length = 8, .adjustment = 5), -EINVAL);
    assert_int_equal(TRY(.max_length = 8, .adjustment = INT64_MAX), -EINVAL);
    assert_int_equal(TRY(.width = 1, .adjustment = -255), 0);
    assert_int_equal(TRY(.width = 1, .adjustment = -256), -EINVAL);
    assert_int_equal(TRY(.adjustment = INT64_MIN), -EINVAL);
    assert_int_equal(TRY(.width = 8, .adjustment = INT64_MIN), 0);
}

/* ---- all of them ---- */

#define STREAM_SIZE 512

struct stream {
    uint8_t bytes[STREAM_SIZE];
    size_t length;
};

static void append(struct stream *stream, size_t count)
{
    for (; count > 0 && stream->length < STREAM_SIZE; count--) {
        stream->bytes[stream->length] = (uint8_t)('a' + stream->length % 26);
        stream->length++;
    }
}

static void append_frame(struct stream *stream, const weir_length_field_options *options,
                         int64_t value)
{
    append(stream, options->offset);
    for (size_t i = 0; i < options->width; i++) {
        size_t place = options->order == WEIR_BIG_ENDIAN ? options->width - 1 - i : i;

        stream->bytes[stream->length++] = (uint8_t)((uint64_t)value >> 8 * place);
    }
    if (value + options->adjustment > 0)
        append(stream, (size_t)(value + options->adjustment));
}

static void check(const weir_length_field_options *options)
{
    static const int64_t values[] = {5, 11, 6, 60, 7, 4, 0, 9, 1};
    struct transcript expected = {0};
    struct stream stream = {.length = 0};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        append_frame(&stream, options, values[i]);
    reference_length_field(options, stream.bytes, stream.length, &expected);
    if (!transcript_is_same_for_cuts(&expected, add_options, options, stream.bytes, stream.length,
                                     4711))
        fail_msg("offset %zu width %zu order %d adjustment %lld strip %zu limit %zu late %d",
                 options->offset, options->width, (int)options->order,
                 (long long)options->adjustment, options->strip, options->max_length,
                 options->report_after_skip);
    transcript_clear(&expected);
}

static void check_row(size_t width, size_t offset, int64_t adjustment, size_t strip)
{
    for (unsigned bits = 0; bits < 8; bits++) {
        weir_length_field_options options = {
            .size = sizeof(options),
            .max_length = (bits & 1) != 0 ? 24 : 1000,
            .offset = offset,
            .width = width,
            .order = (bits & 2) != 0 ? WEIR_BIG_ENDIAN : WEIR_LITTLE_ENDIAN,
            .adjustment = adjustment,
            .strip = strip,
            .report_after_skip = (bits & 4) != 0,
        };

        check(&options);
    }
}

TEST(length_field, agrees_with_a_plain_reference_for_all_parameters)
{
    for (size_t width = 1; width <= 8; width++)
        for (size_t offset = 0; offset <= 3; offset += 3)
            for (int64_t adjustment = -4; adjustment <= 4; adjustment += 2)
                for (size_t strip = 0; strip <= offset + width + 2; strip += width)
                    check_row(width, offset, adjustment, strip);
}

TEST(length_field, survives_allocation_failures)
{
    fixture_assert_survives(add_options, WEIR_LENGTH_FIELD_OPTIONS(.max_length = 9, .width = 1),
                            BYTES("\3abc\x10----------------\2de"));
}
