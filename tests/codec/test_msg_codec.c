/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bases of message decoders, message encoders, and codecs.
 */
#include <weir/codec.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/text_codecs.h>

#include "support/codec/feed.h"
#include "support/memory.h"

/* ---- a decoder and an encoder: a buffer becomes one for each of its letters; '!' is an error ----
 */

static int spell(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(msg));
    size_t length = weir_buf_readable(weir_buf_of(msg));
    weir_buf *letter;
    int err = 0;

    (void)ctx;
    for (size_t i = 0; err == 0 && i < length; i++) {
        assert(weir_msg_list_count(out) == i);
        err = bytes[i] != '!' ? weir_buf_create_from(&bytes[i], 1, &letter) : WEIR_EMALFORMED;
        if (err == 0)
            err = weir_msg_list_add(out, weir_buf_msg(letter));
    }
    return err;
}

static const weir_msg_decoder spelling_in = {
    .handler = {.name = "spelling-in", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)},
    .type = &weir_buf_type,
    .decode = spell,
};

static const weir_msg_encoder spelling_out = {
    .handler = {.name = "spelling-out", WEIR_MSG_ENCODER_SLOTS},
    .type = &weir_buf_type,
    .encode = spell,
};

static const weir_msg_codec spelling_both = {
    .decoder = {.handler = {.name = "spelling", WEIR_MSG_CODEC_SLOTS(weir_msg_decoder_state)},
                .type = &weir_buf_type,
                .decode = spell},
    .type = &weir_buf_type,
    .encode = spell,
};

static weir_embedded *open_with(const weir_handler *handler, bool on_demand)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = on_demand)),
            &embedded),
        0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), handler, NULL), 0);
    return embedded;
}

static void assert_is(weir_msg *msg, const char *text)
{
    weir_buf *buf;

    assert_non_null(msg);
    buf = weir_buf_of(msg);
    assert_int_equal(weir_buf_readable(buf), strlen(text));
    assert_memory_equal(weir_buf_bytes(buf), text, strlen(text));
    weir_msg_release(msg);
}

static weir_msg *text_of(const char *text)
{
    return feed_bytes(text, strlen(text));
}

/* ---- in ---- */

static void assert_spelled_in(const weir_handler *handler)
{
    weir_embedded *embedded = open_with(handler, false);

    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("abcdefghijkl")), 0);
    for (char letter = 'a'; letter <= 'l'; letter++)
        assert_is(weir_embedded_read_inbound(embedded), (const char[]){letter, '\0'});
    assert_null(weir_embedded_read_inbound(embedded));
    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("")), 0);
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

TEST(msg_decoder, makes_zero_or_more_messages_of_one)
{
    assert_spelled_in(&spelling_in.handler);
    assert_spelled_in(&spelling_both.decoder.handler);
}

static void record_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    assert_int_equal(err, WEIR_EMALFORMED);
    assert_string_equal(detail, "decoding failed");
}

TEST(msg_decoder, fires_an_error_instead_of_the_messages_and_continues)
{
    static const weir_handler error_handler = {.name = "error_handler", .error = record_error};
    weir_embedded *embedded = open_with(&spelling_in.handler, false);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &error_handler, NULL),
                     0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("ab!c")), 0);
    assert_null(weir_embedded_read_inbound(embedded));
    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("d")), 0);
    assert_is(weir_embedded_read_inbound(embedded), "d");
    weir_embedded_release(embedded);
}

/* ---- why, in words ---- */

static char last_detail[64];

static void note_detail(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    assert_int_equal(err, WEIR_EMALFORMED);
    (void)snprintf(last_detail, sizeof(last_detail), "%s", detail);
}

static const weir_handler noter = {.name = "noter", .error = note_detail};

static int refuse(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    (void)out;
    return weir_msg_size(msg) > 1 ? weir_msg_decoder_fail(ctx, WEIR_EMALFORMED, "two are too many")
                                  : WEIR_EMALFORMED;
}

static void assert_error_detail(weir_embedded *embedded, const void *bytes, size_t length,
                                const char *why)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(bytes, length)), 0);
    assert_string_equal(last_detail, why);
}

TEST(msg_decoder, reports_the_detail)
{
    static const weir_msg_decoder refusing = {
        .handler = {.name = "refusing", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)},
        .decode = refuse};
    weir_embedded *embedded = open_with(&refusing.handler, false);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &noter, NULL), 0);
    assert_error_detail(embedded, "ab", 2, "two are too many");
    assert_error_detail(embedded, "a", 1, "decoding failed"); /* the previous detail is gone */
    weir_embedded_release(embedded);
}

TEST(msg_decoder, of_strings_reports_the_detail)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_strings_add(weir_embedded_pipeline(embedded), WEIR_STRINGS_OPTIONS(.utf8 = true)), 0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &noter, NULL), 0);
    assert_error_detail(embedded, "\xff", 1, "text is not valid UTF-8");
    assert_error_detail(embedded, "a\0b", 3, "text with an embedded NUL");
    weir_embedded_release(embedded);
}

static void free_nothing(weir_msg *msg)
{
    (void)msg;
}

static const weir_msg_type other_type = {.name = "other", .destroy = free_nothing};

TEST(msg_decoder, passes_other_types_on)
{
    weir_embedded *embedded = open_with(&spelling_in.handler, false);
    weir_msg other;

    weir_msg_init(&other, &other_type);
    assert_int_equal(weir_embedded_write_inbound(embedded, &other), 0);
    assert_ptr_equal(weir_embedded_read_inbound(embedded), &other);
    weir_embedded_release(embedded);
}

static bool is_short(const weir_msg *msg)
{
    return weir_msg_size(msg) < 3;
}

static int drop(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    (void)ctx;
    (void)msg;
    (void)out;
    return 0;
}

static int keep(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    (void)ctx;
    return weir_msg_list_add(out, weir_msg_retain(msg));
}

TEST(msg_decoder, may_select_messages_by_accepts)
{
    static const weir_msg_decoder discarding = {
        .handler = {.name = "discarding", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)},
        .accepts = is_short,
        .decode = drop,
    };
    static const weir_msg_decoder retaining = {
        .handler = {.name = "retaining", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)},
        .decode = keep, /* of all messages */
    };
    weir_embedded *embedded = open_with(&discarding.handler, false);

    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &retaining.handler, NULL), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("ab")), 0);
    assert_null(weir_embedded_read_inbound(embedded));
    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("abc")), 0);
    assert_is(weir_embedded_read_inbound(embedded), "abc");
    weir_embedded_release(embedded);
}

TEST(msg_decoder, requests_more_if_it_made_nothing)
{
    weir_embedded *embedded = open_with(&spelling_in.handler, true);

    (void)weir_embedded_write_inbound(embedded, text_of(""));
    (void)weir_embedded_write_inbound(embedded, text_of(""));
    (void)weir_embedded_write_inbound(embedded, text_of("ab"));
    (void)weir_embedded_write_inbound(embedded, text_of("c"));
    weir_channel_request_read(weir_embedded_channel(embedded)); /* one request, one message */
    weir_embedded_run(embedded);
    assert_is(weir_embedded_read_inbound(embedded), "a");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_channel_request_read(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_is(weir_embedded_read_inbound(embedded), "b");
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

/* ---- out ---- */

static weir_promise *write_with_promise(weir_embedded *embedded, const char *text)
{
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_promise *promise = NULL;

    assert_int_equal(weir_promise_create(weir_channel_executor(channel), &promise), 0);
    weir_channel_write(channel, text_of(text), promise);
    weir_embedded_run(embedded);
    return promise;
}

static void flush(weir_embedded *embedded)
{
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
}

static void assert_spelled_out(const weir_handler *handler)
{
    weir_embedded *embedded = open_with(handler, false);
    weir_promise *several = write_with_promise(embedded, "abc");
    weir_promise *none = write_with_promise(embedded, "");
    weir_promise *one = write_with_promise(embedded, "d");

    assert_int_equal(weir_promise_result(several), -EINPROGRESS);
    assert_int_equal(weir_promise_result(none), 0);
    assert_int_equal(weir_promise_result(one), -EINPROGRESS);
    flush(embedded);
    assert_int_equal(weir_promise_result(several), 0);
    assert_int_equal(weir_promise_result(one), 0);
    for (char letter = 'a'; letter <= 'd'; letter++)
        assert_is(weir_embedded_read_outbound(embedded), (const char[]){letter, '\0'});
    weir_channel_write(weir_embedded_channel(embedded), text_of("xy"), NULL);
    flush(embedded);
    assert_is(weir_embedded_read_outbound(embedded), "x");
    assert_is(weir_embedded_read_outbound(embedded), "y");
    weir_promise_release(several);
    weir_promise_release(none);
    weir_promise_release(one);
    weir_embedded_release(embedded);
}

TEST(msg_encoder, makes_zero_or_more_messages_of_one)
{
    assert_spelled_out(&spelling_out.handler);
    assert_spelled_out(&spelling_both.decoder.handler);
}

TEST(msg_encoder, writes_nothing_if_encode_fails)
{
    weir_embedded *embedded = open_with(&spelling_out.handler, false);
    weir_promise *promise = write_with_promise(embedded, "ab!");

    flush(embedded);
    assert_int_equal(weir_promise_result(promise), WEIR_EMALFORMED);
    assert_null(weir_embedded_read_outbound(embedded));
    weir_promise_release(promise);
    weir_embedded_release(embedded);
}

TEST(msg_encoder, of_several_fails_as_a_whole)
{
    weir_embedded *embedded = open_with(&spelling_out.handler, false);
    weir_promise *promise = write_with_promise(embedded, "abc");

    weir_channel_abort(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(weir_promise_result(promise), WEIR_ECLOSED);
    weir_promise_release(promise);
    weir_embedded_release(embedded);
}

/* A partial message must not be sent. */
TEST(msg_encoder, of_several_cannot_be_cancelled_any_more)
{
    weir_embedded *embedded = open_with(&spelling_out.handler, false);
    weir_promise *several = write_with_promise(embedded, "ab");
    weir_promise *one = write_with_promise(embedded, "c");

    assert_int_equal(weir_promise_cancel(several), -EBUSY);
    assert_int_equal(weir_promise_cancel(one), 0);
    flush(embedded);
    assert_is(weir_embedded_read_outbound(embedded), "a");
    assert_is(weir_embedded_read_outbound(embedded), "b");
    assert_null(weir_embedded_read_outbound(embedded));
    weir_promise_release(several);
    weir_promise_release(one);
    weir_embedded_release(embedded);
}

TEST(msg_encoder, passes_other_types_on)
{
    weir_embedded *embedded = open_with(&spelling_out.handler, false);
    weir_msg other;

    weir_msg_init(&other, &other_type);
    assert_int_equal(weir_embedded_write_outbound(embedded, &other), 0);
    assert_ptr_equal(weir_embedded_read_outbound(embedded), &other);
    weir_embedded_release(embedded);
}

/* ---- a codec of bytes: a byte is a message, which is a number; the sums are the state ---- */

struct number {
    weir_msg msg;
    uint8_t value;
};

static const weir_msg_type number_type = {.name = "number", .destroy = free_nothing};

struct sums {
    weir_decoder_state decoder;
    unsigned in;
    unsigned out;
};

static int decode_byte(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct sums *sums = weir_ctx_state(ctx);
    weir_buf *byte;

    sums->in += weir_buf_bytes(in)[0];
    if (weir_buf_read_slice(in, 1, &byte) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(byte);
    return 1;
}

static int encode_number(weir_ctx *ctx, weir_msg *msg, weir_buf *out)
{
    struct sums *sums = weir_ctx_state(ctx);
    const struct number *number = (const struct number *)(const void *)msg;

    sums->out += number->value;
    return weir_buf_write_bytes(out, &number->value, 1);
}

TEST(codec, is_a_decoder_and_an_encoder_with_one_state)
{
    static const weir_codec codec = {
        .decoder = {.handler = {.name = "codec", WEIR_CODEC_SLOTS(struct sums)},
                    .decode = decode_byte},
        .type = &number_type,
        .encode = encode_number,
    };
    weir_embedded *embedded = open_with(&codec.decoder.handler, false);
    struct number number = {.value = 'n'};
    const struct sums *sums = weir_ctx_state(
        weir_pipeline_find_handler(weir_embedded_pipeline(embedded), &codec.decoder.handler));

    weir_msg_init(&number.msg, &number_type);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_of("ab")), 0);
    assert_is(weir_embedded_read_inbound(embedded), "a");
    assert_is(weir_embedded_read_inbound(embedded), "b");
    assert_int_equal(weir_embedded_write_outbound(embedded, &number.msg), 0);
    assert_is(weir_embedded_read_outbound(embedded), "n");
    assert_int_equal(sums->in, 'a' + 'b');
    assert_int_equal(sums->out, 'n');
    weir_embedded_release(embedded);
}

/* ---- lack of memory ---- */

static bool transform_without(unsigned n)
{
    weir_embedded *embedded = open_with(&spelling_both.decoder.handler, false);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_msg *in = text_of("abcdefghijk"), *out = text_of("abcdefghijk"), *left;
    weir_promise *promise = NULL;
    unsigned sent = 0;
    bool failed;

    assert_int_equal(weir_promise_create(weir_channel_executor(channel), &promise), 0);
    test_memory_fail_at(n);
    (void)weir_embedded_write_inbound(embedded, in);
    weir_channel_write_and_flush(channel, out, promise);
    weir_embedded_run(embedded);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    assert_true(weir_promise_is_done(promise));
    while ((left = weir_embedded_read_outbound(embedded)) != NULL) {
        weir_msg_release(left);
        sent++;
    }
    if (weir_promise_result(promise) == 0)
        assert_int_equal(sent, 11);
    weir_promise_release(promise);
    weir_embedded_release(embedded);
    return failed;
}

TEST(msg_codec, survives_allocation_failures)
{
    for (unsigned n = 1; transform_without(n); n++)
        ;
}
