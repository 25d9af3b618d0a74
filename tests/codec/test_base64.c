/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64: the test vectors of RFC 4648, rejected input, and both directions in a pipeline.
 */
#include <weir/text_codecs.h>

#include <errno.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/frames.h>

#include "support/codec/decoder_fixture.h"
#include "support/codec/round_trip.h"
#include "support/memory.h"

static void check(const char *bytes, size_t length, uint32_t flags, const char *expected)
{
    char text[32], back[32];

    assert_int_equal(weir_base64_encoded_length(length, flags), strlen(expected));
    assert_int_equal(weir_base64_encode(weir_span_of(bytes, length), flags, text),
                     strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
    assert_int_equal(weir_base64_decode(weir_span_of_text(expected), flags, back), length);
    assert_memory_equal(back, bytes, length);
}

TEST(base64, matches_the_test_vectors_of_rfc_4648)
{
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(rows[i][0], strlen(rows[i][0]), 0, rows[i][1]);
}

TEST(base64, supports_both_alphabets_and_unpadded_text)
{
    check("\xfb\xff\xbf", 3, 0, "+/+/");
    check("\xfb\xff\xbf", 3, WEIR_BASE64_URL, "-_-_");
    check("\xff", 1, 0, "/w==");
    check("\xff", 1, WEIR_BASE64_URL, "_w==");
    check("\xff", 1, WEIR_BASE64_UNPADDED, "/w");
    check("\xff\xfe", 2, WEIR_BASE64_URL | WEIR_BASE64_UNPADDED, "__4");
}

static void assert_refused(const char *text, uint32_t flags)
{
    uint8_t bytes[32];

    assert_true(weir_base64_decoded_max(strlen(text)) <= sizeof(bytes));
    assert_int_equal(weir_base64_decode(weir_span_of_text(text), flags, bytes), WEIR_EMALFORMED);
}

TEST(base64, rejects_non_canonical_text)
{
    static const char *const padded[] = {"Z",        "Zg",   "Zm8",  "Zg=",       "Zg===", "====",
                                         "=Zm8",     "Z===", "Zh==", "Zm9=",      "Zm 8",  "Zm8=\n",
                                         "Zg==Zg==", "-_-_", "Zm8*", "Z\xc3\xa4="};
    static const char *const bare[] = {"Z", "Zg==", "Zm8=", "Zh", "Zm9", "Zm9vY"};

    for (size_t i = 0; i < sizeof(padded) / sizeof(padded[0]); i++)
        assert_refused(padded[i], 0);
    for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++)
        assert_refused(bare[i], WEIR_BASE64_UNPADDED);
    assert_refused("+/+/", WEIR_BASE64_URL);
}

/* ---- as a codec ---- */

static int add_lines_of(weir_pipeline *pipeline, const void *flags)
{
    int err = weir_lines_add(pipeline, NULL);

    return err < 0 ? err : weir_base64_add(pipeline, *(const uint32_t *)flags);
}

static int add_alone(weir_pipeline *pipeline, const void *flags)
{
    return weir_base64_add(pipeline, *(const uint32_t *)flags);
}

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(add_lines_of(pipeline, feed->arg), 0);
}

TEST(base64, decodes_each_message_and_continues_after_an_invalid_one)
{
    const uint32_t flags = 0;
    const struct feed feed = {.add = add, .arg = &flags};

    assert_text_fed(&feed, "aGVsbG8=\n!\n\nb2s=\n", "hello|error(WEIR_EMALFORMED)||ok");
}

/* Appends a line end, since the line decoder has no encoder. */
static void end_line(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_composite *line = NULL;

    assert_int_equal(weir_composite_create(0, &line), 0);
    assert_int_equal(weir_composite_add(line, msg), 0);
    assert_int_equal(weir_composite_add(line, feed_bytes("\n", 1)), 0);
    weir_write(ctx, weir_composite_msg(line), done);
}

static int add_encoder(weir_pipeline *pipeline, const void *flags)
{
    static const weir_handler line_ends = {.name = "line-ends", .write = end_line};
    int err = weir_pipeline_add_last(pipeline, &line_ends, NULL);

    return err < 0 ? err : weir_base64_add(pipeline, *(const uint32_t *)flags);
}

TEST(base64, decodes_what_it_encoded)
{
    for (uint32_t flags = 0; flags <= (WEIR_BASE64_URL | WEIR_BASE64_UNPADDED); flags++)
        check_round_trip(&(const struct round_trip){
            .name = "base64",
            .add_encoder = add_encoder,
            .encoder = &flags,
            .add_decoder = add_lines_of,
            .decoder = &flags,
            .length_max = 200,
        });
}

TEST(base64, rejects_unknown_flags)
{
    const uint32_t flags = 1u << 2;

    assert_int_equal(fixture_try_add(add_alone, &flags), -EINVAL);
}

TEST(base64, survives_allocation_failures)
{
    const uint32_t flags = 0;

    fixture_assert_survives(add_lines_of, &flags, "aGVsbG8=\nb2s=\n", 14);
    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = fixture_open(add_alone, &flags);
        weir_composite *composite = NULL;
        bool failed;

        assert_int_equal(weir_composite_create(0, &composite), 0);
        assert_int_equal(weir_composite_add(composite, feed_bytes("hello", 5)), 0);
        test_memory_fail_at(n);
        (void)weir_embedded_write_outbound(embedded, weir_composite_msg(composite));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
}
