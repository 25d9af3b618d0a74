/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain or TLS: what the first bytes decide, when, and which handlers are added.
 */
#include <weir/tls.h>

#include <errno.h>
#include <string.h>

#include <openssl/ssl.h>
#include <weir/clock.h>
#include <weir/embedded.h>
#include <weir/error.h>

#include "support/codec/decoder_fixture.h"
#include "support/memory.h"
#include "support/tls/client_hello.h"
#include "support/tls/pki.h"

/* ---- a server that says what it hears; a client ---- */

static weir_tls_context *context(void)
{
    weir_tls_context *made = NULL;

    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key),
                         &made),
                     0);
    return made;
}

/* What the detector decided: "plain" or "tls", each time. */
static char decided[64];
static int answer;

static void echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static int init_echo(weir_channel *channel, bool is_tls, void *user_data)
{
    static const weir_handler handler = {.name = "echo", .read = echo};

    assert_ptr_equal(user_data, decided);
    strcat(decided, is_tls ? "tls " : "plain ");
    if (answer < 0)
        return answer;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, NULL);
}

/* In front of the handler that records errors, so that the echo is last. */
static int add_to(weir_pipeline *pipeline, const weir_tls_detect_options *options)
{
    weir_tls_detect_options own;
    int err;

    own = *WEIR_TLS_DETECT_OPTIONS();
    if (options != NULL)
        own = *options;
    own.context = own.context != NULL ? weir_tls_context_retain(own.context) : context();
    own.init = init_echo;
    own.user_data = decided;
    decided[0] = '\0';
    err = weir_tls_detect_add(pipeline, &own);
    weir_tls_context_release(own.context);
    return err;
}

static int add(weir_pipeline *pipeline, const void *options)
{
    return add_to(pipeline, options);
}

static const char *pipeline_of(weir_embedded *embedded)
{
    static char text[128];

    (void)weir_pipeline_dump(weir_embedded_pipeline(embedded), text, sizeof(text));
    return text;
}

static void assert_sent(weir_embedded *embedded, const char *expected)
{
    weir_msg *msg = weir_embedded_read_outbound(embedded);

    assert_non_null(msg);
    assert_int_equal(weir_msg_size(msg), strlen(expected));
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), expected, strlen(expected));
    weir_msg_release(msg);
}

/* ---- what decides ---- */

TEST(tls_detect, anything_else_is_plain_at_the_first_byte)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    fixture_write_text(embedded, "G");
    assert_string_equal(decided, "plain ");
    assert_string_equal(pipeline_of(embedded), "head <-> noter <-> echo <-> tail");
    assert_sent(embedded, "G");
    fixture_write_text(embedded, "ET");
    assert_sent(embedded, "ET");
    assert_string_equal(decided, "plain ");
    weir_embedded_release(embedded);
}

TEST(tls_detect, tls_is_so_at_the_second_byte)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    fixture_write_text(embedded, "\x16");
    assert_string_equal(decided, "");
    fixture_write_text(embedded, "\x03");
    assert_string_equal(decided, "tls ");
    assert_string_equal(pipeline_of(embedded), "head <-> tls <-> noter <-> echo <-> tail");
    weir_embedded_release(embedded);
}

TEST(tls_detect, what_only_begins_like_tls_is_plain_and_nothing_of_it_is_lost)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    fixture_write_text(embedded, "\x16");
    fixture_write_text(embedded, "\x02");
    assert_string_equal(decided, "plain ");
    assert_sent(embedded, "\x16\x02");
    weir_embedded_release(embedded);
}

/* What the one has sent is what the other receives, in pieces; false if there was nothing. */
static bool bring(weir_embedded *from, weir_embedded *to, size_t piece)
{
    weir_msg *msg = weir_embedded_read_outbound(from);
    const uint8_t *bytes;
    size_t length;

    if (msg == NULL)
        return false;
    bytes = weir_buf_bytes(weir_buf_of(msg));
    length = weir_msg_size(msg);
    for (size_t at = 0; at < length; at += piece)
        fixture_write(to, bytes + at, length - at < piece ? length - at : piece);
    weir_msg_release(msg);
    return true;
}

static void converse(size_t piece)
{
    weir_embedded *client = NULL, *server = fixture_open(add, NULL);
    weir_tls_context *trust = NULL;
    weir_msg *received;

    assert_int_equal(weir_embedded_create(NULL, &client), 0);
    assert_int_equal(weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &trust),
                     0);
    assert_int_equal(weir_tls_add_with(weir_embedded_pipeline(client), trust,
                                       WEIR_TLS_OPTIONS(.server_name = "localhost")),
                     0);
    assert_int_equal(weir_embedded_write_outbound(client, feed_bytes("hello", 5)), 0);
    while (bring(client, server, piece) || bring(server, client, piece))
        continue;
    received = weir_embedded_read_inbound(client);
    assert_non_null(received);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(received)), "hello", 5);
    weir_msg_release(received);
    assert_string_equal(decided, "tls ");
    assert_string_equal(fixture_error(), "");
    weir_embedded_release(client);
    weir_embedded_release(server);
    weir_tls_context_release(trust);
}

TEST(tls_detect, the_bytes_that_decided_are_the_handshakes_first)
{
    converse(SIZE_MAX / 2);
    converse(1);
    converse(2);
    converse(100);
}

/* ---- who says nothing ---- */

static void assert_times_out(const weir_tls_detect_options *options, int64_t after_ns,
                             const char *error)
{
    weir_embedded *embedded = fixture_open(add, options);

    fixture_write_text(embedded, "\x16"); /* which says nothing yet */
    weir_embedded_advance(embedded, after_ns - 1);
    assert_string_equal(fixture_error(), "");
    weir_embedded_advance(embedded, 1);
    assert_string_equal(fixture_error(), error);
    weir_embedded_end_input(embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_string_equal(decided, "");
    weir_embedded_release(embedded);
}

TEST(tls_detect, does_not_wait_for_ever)
{
    assert_times_out(NULL, weir_seconds(10),
                     "ETIMEDOUT: the first bytes did not arrive within 10000 ms");
    assert_times_out(WEIR_TLS_DETECT_OPTIONS(.timeout_ns = weir_ms(50)), weir_ms(50),
                     "ETIMEDOUT: the first bytes did not arrive within 50 ms");
}

TEST(tls_detect, does_not_wait_for_ever_where_its_channel_has_moved)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    weir_channel_deregister(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(weir_embedded_register(embedded), 0);
    weir_embedded_advance(embedded, weir_seconds(10));
    assert_string_equal(fixture_error(),
                        "ETIMEDOUT: the first bytes did not arrive within 10000 ms");
    weir_embedded_release(embedded);
}

TEST(tls_detect, has_no_time_limit_when_it_has_decided)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    fixture_write_text(embedded, "x");
    weir_embedded_advance(embedded, weir_seconds(100));
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);

    embedded = fixture_open(add, WEIR_TLS_DETECT_OPTIONS(.timeout_ns = WEIR_OFF)); /* or never */
    weir_embedded_advance(embedded, weir_seconds(100000));
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(tls_detect, who_comes_and_goes_without_a_word_has_made_no_error)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    weir_embedded_end_input(embedded);
    assert_string_equal(fixture_error(), "");
    assert_string_equal(decided, "");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* ---- the rest ---- */

TEST(tls_detect, closes_if_the_pipeline_cannot_be_made)
{
    weir_embedded *embedded = fixture_open(add, NULL);

    answer = -ENOENT;
    (void)weir_embedded_write_inbound(embedded, feed_bytes("x", 1));
    answer = 0;
    weir_embedded_end_input(embedded);
    assert_string_equal(fixture_error(), "ENOENT: the handlers could not be added");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

TEST(tls_detect, asks_for_bytes_where_reads_are_on_demand)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)),
            &embedded),
        0);
    assert_int_equal(add(weir_embedded_pipeline(embedded), NULL), 0);
    fixture_write_text(embedded, "\x16");
    fixture_write_text(embedded, "\x03");
    assert_string_equal(decided, "tls ");
    weir_embedded_release(embedded);
}

static void assert_refused(const weir_tls_detect_options *options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_tls_detect_add(weir_embedded_pipeline(embedded), options), -EINVAL);
    weir_embedded_release(embedded);
}

TEST(tls_detect, rejects_what_cannot_be)
{
    weir_tls_context *server = context(), *client = NULL;
    weir_promise *promise = NULL;
    const weir_tls_options *impossible[] = {
        WEIR_TLS_OPTIONS(.start_tls = true),
        WEIR_TLS_OPTIONS(.server_name = "example.test"),
        WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.first = true)),
    };

    assert_int_equal(weir_tls_client_create(NULL, &client), 0);
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    assert_refused(NULL);
    assert_refused(WEIR_TLS_DETECT_OPTIONS(.context = server));
    assert_refused(WEIR_TLS_DETECT_OPTIONS(.init = init_echo));
    assert_refused(WEIR_TLS_DETECT_OPTIONS(.context = client, .init = init_echo));
    assert_refused(WEIR_TLS_DETECT_OPTIONS(.context = server, .init = init_echo, .timeout_ns = -2));
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++)
        assert_refused(
            WEIR_TLS_DETECT_OPTIONS(.context = server, .init = init_echo, .tls = impossible[i]));
    assert_refused(WEIR_TLS_DETECT_OPTIONS(.context = server, .init = init_echo,
                                           .tls = WEIR_TLS_OPTIONS(.handshake = promise)));
    weir_promise_release(promise);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(tls_detect, keeps_the_group_that_does_the_work)
{
    weir_group *group = NULL;
    weir_embedded *embedded;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    embedded =
        fixture_open(add, WEIR_TLS_DETECT_OPTIONS(.tls = WEIR_TLS_OPTIONS(.offload = group)));
    weir_group_release(group);
    fixture_write_text(embedded, "x"); /* the detector goes, and the group with it */
    assert_string_equal(decided, "plain ");
    weir_embedded_release(embedded);
}

TEST(tls_detect, survives_every_lack_of_memory)
{
    weir_tls_context *made = context();
    struct hello_wire wire;

    hello_make_openssl(&wire, "localhost", "", TLS1_3_VERSION);
    fixture_assert_survives(add, WEIR_TLS_DETECT_OPTIONS(.context = made), wire.bytes, 120);
    fixture_assert_survives(add, WEIR_TLS_DETECT_OPTIONS(.context = made), "plain text", 10);
    weir_tls_context_release(made);
}
