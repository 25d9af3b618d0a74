/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes between two embedded channels: what is reported, and how they fail. Those that wait
 * are in test_tls_handshake.c.
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
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    assert_events(&pair.client.events, "handshake(ok)");
    assert_events(&pair.server.events, "handshake(ok)");
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(hello)");
    tls_side_send_text(&pair.server, "you too");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "read(you too)");
    tls_pair_close(&pair);
}

TEST(tls, does_the_same_one_byte_at_a_time)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    pair.piece = 1;
    tls_pair_begin(&pair);
    tls_pair_run(&pair);
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok)");
    assert_events(&pair.server.events, "handshake(ok) read(hello)");
    tls_pair_close(&pair);
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

TEST(tls, reports_what_was_agreed_upon)
{
    struct tls_pair pair;
    weir_msg *later;

    tls_pair_prepare(&pair, NULL);
    pair.server.on_handshake = write_down_what_was_agreed;
    tls_pair_begin(&pair);
    tls_pair_run(&pair);
    assert_string_equal(agreed, "TLSv1.3 TLS_AES_256_GCM_SHA384 '' localhost nobody ");
    later = weir_tls_read_handshake(pair.client.pipeline);
    assert_non_null(later);
    write_down_what_was_agreed(NULL, weir_tls_handshake_of(later));
    assert_string_equal(agreed, "TLSv1.3 TLS_AES_256_GCM_SHA384 '' localhost peer ");
    weir_msg_release(later);
    tls_pair_close(&pair);
}

TEST(tls, has_no_handshake_to_tell_of_before_it_is_over)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    assert_null(weir_tls_read_handshake(pair.client.pipeline));
    tls_pair_begin(&pair);
    assert_null(weir_tls_read_handshake(pair.client.pipeline));
    tls_pair_close(&pair);
}

/* The client's promise. */
static weir_promise *prepare_promised(struct tls_pair *pair)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    tls_pair_prepare(
        pair, &(const struct tls_pair_options){
                  .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake = promise)});
    return promise;
}

TEST(tls, completes_the_promise_of_the_handshake)
{
    struct tls_pair pair;
    weir_promise *promise = prepare_promised(&pair);

    tls_pair_begin(&pair);
    assert_int_equal(weir_promise_result(promise), -EINPROGRESS);
    tls_pair_run(&pair);
    assert_int_equal(weir_promise_result(promise), 0);
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

TEST(tls, rejects_to_be_a_client_that_verifies_and_does_not_say_whom)
{
    weir_tls_context *context = NULL;
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &context), 0);
    log_capture_start();
    assert_int_equal(weir_tls_add(weir_embedded_pipeline(embedded), context), -EINVAL);
    assert_string_equal(weir_tls_reason(), "server_name is required for a client that verifies");
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

TEST(tls, reports_both_when_the_certificate_is_not_trusted)
{
    struct tls_pair pair;

    tls_pair_open(&pair,
                  &(const struct tls_pair_options){
                      .client_context = WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->strange_ca)});
    assert_events(&pair.client.events,
                  "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    assert_events(&pair.server.events,
                  "handshake(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
    assert_non_null(strstr(pair.client.detail, "certificate"));
    assert_non_null(strstr(pair.server.detail, "rejected by the peer"));
    assert_false(weir_channel_is_open(pair.client.channel));
    assert_false(weir_channel_is_open(pair.server.channel));
    tls_pair_close(&pair);
}

TEST(tls, reports_of_bytes_that_are_not_tls)
{
    struct tls_pair pair;
    weir_buf *request = NULL;

    tls_pair_prepare(&pair, NULL);
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    assert_int_equal(weir_buf_create_from("GET / HTTP/1.1\r\n\r\n", 18, &request), 0);
    (void)weir_embedded_write_inbound(pair.server.embedded, weir_buf_msg(request));
    assert_events(&pair.server.events, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    tls_pair_close(&pair);
}

TEST(tls, gives_a_handshake_ten_seconds)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    tls_pair_begin(&pair);
    tls_pair_advance(&pair, weir_seconds(10) - 1);
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, 1);
    assert_events(&pair.client.events, "handshake(ETIMEDOUT) error(ETIMEDOUT) inactive");
    assert_events(&pair.server.events, "handshake(ETIMEDOUT) error(ETIMEDOUT) inactive");
    assert_string_equal(pair.client.detail, "the handshake did not complete within 10000 ms");
    tls_pair_close(&pair);
}

TEST(tls, gives_a_handshake_the_time_that_it_is_told_to)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, &(const struct tls_pair_options){
                                .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                           .handshake_timeout_ns = WEIR_OFF),
                                .server = WEIR_TLS_OPTIONS(.handshake_timeout_ns = weir_ms(20))});
    tls_pair_begin(&pair);
    tls_pair_advance(&pair, weir_ms(20));
    assert_events(&pair.server.events, "handshake(ETIMEDOUT) error(ETIMEDOUT) inactive");
    tls_pair_advance(&pair, weir_seconds(3600));
    assert_events(&pair.client.events, "");
    tls_pair_close(&pair);
}

TEST(tls, does_not_limit_the_time_after_the_handshake)
{
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    tls_pair_advance(&pair, weir_seconds(3600));
    assert_events(&pair.client.events, "handshake(ok)");
    assert_events(&pair.server.events, "handshake(ok)");
    tls_pair_close(&pair);
}

TEST(tls, reports_when_the_peer_goes_before_the_handshake_is_over)
{
    struct tls_pair pair;
    weir_promise *promise = prepare_promised(&pair);

    tls_pair_begin(&pair);
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "handshake(WEIR_ECUTOFF) error(WEIR_ECUTOFF) inactive");
    assert_int_equal(weir_promise_result(promise), WEIR_ECUTOFF);
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

TEST(tls, reports_when_it_is_aborted_or_removed_before_the_handshake_is_over)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    tls_pair_begin(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(3), "w");
    weir_channel_abort(pair.client.channel, NULL);
    weir_embedded_run(pair.client.embedded);
    assert_events(&pair.client.events, "handshake(WEIR_ECLOSED) w=WEIR_ECLOSED inactive");
    tls_side_write(&pair.server, tls_pair_bytes(3), "w");
    assert_int_equal(weir_pipeline_remove(pair.server.pipeline, "tls", NULL), 0);
    assert_events(&pair.server.events, "handshake(WEIR_ECLOSED) w=WEIR_ECLOSED");
    assert_true(weir_channel_is_open(pair.server.channel));
    tls_pair_close(&pair);
}

TEST(tls, completes_its_promise_when_it_was_never_added)
{
    struct tls_pair pair;
    weir_promise *promise = prepare_promised(&pair);

    tls_pair_close(&pair);
    assert_int_equal(weir_promise_result(promise), WEIR_ECLOSED);
    weir_promise_release(promise);
}

TEST(tls, completes_its_promise_when_it_cannot_be_added)
{
    weir_promise *promise = NULL;
    struct tls_pair pair;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &promise), 0);
    tls_pair_prepare(&pair, NULL);
    assert_int_equal(weir_tls_add_with(pair.client.pipeline, pair.client_context,
                                       WEIR_TLS_OPTIONS(.handshake = promise)),
                     -EINVAL); /* whose name? */
    assert_int_equal(weir_promise_result(promise), -EINVAL);
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

static void remove_after_handshake(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)handshake;
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL);
}

/* What it had to say is said, and the peer has shaken hands as well. */
TEST(tls, may_be_removed_by_who_hears_of_the_handshake)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    pair.client.on_handshake = remove_after_handshake;
    tls_pair_begin(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(3), "w");
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.client.events, "w=WEIR_ECLOSED"), 1);
    assert_events(&pair.server.events, "handshake(ok)");
    tls_pair_close(&pair);
}

TEST(tls, shakes_hands_while_its_channel_moves)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    tls_pair_begin(&pair);
    while (tls_pair_transfer(&pair, &pair.client, &pair.server) ||
           tls_pair_transfer(&pair, &pair.server, &pair.client)) {
        weir_channel_deregister(pair.server.channel, NULL);
        weir_embedded_run(pair.server.embedded);
        assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    }
    assert_events(&pair.client.events, "handshake(ok)");
    assert_events(&pair.server.events, "handshake(ok)");
    tls_pair_close(&pair);
}

/* Each hears its own handshake, and those behind hear both. */
TEST(tls, may_be_within_tls)
{
    weir_tls_options within =
        *WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.after = "tls", .name = "within"));
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    assert_int_equal(weir_tls_add_with(pair.server.pipeline, pair.server_context, &within), 0);
    within.server_name = "localhost";
    assert_int_equal(weir_tls_add_with(pair.client.pipeline, pair.client_context, &within), 0);
    tls_pair_begin(&pair);
    tls_side_send_text(&pair.client, "both");
    tls_pair_run(&pair);
    tls_side_write(&pair.server, tls_pair_bytes(300000), NULL);
    pair.client.is_long = true;
    weir_channel_close(pair.server.channel, NULL);
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.server.events, "handshake(ok)"), 2);
    assert_int_equal(event_log_count(&pair.server.events, "read(both)"), 1);
    assert_int_equal(pair.client.received, 300000);
    assert_int_equal(event_log_count(&pair.client.events, "ended"), 1); /* which closes it */
    assert_int_equal(event_log_count(&pair.client.events, "error"), 0);
    tls_pair_close(&pair);
}
