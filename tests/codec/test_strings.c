/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/text_codecs.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/frames.h>

#include "support/codec/decoder_fixture.h"
#include "support/memory.h"

TEST(strings, are_created_from_text_and_bytes)
{
    weir_string *string = NULL;

    assert_int_equal(weir_string_create("hello", &string), 0);
    assert_string_equal(weir_string_text(string), "hello");
    assert_int_equal(weir_string_length(string), 5);
    assert_int_equal(weir_msg_size(weir_string_msg(string)), 5);
    weir_string_release(string);
    assert_int_equal(weir_string_create_from("hello", 4, &string), 0);
    assert_string_equal(weir_string_text(string), "hell");
    weir_string_release(string);
    assert_int_equal(weir_string_create_from(NULL, 0, &string), 0);
    assert_string_equal(weir_string_text(string), "");
    weir_string_release(string);
    weir_string_release(NULL);
}

TEST(strings, are_formatted)
{
    weir_string *string = NULL;

    assert_int_equal(weir_string_format(&string, "%d bottles of %s", 99, "beer"), 0);
    assert_string_equal(weir_string_text(string), "99 bottles of beer");
    weir_string_release(string);
}

TEST(strings, have_no_embedded_nul)
{
    weir_string *string = NULL;

    assert_int_equal(weir_string_create_from("a\0b", 3, &string), -EINVAL);
    assert_int_equal(weir_string_format(&string, "a%cb", 0), -EINVAL);
    assert_null(string);
}

TEST(strings, are_messages_of_their_own_type)
{
    weir_string *string = NULL;
    weir_msg *bytes = feed_bytes("x", 1);

    assert_int_equal(weir_string_create("x", &string), 0);
    assert_ptr_equal(weir_string_of(weir_string_msg(string)), string);
    assert_null(weir_string_of(bytes));
    assert_null(weir_string_of(NULL));
    assert_ptr_equal(weir_string_retain(string), string);
    weir_string_release(string);
    weir_string_release(string);
    weir_msg_release(bytes);
}

/* ---- the codec ---- */

static int add_options(weir_pipeline *pipeline, const void *options)
{
    return weir_strings_add(pipeline, options);
}

static int add_lines_of(weir_pipeline *pipeline, const void *options)
{
    int err = weir_lines_add(pipeline, NULL);

    return err < 0 ? err : weir_strings_add(pipeline, options);
}

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(add_lines_of(pipeline, feed->arg), 0);
}

/* Errors are recorded as bytes. */
static void format_string(const weir_msg *msg, char *text, size_t size)
{
    const void *string_or_buf = msg;

    if (weir_msg_is(msg, &weir_string_type))
        (void)snprintf(text, size, "<%s>", weir_string_text(string_or_buf));
    else
        (void)snprintf(text, size, "%.*s", (int)weir_buf_readable(string_or_buf),
                       (const char *)weir_buf_bytes(string_or_buf));
}

TEST(strings, are_decoded_from_buffers)
{
    const struct feed feed = {.add = add, .arg = NULL, .format = format_string};

    assert_fed(&feed, "one\n\nt\0wo\nthr\xff\n", 15, "<one>|<>|error(WEIR_EMALFORMED)|<thr\xff>");
}

TEST(strings, may_be_restricted_to_utf8)
{
    const struct feed feed = {
        .add = add, .arg = WEIR_STRINGS_OPTIONS(.utf8 = true), .format = format_string};

    assert_fed(&feed, "\xc3\xa4\nthr\xff\nx\n", 10, "<\xc3\xa4>|error(WEIR_EMALFORMED)|<x>");
}

TEST(strings, are_decoded_from_composites)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    weir_composite *composite = NULL;
    weir_msg *msg;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes("hel", 3)), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes("lo", 2)), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_composite_msg(composite)), 0);
    msg = weir_embedded_read_inbound(embedded);
    assert_string_equal(weir_string_text(weir_string_of(msg)), "hello");
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(strings, are_encoded_as_bytes)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    weir_string *string = NULL;
    weir_msg *msg;

    assert_int_equal(weir_string_create("hello", &string), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_string_msg(string)), 0);
    msg = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 5);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), "hello", 5);
    weir_msg_release(msg);
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes("bytes", 5)), 0);
    msg = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 5);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

/* Of random length, without NULs. */
static weir_string *make_random(uint32_t *random)
{
    char text[256];
    weir_string *string = NULL;
    size_t length = (*random >> 8) % sizeof(text);

    for (size_t i = 0; i < length; i++) {
        *random = *random * 1664525u + 1013904223u;
        text[i] = (char)(1 + (*random >> 8) % 255);
    }
    *random = *random * 1664525u + 1013904223u;
    assert_int_equal(weir_string_create_from(text, length, &string), 0);
    return string;
}

TEST(strings, round_trip)
{
    weir_embedded *embedded = fixture_open(add_options, NULL);
    uint32_t random = 1;

    for (int i = 0; i < 500; i++) {
        weir_string *string = make_random(&random);
        weir_msg *msg;

        assert_int_equal(
            weir_embedded_write_outbound(embedded, weir_string_msg(weir_string_retain(string))), 0);
        assert_int_equal(
            weir_embedded_write_inbound(embedded, weir_embedded_read_outbound(embedded)), 0);
        msg = weir_embedded_read_inbound(embedded);
        assert_int_equal(weir_string_length(weir_string_of(msg)), weir_string_length(string));
        assert_string_equal(weir_string_text(weir_string_of(msg)), weir_string_text(string));
        weir_msg_release(msg);
        weir_string_release(string);
    }
    weir_embedded_release(embedded);
}

TEST(strings, survive_allocation_failures)
{
    fixture_assert_survives(add_lines_of, NULL, "one\ntwo\nthree\n", 14);
    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = fixture_open(add_options, NULL);
        weir_string *string = NULL;
        bool failed;

        test_memory_fail_at(n);
        if (weir_string_format(&string, "%s", "hello") == 0)
            (void)weir_embedded_write_outbound(embedded, weir_string_msg(string));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
}
