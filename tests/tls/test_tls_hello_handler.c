/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler that waits for a hello: whatever the pieces, once, and not for ever.
 */
#include <weir/tls.h>

#include <errno.h>
#include <string.h>

#include <openssl/ssl.h>
#include <weir/clock.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/pipeline.h>

#include "codec/contiguous.h"
#include "support/codec/decoder_fixture.h"
#include "support/memory.h"
#include "support/tls/client_hello.h"

struct told {
    int count;
    int answer; /* what on_hello returns */
    weir_tls_hello hello;
};

static int on_hello(weir_ctx *ctx, const weir_tls_hello *hello, void *user_data)
{
    struct told *told = user_data;

    (void)ctx;
    told->count++;
    told->hello = *hello;
    return told->answer;
}

static int add(weir_pipeline *pipeline, const void *told)
{
    return weir_tls_hello_add(
        pipeline,
        WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .user_data = (void *)(uintptr_t)told));
}

/* All that has come out, appended. */
static void collect(weir_embedded *embedded, struct hello_wire *out)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        weir_buf *bytes = NULL;

        assert_int_equal(weir__contiguous_bytes(msg, &bytes), 0);
        hello_put(out, weir_buf_bytes(bytes), weir_buf_readable(bytes));
        weir_buf_release(bytes);
        weir_msg_release(msg);
    }
}

/* Cut at one place, or (0) into single bytes. */
static void assert_passed_on(const struct hello_wire *wire, size_t cut)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = fixture_open(add, &told);
    struct hello_wire out = {.length = 0};

    for (size_t at = 0, next; at < wire->length; at = next) {
        next = cut == 0 ? at + 1 : at < cut ? cut : wire->length;
        fixture_write(embedded, wire->bytes + at, next - at);
        collect(embedded, &out);
        assert_int_equal(told.count > 0, out.length > 0);
    }
    assert_int_equal(told.count, 1);
    assert_string_equal(told.hello.server_name, "example.com");
    assert_int_equal(out.length, wire->length);
    assert_memory_equal(out.bytes, wire->bytes, wire->length);
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 1); /* it has gone */
    assert_string_equal(fixture_error(), "");
    weir_embedded_release(embedded);
}

TEST(tls_hello_handler, is_told_once_and_passed_on_as_it_came_whatever_the_pieces)
{
    struct hello_wire wire, records = {.length = 0};

    hello_make_openssl(&wire, "example.com", "\x02h2", TLS1_3_VERSION);
    hello_put_records(&records, wire.bytes + 5, wire.length - 5, 50);
    hello_put(&records, "\x14\x03\x03\x00\x01\x01", 6); /* more than the hello */
    for (size_t cut = 0; cut < wire.length; cut++)
        assert_passed_on(&wire, cut);
    for (size_t cut = 0; cut < records.length; cut++)
        assert_passed_on(&records, cut);
}

static void assert_fails(const void *bytes, size_t length, int answer, const char *error)
{
    struct told told = {.answer = answer};
    weir_embedded *embedded = fixture_open(add, &told);
    struct hello_wire out = {.length = 0};

    (void)weir_embedded_write_inbound(embedded, feed_bytes(bytes, length));
    (void)weir_embedded_write_inbound(embedded, feed_bytes("more", 4));
    weir_embedded_end_input(embedded);
    collect(embedded, &out);
    assert_int_equal(out.length, 0);
    assert_string_equal(fixture_error(), error);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(tls_hello_handler, that_is_none_is_an_error_in_words_and_closes)
{
    struct hello_wire wire;

    assert_fails("GET / HTTP/1.1\r\n", 16, 0,
                 "WEIR_ENOTTLS: not TLS: this looks like text, such as an HTTP request");
    assert_fails("\x80\x2e\x01", 3, 0, "WEIR_ENOTTLS: not TLS: this may be SSL 2");
    assert_fails("\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9, 0,
                 "WEIR_ETOOLONG: the hello is too long");
    hello_make_openssl(&wire, "example.com", "", TLS1_3_VERSION);
    assert_fails(wire.bytes, wire.length, -ENOENT, "ENOENT: the hello was rejected");
}

TEST(tls_hello_handler, that_ends_in_the_middle_is_an_error)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = fixture_open(add, &told);

    fixture_write(embedded, "\x16\x03\x01\x00\x04\x01", 6);
    weir_embedded_end_input(embedded);
    assert_string_equal(
        fixture_error(),
        "WEIR_EMALFORMED: the connection ended before its first bytes were complete");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);

    embedded = fixture_open(add, &told); /* who says nothing has made no error */
    weir_embedded_end_input(embedded);
    assert_string_equal(fixture_error(), "");
    assert_int_equal(told.count, 0);
    weir_embedded_release(embedded);
}

TEST(tls_hello_handler, does_not_come_for_ever)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = fixture_open(add, &told);

    for (int i = 0; i < 9; i++) { /* a byte now and then does not help */
        fixture_write(embedded, &"\x16\x03\x01\x00\xff\x01\x00\x00\xfb"[i], 1);
        weir_embedded_advance(embedded, weir_seconds(1));
    }
    weir_embedded_advance(embedded, weir_seconds(1) - 1);
    assert_string_equal(fixture_error(), "");
    weir_embedded_advance(embedded, 1);
    assert_string_equal(fixture_error(),
                        "ETIMEDOUT: the first bytes did not arrive within 10000 ms");
    weir_embedded_end_input(embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

static int add_patient(weir_pipeline *pipeline, const void *told)
{
    return weir_tls_hello_add(pipeline,
                              WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .timeout_ns = WEIR_OFF,
                                                     .user_data = (void *)(uintptr_t)told));
}

TEST(tls_hello_handler, may_come_for_ever_if_asked_for)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = fixture_open(add_patient, &told);

    weir_embedded_advance(embedded, weir_seconds(100000));
    assert_string_equal(fixture_error(), "");
    weir_embedded_release(embedded);
}

TEST(tls_hello_handler, that_has_come_has_no_time_limit_any_more)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = fixture_open(add, &told);
    struct hello_wire wire;

    hello_make_openssl(&wire, "example.com", "", TLS1_3_VERSION);
    fixture_write(embedded, wire.bytes, wire.length);
    weir_embedded_advance(embedded, weir_seconds(100));
    assert_string_equal(fixture_error(), "");
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(tls_hello_handler, is_read_where_reads_are_on_demand)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = NULL;
    struct hello_wire wire, out = {.length = 0};

    hello_make_openssl(&wire, "example.com", "", TLS1_3_VERSION);
    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)),
            &embedded),
        0);
    assert_int_equal(add(weir_embedded_pipeline(embedded), &told), 0);
    for (size_t at = 0; at < wire.length; at += 10)
        fixture_write(embedded, wire.bytes + at, wire.length - at < 10 ? wire.length - at : 10);
    assert_int_equal(told.count, 1);
    collect(embedded, &out);
    assert_int_equal(out.length, 0); /* only the handler has asked for it */
    weir_embedded_advance(embedded, weir_seconds(100));
    assert_string_equal(fixture_error(), "");
    weir_channel_request_read(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    collect(embedded, &out);
    assert_int_equal(out.length, wire.length);
    fixture_write(embedded, "more", 4); /* nobody has asked for it */
    collect(embedded, &out);
    assert_int_equal(out.length, wire.length);
    weir_embedded_release(embedded);
}

/* As a proxy does that has to read the hello before it knows where to connect to. */
TEST(tls_hello_handler, leaves_a_channel_that_reads_when_auto_read_is_switched_on)
{
    struct told told = {.count = 0};
    weir_embedded *embedded = NULL;
    struct hello_wire wire, out = {.length = 0};

    hello_make_openssl(&wire, "example.com", "", TLS1_3_VERSION);
    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)),
            &embedded),
        0);
    assert_int_equal(add(weir_embedded_pipeline(embedded), &told), 0);
    fixture_write(embedded, wire.bytes, wire.length);
    assert_int_equal(told.count, 1);
    weir_channel_set_auto_read(weir_embedded_channel(embedded), true);
    weir_embedded_run(embedded);
    collect(embedded, &out);
    assert_int_equal(out.length, wire.length);
    fixture_write(embedded, "more", 4);
    collect(embedded, &out);
    assert_int_equal(out.length, wire.length + 4);
    weir_embedded_release(embedded);
}

/* Who hears that it is something else may take it for what it is. */
static void take_over(weir_ctx *ctx, int err, const char *detail)
{
    (void)detail;
    assert_int_equal(err, WEIR_ENOTTLS);
    assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls-hello", NULL), 0);
}

TEST(tls_hello_handler, that_is_none_is_passed_on_if_the_handler_is_removed)
{
    static const weir_handler plain = {.name = "plain", .error = take_over};
    struct told told = {.count = 0};
    weir_embedded *embedded = NULL;
    struct hello_wire out = {.length = 0};

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(add(weir_embedded_pipeline(embedded), &told), 0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &plain, NULL), 0);
    fixture_write(embedded, "GET /", 5);
    collect(embedded, &out);
    assert_int_equal(out.length, 5);
    assert_memory_equal(out.bytes, "GET /", 5);
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(tls_hello_handler, has_options_that_can_be_wrong)
{
    weir_tls_hello_options options;

    options = *WEIR_TLS_HELLO_OPTIONS();
    assert_int_equal(options.size, sizeof(options));
    assert_int_equal(weir_tls_hello_add(NULL, &options), -EINVAL); /* nobody to tell */
    assert_int_equal(weir_tls_hello_add(NULL, NULL), -EINVAL);
}

static int add_impossible(weir_pipeline *pipeline, const void *arg)
{
    (void)arg;
    return weir_tls_hello_add(pipeline,
                              WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .timeout_ns = -2));
}

TEST(tls_hello_handler, has_a_time_limit_that_can_be)
{
    assert_int_equal(fixture_try_add(add_impossible, NULL), -EINVAL);
}

TEST(tls_hello_handler, survives_every_lack_of_memory)
{
    struct told told = {.count = 0};
    struct hello_wire extensions = {.length = 0}, wire;

    hello_put_name(&extensions, "example.com", 11);
    hello_make(&wire, &extensions, 16384);
    fixture_assert_survives(add, &told, wire.bytes, wire.length);
}
