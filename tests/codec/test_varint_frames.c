/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Varint frames: Netty's ProtobufVarint32FrameDecoderTest and ProtobufVarint32LengthFieldPrepender.
 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/file_range.h>

#include "support/codec/decoder_fixture.h"
#include "support/codec/round_trip.h"

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_varint_frames_add(pipeline, feed->arg), 0);
}

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_varint_frames_add(pipeline, options);
}

#define FEED(...) (&(const struct feed){.add = add, .arg = WEIR_VARINT_FRAMES_OPTIONS(__VA_ARGS__)})
#define BYTES(text) (text), sizeof(text) - 1

TEST(varint_frames, are_extracted)
{
    assert_fed(FEED(.max_length = 0), BYTES("\5hello\0\2ok\3cu"), "hello||ok");
}

TEST(varint_frames, have_lengths_of_several_bytes)
{
    char stream[303] = "\xac\x02", text[FEED_SIZE];
    const struct feed *feed = FEED(.max_length = 300);

    memset(stream + 2, 'x', 300);
    feed_bytewise(feed, stream, 302, text);
    assert_int_equal(strlen(text), 300);
    feed_cut(feed, stream, 302, 1, 2, text);
    assert_int_equal(strlen(text), 300);
}

TEST(varint_frames, over_the_limit_are_skipped)
{
    assert_fed(FEED(.max_length = 3), BYTES("\3abc\4abcd\1e\7ab"),
               "abc|error(WEIR_ETOOLONG)|e|error(WEIR_ETOOLONG)");
    assert_fed(FEED(.max_length = 3, .report_after_skip = true), BYTES("\3abc\4abcd\1e\7ab"),
               "abc|error(WEIR_ETOOLONG)|e|error(WEIR_ETOOLONG)");
    assert_fed(FEED(.max_length = 3), BYTES("\xff\xff\xff\xff\x0f-abc"), "error(WEIR_ETOOLONG)");
}

TEST(varint_frames, reject_non_minimal_and_long_lengths)
{
    assert_fed(FEED(.max_length = 3), BYTES("\xff\xff\xff\xff\x1f-abc"), "error(WEIR_EMALFORMED)");
    assert_fed(FEED(.max_length = 3), BYTES("\1a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
               "a|error(WEIR_EMALFORMED)");
    assert_fed(FEED(.max_length = 3), BYTES("\1a\x81\x00-"), "a|error(WEIR_EMALFORMED)");
}

TEST(varint_frames, that_never_end_take_no_memory)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);

    fixture_write(embedded, "\xff\xff\xff\xff\x0f", 5);
    assert_string_equal(fixture_error(), "WEIR_ETOOLONG: frame over the limit of 1048576 bytes");
    fixture_assert_no_growth(embedded, "0123456789", 10);
    weir_embedded_release(embedded);
}

TEST(varint_frames, are_slices_of_the_input)
{
    fixture_assert_slice(add_options, NULL, BYTES("\1a\2bc"), 1, 3);
}

TEST(varint_frames, reject_a_limit_beyond_the_buffer_maximum)
{
    assert_int_equal(
        fixture_try_add(add_options, WEIR_VARINT_FRAMES_OPTIONS(.max_length = SIZE_MAX)), -EINVAL);
}

/* ---- out ---- */

static void assert_file_header(int64_t length, const char *expected, size_t size)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    weir_file_range *range = NULL;
    weir_msg *header, *file;

    assert_int_equal(weir_file_range_create(0, 0, length, 0, &range), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_file_range_msg(range)), 0);
    header = weir_embedded_read_outbound(embedded);
    file = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(header)), size);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(header)), expected, size);
    assert_ptr_equal(weir_file_range_of(file), range);
    weir_msg_release(header);
    weir_msg_release(file);
    weir_embedded_release(embedded);
}

TEST(varint_frames, write_the_length_before_the_message)
{
    assert_file_header(0, BYTES("\0"));
    assert_file_header(127, BYTES("\x7f"));
    assert_file_header(128, BYTES("\x80\1"));
    assert_file_header(300, BYTES("\xac\2"));
    assert_file_header(UINT32_MAX, BYTES("\xff\xff\xff\xff\x0f"));
}

TEST(varint_frames, fail_messages_above_32_bits)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    weir_file_range *range = NULL;

    assert_int_equal(weir_file_range_create(0, 0, (int64_t)1 << 32, 0, &range), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_file_range_msg(range)),
                     WEIR_ETOOLONG);
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_release(embedded);
}

TEST(varint_frames, round_trip)
{
    check_round_trip(&(const struct round_trip){
        .name = "varint frames",
        .add_encoder = add_options,
        .add_decoder = add_options,
        .length_max = 600,
    });
}

TEST(varint_frames, survive_allocation_failures)
{
    fixture_assert_survives(add_options, WEIR_VARINT_FRAMES_OPTIONS(.max_length = 9),
                            BYTES("\3abc\x10----------------\2de"));
}
