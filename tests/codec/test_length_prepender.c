/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/file_range.h>

#include "support/codec/feed.h"
#include "support/codec/round_trip.h"
#include "support/memory.h"

#define OPEN(...) open_with(WEIR_LENGTH_PREPENDER_OPTIONS(__VA_ARGS__))

static weir_embedded *open_with(const weir_length_prepender_options *options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_length_prepender_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static void assert_sent(weir_embedded *embedded, const char *bytes, size_t length)
{
    weir_composite *out = weir_composite_of(weir_embedded_read_outbound(embedded));
    char sent[64];

    assert_non_null(out);
    assert_int_equal(weir_composite_readable(out), length);
    assert_int_equal(weir_composite_peek_bytes(out, sent, length), 0);
    assert_memory_equal(sent, bytes, length);
    weir_composite_release(out);
}

static void check(const weir_length_prepender_options *options, const char *bytes, size_t length)
{
    weir_embedded *embedded = open_with(options);

    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes("hello", 5)), 0);
    assert_sent(embedded, bytes, length);
    weir_embedded_release(embedded);
}

#define CHECK(bytes, ...) \
    check(WEIR_LENGTH_PREPENDER_OPTIONS(__VA_ARGS__), (bytes), sizeof(bytes) - 1)

TEST(length_prepender, writes_the_length_before_the_message)
{
    CHECK("\0\0\0\5hello", .width = 0);
    CHECK("\5hello", .width = 1);
    CHECK("\5\0\0hello", .width = 3, .order = WEIR_LITTLE_ENDIAN);
    CHECK("\0\0\0\0\0\0\0\5hello", .width = 8);
    CHECK("\0\7hello", .width = 2, .counts_itself = true);
    CHECK("\0\4hello", .width = 2, .counts_itself = true, .adjustment = -3);
    CHECK("\0\6hello", .width = 2, .adjustment = 1);
}

TEST(length_prepender, does_not_copy_the_message)
{
    weir_embedded *embedded = OPEN(.width = 2);
    weir_msg *msg = feed_bytes("hello", 5);
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(msg));
    weir_composite *out;
    weir_span body;

    assert_int_equal(weir_embedded_write_outbound(embedded, msg), 0);
    out = weir_composite_of(weir_embedded_read_outbound(embedded));
    assert_int_equal(weir_composite_component(out, 1, &body), 0);
    assert_ptr_equal(body.data, bytes);
    weir_composite_release(out);
    weir_embedded_release(embedded);
}

TEST(length_prepender, fails_a_write_that_does_not_fit_and_continues)
{
    weir_embedded *embedded = OPEN(.width = 1, .adjustment = -2);
    char large[258] = "";

    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes(large, 258)), WEIR_ETOOLONG);
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes(large, 1)), -EINVAL);
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes(large, 257)), 0);
    weir_msg_release(weir_embedded_read_outbound(embedded));
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_release(embedded);
}

TEST(length_prepender, passes_other_messages_on)
{
    static const weir_msg_type type = {.name = "other", .destroy = NULL};
    weir_embedded *embedded = OPEN(.width = 1);
    weir_msg msg;

    weir_msg_init(&msg, &type);
    assert_int_equal(weir_embedded_write_outbound(embedded, &msg), 0);
    assert_ptr_equal(weir_embedded_read_outbound(embedded), &msg);
    weir_embedded_release(embedded);
}

TEST(length_prepender, rejects_invalid_options)
{
    weir_embedded *embedded = OPEN(.width = 1);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);

    assert_int_equal(weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.width = 9)),
                     -EINVAL);
    assert_int_equal(weir_length_prepender_add(
                         pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.order = (enum weir_byte_order)2)),
                     -EINVAL);
    assert_int_equal(
        weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.adjustment = INT64_MAX,
                                                                          .counts_itself = true)),
        -EINVAL);
    weir_embedded_release(embedded);
}

/* ---- files ---- */

static weir_msg *make_range(int64_t length)
{
    weir_file_range *range = NULL;

    assert_int_equal(weir_file_range_create(0, 0, length, 0, &range), 0);
    return weir_file_range_msg(range);
}

TEST(length_prepender, writes_the_field_before_a_file)
{
    weir_embedded *embedded = OPEN(.width = 2);
    weir_msg *range = make_range(0x1234), *field;

    assert_int_equal(weir_embedded_write_outbound(embedded, range), 0);
    field = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(field)), 2);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(field)), "\x12\x34", 2);
    weir_msg_release(field);
    assert_ptr_equal(weir_embedded_read_outbound(embedded), range);
    weir_msg_release(range);
    weir_embedded_release(embedded);
}

TEST(length_prepender, writes_a_file_without_a_promise)
{
    weir_embedded *embedded = OPEN(.width = 2);

    weir_channel_write_and_flush(weir_embedded_channel(embedded), make_range(3), NULL);
    weir_embedded_run(embedded);
    for (int i = 0; i < 2; i++) {
        weir_msg *msg = weir_embedded_read_outbound(embedded);

        assert_non_null(msg);
        weir_msg_release(msg);
    }
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

static void refuse_files(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (weir_file_range_of(msg) == NULL) {
        weir_write(ctx, msg, done);
        return;
    }
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, WEIR_EFULL, NULL);
}

TEST(length_prepender, aborts_the_channel_if_only_the_field_goes_out)
{
    static const weir_handler refuser = {.name = "refuser", .write = refuse_files};
    weir_embedded *embedded = OPEN(.width = 2);

    assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), &refuser, NULL), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, make_range(3)), WEIR_EFULL);
    weir_embedded_run(embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(length_prepender, writes_nothing_of_a_file_whose_promise_is_cancelled)
{
    weir_embedded *embedded = OPEN(.width = 2);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_promise *done = NULL;

    assert_int_equal(weir_promise_create(NULL, &done), 0);
    assert_int_equal(weir_promise_cancel(done), 0);
    weir_channel_write_and_flush(channel, make_range(3), done);
    weir_embedded_run(embedded);
    assert_null(weir_embedded_read_outbound(embedded));
    assert_true(weir_channel_is_open(channel));
    weir_promise_release(done);
    weir_embedded_release(embedded);
}

/* ---- both ways ---- */

static int add_prepender(weir_pipeline *pipeline, const void *options)
{
    return weir_length_prepender_add(pipeline, options);
}

static int add_decoder(weir_pipeline *pipeline, const void *options)
{
    return weir_length_field_add(pipeline, options);
}

TEST(length_prepender, round_trips_with_the_decoder)
{
    check_round_trip(&(const struct round_trip){
        .name = "length field of 2 bytes",
        .add_encoder = add_prepender,
        .encoder = WEIR_LENGTH_PREPENDER_OPTIONS(.width = 2),
        .add_decoder = add_decoder,
        .decoder = WEIR_LENGTH_FIELD_OPTIONS(.width = 2, .strip = 2),
        .length_max = 600,
    });
    check_round_trip(&(const struct round_trip){
        .name = "length field of 3 bytes that counts itself",
        .add_encoder = add_prepender,
        .encoder = WEIR_LENGTH_PREPENDER_OPTIONS(.width = 3, .counts_itself = true,
                                                 .order = WEIR_LITTLE_ENDIAN),
        .add_decoder = add_decoder,
        .decoder = WEIR_LENGTH_FIELD_OPTIONS(.width = 3, .adjustment = -3, .strip = 3,
                                             .order = WEIR_LITTLE_ENDIAN),
        .length_max = 60,
    });
}

TEST(length_prepender, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        bool failed;
        weir_embedded *embedded = OPEN(.width = 1);
        weir_msg *msgs[] = {feed_bytes("abc", 3), make_range(5), feed_bytes("d", 1)};

        test_memory_fail_at(n);
        for (size_t i = 0; i < 3; i++)
            (void)weir_embedded_write_outbound(embedded, msgs[i]);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
}
