/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake of the TLS handler between two embedded channels: what is told of it, and how it
 * fails. Those that wait for somebody are in test_tls_shaking.c.
 */
#include <weir/tls.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/error.h>

#include "support/executor/log_capture.h"
#include "support/tls/pki.h"
#include "support/tls/tls_pair.h"

/* ---- the handshake ---- */

TEST(tls, shakes_hands_and_brings_words)
{
    struct duet duet;

    duet_open(&duet, NULL);
    assert_events(&duet.client.events, "shaken(ok)");
    assert_events(&duet.server.events, "shaken(ok)");
    duet_say(&duet.client, "hello");
    duet_play(&duet);
    assert_events(&duet.server.events, "read(hello)");
    duet_say(&duet.server, "you too");
    duet_play(&duet);
    assert_events(&duet.client.events, "read(you too)");
    duet_close(&duet);
}

TEST(tls, does_the_same_one_byte_at_a_time)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    duet.piece = 1;
    duet_begin(&duet);
    duet_play(&duet);
    duet_say(&duet.client, "hello");
    duet_play(&duet);
    assert_events(&duet.client.events, "shaken(ok)");
    assert_events(&duet.server.events, "shaken(ok) read(hello)");
    duet_close(&duet);
}

TEST(tls, begins_when_it_is_added_to_a_channel_that_is_active)
{
    weir_tls_context *context = NULL;
    weir_embedded *embedded = NULL;
    weir_msg *hello;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &context), 0);
    assert_int_equal(weir_tls_add_with(weir_embedded_pipeline(embedded), context,
                                       WEIR_TLS_OPTIONS(.server_name = "localhost")),
                     0);
    hello = weir_embedded_read_outbound(embedded);
    assert_non_null(hello);
    assert_int_equal(weir_buf_bytes(weir_buf_of(hello))[0], 0x16);
    weir_msg_release(hello);
    weir_embedded_release(embedded);
    weir_tls_context_release(context);
}

static char agreed[256];

static void write_down_what_was_agreed(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    weir_tls_certificate *peer = weir_tls_handshake_peer(handshake);

    (void)ctx;
    (void)snprintf(agreed, sizeof(agreed), "%s %s '%s' %s %s %s",
                   weir_tls_handshake_version(handshake), weir_tls_handshake_cipher(handshake),
                   weir_tls_handshake_alpn(handshake), weir_tls_handshake_server_name(handshake),
                   peer != NULL ? "peer" : "nobody", weir_tls_handshake_detail(handshake));
}

TEST(tls, tells_what_was_agreed_upon)
{
    struct duet duet;
    weir_msg *later;

    duet_prepare(&duet, NULL);
    duet.server.on_shaken = write_down_what_was_agreed;
    duet_begin(&duet);
    duet_play(&duet);
    assert_string_equal(agreed, "TLSv1.3 TLS_AES_256_GCM_SHA384 '' localhost nobody ");
    later = weir_tls_read_handshake(duet.client.pipeline);
    assert_non_null(later);
    write_down_what_was_agreed(NULL, weir_tls_handshake_of(later));
    assert_string_equal(agreed, "TLSv1.3 TLS_AES_256_GCM_SHA384 '' localhost peer ");
    weir_msg_release(later);
    duet_close(&duet);
}

TEST(tls, has_no_handshake_to_tell_of_before_it_is_over)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    assert_null(weir_tls_read_handshake(duet.client.pipeline));
    duet_begin(&duet);
    assert_null(weir_tls_read_handshake(duet.client.pipeline));
    duet_close(&duet);
}

/* The client's promise. */
static weir_promise *prepare_promised(struct duet *duet)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    duet_prepare(duet,
                 &(const struct duet_options){
                     .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake = promise)});
    return promise;
}

TEST(tls, completes_the_promise_of_the_handshake)
{
    struct duet duet;
    weir_promise *promise = prepare_promised(&duet);

    duet_begin(&duet);
    assert_int_equal(weir_promise_result(promise), -EINPROGRESS);
    duet_play(&duet);
    assert_int_equal(weir_promise_result(promise), 0);
    weir_promise_release(promise);
    duet_close(&duet);
}

TEST(tls, refuses_to_be_a_client_that_verifies_and_does_not_say_whom)
{
    weir_tls_context *context = NULL;
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &context), 0);
    log_capture_start();
    assert_int_equal(weir_tls_add(weir_embedded_pipeline(embedded), context), -EINVAL);
    assert_string_equal(weir_tls_reason(),
                        "a client that verifies must say whom it wants to reach: server_name");
    assert_int_equal(weir_tls_add_with(weir_embedded_pipeline(embedded), context,
                                       WEIR_TLS_OPTIONS(.server_name = "no name")),
                     -EINVAL);
    assert_string_equal(weir_tls_reason(),
                        "server_name: \"no name\" is neither a name nor an address");
    assert_true(log_capture_last_contains("no name"));
    assert_int_equal(weir_tls_add(weir_embedded_pipeline(embedded), NULL), -EINVAL);
    assert_int_equal(
        weir_tls_add_with(weir_embedded_pipeline(embedded), context,
                          WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = -2)),
        -EINVAL);
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_release(embedded);
    weir_tls_context_release(context);
}

/* ---- handshakes that fail ---- */

TEST(tls, tells_both_when_the_certificate_is_not_believed)
{
    struct duet duet;

    duet_open(&duet, &(const struct duet_options){
                         .client_context = WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->strange_ca)});
    assert_events(&duet.client.events, "shaken(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    assert_events(&duet.server.events, "shaken(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
    assert_non_null(strstr(duet.client.detail, "certificate"));
    assert_non_null(strstr(duet.server.detail, "the peer refused"));
    assert_false(weir_channel_is_open(duet.client.channel));
    assert_false(weir_channel_is_open(duet.server.channel));
    duet_close(&duet);
}

TEST(tls, tells_of_bytes_that_are_not_tls)
{
    struct duet duet;
    weir_buf *request = NULL;

    duet_prepare(&duet, NULL);
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    assert_int_equal(weir_buf_create_from("GET / HTTP/1.1\r\n\r\n", 18, &request), 0);
    (void)weir_embedded_write_inbound(duet.server.embedded, weir_buf_msg(request));
    assert_events(&duet.server.events, "shaken(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    duet_close(&duet);
}

TEST(tls, gives_a_handshake_ten_seconds)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    duet_begin(&duet);
    duet_advance(&duet, weir_seconds(10) - 1);
    assert_events(&duet.client.events, "");
    duet_advance(&duet, 1);
    assert_events(&duet.client.events, "shaken(ETIMEDOUT) error(ETIMEDOUT) inactive");
    assert_events(&duet.server.events, "shaken(ETIMEDOUT) error(ETIMEDOUT) inactive");
    assert_string_equal(duet.client.detail, "the handshake was not over after 10000 ms");
    duet_close(&duet);
}

TEST(tls, gives_a_handshake_the_time_that_it_is_told_to)
{
    struct duet duet;

    duet_prepare(&duet, &(const struct duet_options){
                            .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                       .handshake_timeout_ns = WEIR_OFF),
                            .server = WEIR_TLS_OPTIONS(.handshake_timeout_ns = weir_ms(20))});
    duet_begin(&duet);
    duet_advance(&duet, weir_ms(20));
    assert_events(&duet.server.events, "shaken(ETIMEDOUT) error(ETIMEDOUT) inactive");
    duet_advance(&duet, weir_seconds(3600));
    assert_events(&duet.client.events, "");
    duet_close(&duet);
}

TEST(tls, does_not_limit_the_time_after_the_handshake)
{
    struct duet duet;

    duet_open(&duet, NULL);
    duet_advance(&duet, weir_seconds(3600));
    assert_events(&duet.client.events, "shaken(ok)");
    assert_events(&duet.server.events, "shaken(ok)");
    duet_close(&duet);
}

TEST(tls, tells_when_the_peer_goes_before_the_handshake_is_over)
{
    struct duet duet;
    weir_promise *promise = prepare_promised(&duet);

    duet_begin(&duet);
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shaken(WEIR_ECUTOFF) error(WEIR_ECUTOFF) inactive");
    assert_int_equal(weir_promise_result(promise), WEIR_ECUTOFF);
    weir_promise_release(promise);
    duet_close(&duet);
}

TEST(tls, tells_when_it_is_aborted_or_removed_before_the_handshake_is_over)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    duet_begin(&duet);
    duet_write(&duet.client, duet_bytes(3), "w");
    weir_channel_abort(duet.client.channel, NULL);
    weir_embedded_run(duet.client.embedded);
    assert_events(&duet.client.events, "shaken(WEIR_ECLOSED) w=WEIR_ECLOSED inactive");
    duet_write(&duet.server, duet_bytes(3), "w");
    assert_int_equal(weir_pipeline_remove(duet.server.pipeline, "tls", NULL), 0);
    assert_events(&duet.server.events, "shaken(WEIR_ECLOSED) w=WEIR_ECLOSED");
    assert_true(weir_channel_is_open(duet.server.channel));
    duet_close(&duet);
}

TEST(tls, completes_its_promise_when_it_was_never_added)
{
    struct duet duet;
    weir_promise *promise = prepare_promised(&duet);

    duet_close(&duet);
    assert_int_equal(weir_promise_result(promise), WEIR_ECLOSED);
    weir_promise_release(promise);
}

TEST(tls, completes_its_promise_when_it_cannot_be_added)
{
    weir_promise *promise = NULL;
    struct duet duet;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    duet_prepare(&duet, NULL);
    assert_int_equal(weir_tls_add_with(duet.client.pipeline, duet.client_context,
                                       WEIR_TLS_OPTIONS(.handshake = promise)),
                     -EINVAL); /* whose name? */
    assert_int_equal(weir_promise_result(promise), -EINVAL);
    weir_promise_release(promise);
    duet_close(&duet);
}

static void remove_when_shaken(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)handshake;
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL);
}

/* What it had to say is said, and the peer has shaken hands as well. */
TEST(tls, may_be_removed_by_who_hears_of_the_handshake)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    duet.client.on_shaken = remove_when_shaken;
    duet_begin(&duet);
    duet_write(&duet.client, duet_bytes(3), "w");
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.client.events, "w=WEIR_ECLOSED"), 1);
    assert_events(&duet.server.events, "shaken(ok)");
    duet_close(&duet);
}

TEST(tls, shakes_hands_while_its_channel_moves)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    duet_begin(&duet);
    while (duet_bring(&duet, &duet.client, &duet.server) ||
           duet_bring(&duet, &duet.server, &duet.client)) {
        weir_channel_deregister(duet.server.channel, NULL);
        weir_embedded_run(duet.server.embedded);
        assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    }
    assert_events(&duet.client.events, "shaken(ok)");
    assert_events(&duet.server.events, "shaken(ok)");
    duet_close(&duet);
}

/* Each hears its own handshake, and those behind hear both. */
TEST(tls, may_be_within_tls)
{
    weir_tls_options within =
        *WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.after = "tls", .name = "within"));
    struct duet duet;

    duet_prepare(&duet, NULL);
    assert_int_equal(weir_tls_add_with(duet.server.pipeline, duet.server_context, &within), 0);
    within.server_name = "localhost";
    assert_int_equal(weir_tls_add_with(duet.client.pipeline, duet.client_context, &within), 0);
    duet_begin(&duet);
    duet_say(&duet.client, "both");
    duet_play(&duet);
    duet_write(&duet.server, duet_bytes(300000), NULL);
    duet.client.is_long = true;
    weir_channel_close(duet.server.channel, NULL);
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.server.events, "shaken(ok)"), 2);
    assert_int_equal(event_log_count(&duet.server.events, "read(both)"), 1);
    assert_int_equal(duet.client.received, 300000);
    assert_int_equal(event_log_count(&duet.client.events, "ended"), 1); /* which closes it */
    assert_int_equal(event_log_count(&duet.client.events, "error"), 0);
    duet_close(&duet);
}
