/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of decoders: Netty's ByteToMessageDecoderTest, and more.
 */
#include <weir/codec.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/pool.h>

#include "support/codec/feed.h"
#include "support/litmus.h"
#include "support/memory.h"

/* ---- a decoder: a digit says how many bytes follow; '!' is an error, '?' goes on for nothing,
 * '+' makes a message of nothing, '-' removes the decoder ---- */

struct counted {
    weir_decoder_state decoder;
    unsigned calls;
    size_t length;
};

static int decode_counted(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct counted *counted = weir_ctx_state(ctx);
    size_t length = (size_t)(weir_buf_bytes(in)[0] - '0');
    weir_buf *frame;

    counted->calls++;
    switch (weir_buf_bytes(in)[0]) {
    case '!':
        return weir_decoder_fail(ctx, WEIR_EMALFORMED, "there is an exclamation mark");
    case '?':
        return 1;
    case '+':
        *ret_msg = feed_bytes("nothing", 7);
        return 1;
    case '-':
        (void)weir_buf_skip(in, 1);
        weir_ctx_remove(ctx);
        return 0;
    default:
        if (weir_buf_readable(in) < 1 + length)
            return weir_decoder_need(ctx, 1 + length);
        (void)weir_buf_skip(in, 1);
        if (weir_buf_read_slice(in, length, &frame) < 0)
            return -ENOMEM;
        *ret_msg = weir_buf_msg(frame);
        return 1;
    }
}

static int decode_rest(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    char text[32] = "last:";
    size_t length = weir_buf_readable(in);

    (void)ctx;
    assert(length < sizeof(text) - 6);
    (void)weir_buf_read_bytes(in, text + 5, length);
    *ret_msg = feed_bytes(text, 5 + length);
    return 1;
}

static const weir_decoder counted = {
    .handler = {.name = "counted", WEIR_DECODER_SLOTS(struct counted)},
    .decode = decode_counted,
};

static const weir_decoder with_last = {
    .handler = {.name = "with-last", WEIR_DECODER_SLOTS(struct counted)},
    .decode = decode_counted,
    .decode_last = decode_rest,
};

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    const weir_decoder *decoder = feed->arg;

    assert_int_equal(weir_pipeline_add_last(pipeline, &decoder->handler, NULL), 0);
}

static const struct feed feed = {.add = add, .arg = &counted};
static const struct feed feed_to_last = {.add = add, .arg = &with_last};

TEST(decoder, finds_the_same_messages_however_they_are_cut)
{
    assert_text_fed(&feed, "3abc1d2ef0", "abc|d|ef|");
    assert_text_fed(&feed, "", "");
    assert_text_fed(&feed, "3ab", ""); /* incomplete: discarded */
}

TEST(decoder, passes_the_rest_to_decode_last)
{
    assert_text_fed(&feed_to_last, "3abc5de", "abc|last:5de");
}

TEST(decoder, calls_decode_last_even_if_nothing_is_left)
{
    assert_text_fed(&feed_to_last, "1a", "a|last:");
    assert_text_fed(&feed_to_last, "", "last:");
}

TEST(decoder, fires_an_error_once_and_discards_the_rest)
{
    assert_text_fed(&feed, "1a!1b!", "a|error(WEIR_EMALFORMED)");
    assert_text_fed(&feed_to_last, "1a!1b!", "a|error(WEIR_EMALFORMED)");
}

TEST(decoder, fails_if_decode_consumes_nothing)
{
    assert_text_fed(&feed, "1a?1b", "a|error(WEIR_ENOPROGRESS)");
    assert_text_fed(&feed, "1a+1b", "a|error(WEIR_ENOPROGRESS)");
}

/* ---- with an embedded channel ---- */

static weir_embedded *open_with(const weir_decoder *decoder)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &decoder->handler, NULL), 0);
    return embedded;
}

static void write_text(weir_embedded *embedded, const char *text)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text))), 0);
}

static void assert_comes(weir_embedded *embedded, const char *text)
{
    weir_msg *msg = weir_embedded_read_inbound(embedded);
    char bytes[64] = "";
    size_t length;

    assert_non_null(msg);
    if (weir_buf_of(msg) != NULL) {
        length = weir_buf_readable(weir_buf_of(msg));
        memcpy(bytes, weir_buf_bytes(weir_buf_of(msg)), length);
    } else {
        length = weir_composite_readable(weir_composite_of(msg));
        assert_int_equal(weir_composite_peek_bytes(weir_composite_of(msg), bytes, length), 0);
    }
    assert_int_equal(length, strlen(text));
    assert_string_equal(bytes, text);
    weir_msg_release(msg);
}

static struct counted *state_of(weir_embedded *embedded, const weir_decoder *decoder)
{
    weir_ctx *ctx = weir_pipeline_find_handler(weir_embedded_pipeline(embedded), &decoder->handler);

    assert_non_null(ctx);
    return weir_ctx_state(ctx);
}

TEST(decoder, forwards_the_rest_when_removed_while_decoding)
{
    weir_embedded *embedded = open_with(&counted);

    write_text(embedded, "1a-rest");
    assert_comes(embedded, "a");
    assert_comes(embedded, "rest");
    write_text(embedded, "1b");
    assert_comes(embedded, "1b");
    weir_embedded_release(embedded);
}

TEST(decoder, forwards_the_rest_when_removed_from_outside)
{
    weir_embedded *embedded = open_with(&counted);

    write_text(embedded, "9in");
    write_text(embedded, "two");
    assert_null(weir_embedded_read_inbound(embedded));
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "counted", NULL), 0);
    assert_comes(embedded, "9intwo");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

static void remove_decoder(weir_ctx *ctx, weir_msg *msg)
{
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);

    weir_fire_read(ctx, msg);
    if (weir_pipeline_find(pipeline, "counted") != NULL)
        (void)weir_pipeline_remove(pipeline, "counted", NULL);
}

TEST(decoder, forwards_the_rest_when_the_next_handler_removes_it)
{
    static const weir_handler remover = {.name = "remover", .read = remove_decoder};
    weir_embedded *embedded = open_with(&counted);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &remover, NULL), 0);
    write_text(embedded, "1a1b1c");
    assert_comes(embedded, "a");
    assert_comes(embedded, "1b1c");
    weir_embedded_release(embedded);
}

static void feed_more(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_buf_bytes(weir_buf_of(msg))[0] == 'a')
        weir_pipeline_fire_read(weir_ctx_pipeline(ctx), feed_bytes("1x1y", 4));
    weir_fire_read(ctx, msg);
}

TEST(decoder, queues_bytes_that_the_next_handler_feeds_it)
{
    static const weir_handler feeder = {.name = "feeder", .read = feed_more};
    weir_embedded *embedded = open_with(&counted);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &feeder, NULL), 0);
    write_text(embedded,
               "1a1b2c"); /* the last message is incomplete: the next bytes belong to it */
    assert_comes(embedded, "a");
    assert_comes(embedded, "b");
    assert_comes(embedded, "c1");
    assert_int_equal(weir_embedded_take_error(embedded), 0);
    weir_embedded_release(embedded);
}

/* ---- what happens meanwhile without memory ---- */

/* Passes each byte on by itself, and consumes it after the next handlers have run. */
static int decode_bytes(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    (void)ret_msg;
    weir_fire_read(ctx, feed_bytes(weir_buf_bytes(in), 1));
    return weir_buf_skip(in, 1) == 0 ? 1 : WEIR_EBOUNDS;
}

static void feed_in_vain(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg *more = feed_bytes("xy", 2);

    test_memory_fail_at(1);
    weir_pipeline_fire_read(weir_ctx_pipeline(ctx), more);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    weir_fire_read(ctx, msg);
}

TEST(decoder, keeps_the_current_bytes_when_adding_more_fails)
{
    static const weir_decoder single = {
        .handler = {.name = "single", WEIR_DECODER_SLOTS(struct counted)},
        .decode = decode_bytes,
    };
    static const weir_handler feeder = {.name = "feeder", .read = feed_in_vain};
    weir_embedded *embedded = open_with(&single);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &feeder, NULL), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), -ENOMEM);
    assert_comes(embedded, "a");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

static void assert_comes_in_parts(weir_embedded *embedded, const char *text)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        size_t length = weir_msg_size(msg);
        char bytes[64] = "";

        if (weir_buf_of(msg) != NULL)
            memcpy(bytes, weir_buf_bytes(weir_buf_of(msg)), length);
        else
            (void)weir_composite_peek_bytes(weir_composite_of(msg), bytes, length);
        assert_memory_equal(bytes, text, length);
        text += length;
        weir_msg_release(msg);
    }
    assert_string_equal(text, "");
}

TEST(decoder, loses_nothing_when_removed_without_memory)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        weir_embedded *embedded = open_with(&counted);

        write_text(embedded, "9in");
        write_text(embedded, "two");
        write_text(embedded, "3");
        test_memory_fail_at(n);
        (void)weir_pipeline_remove(weir_embedded_pipeline(embedded), "counted", NULL);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_comes_in_parts(embedded, "9intwo3");
        weir_embedded_release(embedded);
    }
}

TEST(decoder, passes_other_messages_on)
{
    static const weir_msg_type type = {.name = "other", .destroy = NULL};
    weir_embedded *embedded = open_with(&counted);
    weir_msg msg;

    weir_msg_init(&msg, &type);
    assert_int_equal(weir_embedded_write_inbound(embedded, &msg), 0);
    assert_ptr_equal(weir_embedded_read_inbound(embedded), &msg);
    weir_embedded_release(embedded);
}

TEST(decoder, reads_composites)
{
    weir_embedded *embedded = open_with(&counted);
    weir_composite *composite = NULL;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes("3a", 2)), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes("bc2d", 4)), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_composite_msg(composite)), 0);
    assert_comes(embedded, "abc");
    write_text(embedded, "e");
    assert_comes(embedded, "de");
    weir_embedded_release(embedded);
}

TEST(decoder, does_not_copy_messages_that_arrive_whole)
{
    weir_embedded *embedded = open_with(&counted);
    weir_msg *in = feed_bytes("3abc", 4), *out;
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(in));

    assert_int_equal(weir_embedded_write_inbound(embedded, in), 0);
    out = weir_embedded_read_inbound(embedded);
    assert_ptr_equal(weir_buf_bytes(weir_buf_of(out)), bytes + 1);
    weir_msg_release(out);
    weir_embedded_release(embedded);
}

TEST(decoder, copies_only_the_message_that_is_cut)
{
    weir_embedded *embedded = open_with(&counted);
    weir_msg *in = feed_bytes("bc2de", 5), *out;
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(in));

    write_text(embedded, "3a");
    assert_int_equal(weir_embedded_write_inbound(embedded, in), 0);
    assert_comes(embedded, "abc");
    out = weir_embedded_read_inbound(embedded);
    assert_ptr_equal(weir_buf_bytes(weir_buf_of(out)), bytes + 3);
    weir_msg_release(out);
    weir_embedded_release(embedded);
}

/* An earlier handler may have retained the message. */
TEST(decoder, does_not_write_into_a_shared_message)
{
    weir_embedded *embedded = open_with(&counted);
    weir_msg *in;
    weir_buf *buf;

    assert_int_equal(weir_buf_create(1000, 0, &buf), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "4ab", 3), 0);
    in = weir_msg_retain(weir_buf_msg(buf));
    assert_int_equal(weir_embedded_write_inbound(embedded, in), 0);
    write_text(embedded, "cd");
    assert_comes(embedded, "abcd");
    assert_int_equal(weir_buf_readable(buf), 3);
    weir_msg_release(in);
    weir_embedded_release(embedded);
}

/* Between reads a decoder keeps its unused bytes, but not the receive buffer that they came in. */
TEST(decoder, keeps_no_large_block_for_a_few_bytes)
{
    weir_embedded *embedded = open_with(&counted);
    weir_pool_stats before, after;
    weir_buf *buf;

    weir_pool_read_stats(&before);
    assert_int_equal(weir_buf_create((size_t)64 << 10, 0, &buf), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "1a4bc", 5), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(buf)), 0);
    assert_comes(embedded, "a");
    weir_pool_read_stats(&after);
    assert_in_range(after.in_use_bytes - before.in_use_bytes, 1, 1024);
    write_text(embedded, "de");
    assert_comes(embedded, "bcde");
    weir_embedded_release(embedded);
}

TEST(decoder, is_not_called_before_enough_bytes_arrived)
{
    weir_embedded *embedded = open_with(&counted);
    struct counted *state = state_of(embedded, &counted);

    write_text(embedded, "9");
    assert_int_equal(state->calls, 1);
    for (int i = 0; i < 8; i++)
        write_text(embedded, "x");
    assert_int_equal(state->calls, 1);
    write_text(embedded, "x");
    assert_int_equal(state->calls, 2);
    assert_comes(embedded, "xxxxxxxxx");
    weir_embedded_release(embedded);
}

/* Consumes the length and waits for the rest, which it then need not check again. */
static int decode_in_two(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct counted *two = weir_ctx_state(ctx);
    weir_buf *frame;

    if (two->length == 0) {
        two->length = (size_t)(weir_buf_bytes(in)[0] - '0');
        (void)weir_buf_skip(in, 1);
        if (weir_buf_readable(in) < two->length)
            return weir_decoder_need(ctx, two->length);
    }
    two->calls += weir_buf_readable(in) < two->length;
    if (weir_buf_read_slice(in, two->length, &frame) < 0)
        return 0;
    two->length = 0;
    *ret_msg = weir_buf_msg(frame);
    return 1;
}

TEST(decoder, is_not_called_early_after_consuming_everything)
{
    static const weir_decoder in_two = {
        .handler = {.name = "in-two", WEIR_DECODER_SLOTS(struct counted)}, .decode = decode_in_two};
    weir_embedded *embedded = open_with(&in_two);

    write_text(embedded, "3");
    write_text(embedded, "a");
    write_text(embedded, "b");
    write_text(embedded, "c2");
    assert_comes(embedded, "abc");
    write_text(embedded, "d");
    write_text(embedded, "e1f");
    assert_comes(embedded, "de");
    assert_comes(embedded, "f");
    assert_int_equal(state_of(embedded, &in_two)->calls, 0);
    weir_embedded_release(embedded);
}

static int decode_thousand(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir_buf *frame;

    if (weir_buf_readable(in) < 1000)
        return weir_decoder_need(ctx, 1000);
    if (weir_buf_read_slice(in, 1000, &frame) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(frame);
    return 1;
}

TEST(decoder, merges_small_pieces_of_a_message)
{
    static const weir_decoder thousand = {
        .handler = {.name = "thousand", WEIR_DECODER_SLOTS(struct counted)},
        .decode = decode_thousand,
    };
    weir_embedded *embedded = open_with(&thousand);
    const weir_cumulation *cumulation = &state_of(embedded, &thousand)->decoder.cumulation;
    char letter[2] = "a";
    weir_msg *msg;

    for (int i = 0; i < 1000; i++) {
        letter[0] = (char)('a' + i % 26);
        write_text(embedded, letter);
        assert_true(cumulation->pieces == NULL || weir_composite_count(cumulation->pieces) <= 16);
    }
    msg = weir_embedded_read_inbound(embedded);
    assert_non_null(msg);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_buf_bytes(weir_buf_of(msg))[i], 'a' + i % 26);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(decoder, requests_more_bytes_with_reads_on_demand)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)),
            &embedded),
        0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &counted.handler, NULL), 0);
    write_text(embedded, "3a");
    write_text(embedded, "b");
    write_text(embedded, "c");
    write_text(embedded, "1d");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_channel_request_read(weir_embedded_channel(embedded)); /* one request, one message */
    weir_embedded_run(embedded);
    assert_comes(embedded, "abc");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

/* ---- a decoder that waits for something else than bytes ---- */

struct patient {
    weir_decoder_state decoder;
    bool may_go_on;
};

static int decode_later(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    const struct patient *patient = weir_ctx_state(ctx);
    weir_buf *all;

    if (!patient->may_go_on)
        return weir_decoder_need(ctx, 100);
    if (weir_buf_read_slice(in, weir_buf_readable(in), &all) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(all);
    return 1;
}

static const weir_decoder patient = {
    .handler = {.name = "patient", WEIR_DECODER_SLOTS(struct patient)},
    .decode = decode_later,
};

TEST(decoder, decodes_its_bytes_again_when_resumed)
{
    weir_embedded *embedded = NULL;
    weir_ctx *ctx;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &patient.handler, NULL), 0);
    ctx = weir_pipeline_find(weir_embedded_pipeline(embedded), "patient");
    write_text(embedded, "ab");
    write_text(embedded, "cd");
    assert_null(weir_embedded_read_inbound(embedded));
    ((struct patient *)weir_ctx_state(ctx))->may_go_on = true;
    weir_decoder_resume(ctx);
    assert_comes(embedded, "ab");
    assert_comes(embedded, "cd");
    weir_decoder_resume(ctx); /* no bytes */
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

TEST(decoder, decodes_the_rest_at_a_half_closure)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded),
        0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &with_last.handler, NULL), 0);
    write_text(embedded, "5ab");
    weir_embedded_end_input(embedded);
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_comes(embedded, "last:5ab");
    (void)weir_embedded_finish(embedded);
    assert_null(weir_embedded_read_inbound(embedded)); /* not a second time */
    weir_embedded_release(embedded);
}

TEST(decoder, survives_allocation_failures)
{
    static const char *const parts[] = {"3a", "b", "c2", "de9", "12", "345", "678", "9"};

    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = open_with(&with_last);
        weir_msg *msgs[8];
        bool failed;

        for (size_t i = 0; i < 8; i++)
            msgs[i] = feed_bytes(parts[i], strlen(parts[i]));
        test_memory_fail_at(n);
        for (size_t i = 0; i < 8; i++)
            (void)weir_embedded_write_inbound(embedded, msgs[i]);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
}

/* ---- other holders of the bytes ---- */

/* Two receivers of one buffer: each may append to its own, and to no memory of the other. */
TEST(decoder, does_not_write_into_memory_that_views_share)
{
    weir_embedded *first = open_with(&counted), *second = open_with(&counted);
    weir_buf *buf, *view;

    assert_int_equal(weir_buf_create(1000, 0, &buf), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "4ab", 3), 0);
    assert_int_equal(weir_buf_duplicate(buf, &view), 0);
    assert_int_equal(weir_embedded_write_inbound(first, weir_buf_msg(view)), 0);
    assert_int_equal(weir_buf_duplicate(buf, &view), 0);
    assert_int_equal(weir_embedded_write_inbound(second, weir_buf_msg(view)), 0);
    weir_buf_release(buf);
    write_text(first, "c");
    write_text(second, "x");
    write_text(first, "d");
    write_text(second, "y");
    assert_comes(first, "abcd");
    assert_comes(second, "abxy");
    weir_embedded_release(first);
    weir_embedded_release(second);
}

static void read_and_release(void *arg)
{
    (void)weir_buf_writable(arg);
    weir_buf_release(arg);
}

struct feeding {
    weir_embedded *embedded;
    const char *text;
};

static void feed_text(void *arg)
{
    const struct feeding *feeding = arg;

    write_text(feeding->embedded, feeding->text);
}

/* Nothing but the count orders the two threads. */
TEST(decoder, appends_after_another_thread_has_read_the_buffer)
{
    struct feeding feeding = {open_with(&counted), "cd"};
    weir_buf *buf;

    assert_int_equal(weir_buf_create(1000, 0, &buf), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "4ab", 3), 0);
    assert_int_equal(
        weir_embedded_write_inbound(feeding.embedded, weir_buf_msg(weir_buf_retain(buf))), 0);
    litmus_last_use(read_and_release, buf, feed_text, &feeding);
    assert_comes(feeding.embedded, "abcd");
    weir_embedded_release(feeding.embedded);
}
