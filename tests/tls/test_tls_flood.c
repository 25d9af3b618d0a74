/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Much of what is allowed once: records with nothing in them, warnings, new keys, tickets, other
 * handshakes. It is refused, or it costs no more than as many bytes of data.
 */
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/tls.h>

#include "support/tls/openssl_memory.h"
#include "support/tls/raw_peer.h"
#include "tls/tls.h"

#define MANY 2000

/* The handshake is over, and nobody remembers it. */
static void meet_and_shake(struct raw_peer *raw, bool is_server, enum weir_tls_version version,
                           const weir_embedded_options *channel)
{
    raw_peer_open(raw, &(const struct raw_peer_options){
                           .is_server = is_server, .max_version = version, .channel = channel});
    raw_peer_run(raw);
    assert_events(&raw->ours.events, "handshake(ok)");
}

/* The handshake has not begun; its first bytes have come from a client. */
static void meet_halfway(struct raw_peer *raw, bool is_server, enum weir_tls_version version)
{
    raw_peer_open(raw,
                  &(const struct raw_peer_options){.is_server = is_server, .max_version = version});
    (void)SSL_do_handshake(raw->ssl);
    raw_peer_transfer(raw);
}

/* Many of a record in one piece. */
static void flood(struct raw_peer *raw, const uint8_t *record, size_t length)
{
    static uint8_t bytes[MANY * 16];

    assert_true(length <= 16);
    for (size_t i = 0; i < MANY; i++)
        memcpy(bytes + i * length, record, length);
    raw_peer_inject(raw, bytes, MANY * length);
}

static void assert_flooded(struct raw_peer *raw, const char *words)
{
    raw_peer_end_stream(raw);
    if (strstr(raw->ours.detail, words) == NULL)
        fail_msg("\"%s\" is not among \"%s\"", words, raw->ours.detail);
    assert_events(&raw->ours.events, "handshake(WEIR_ETLS) error(WEIR_ETLS) inactive");
    raw_peer_close(raw);
}

/* ---- in clear ---- */

TEST(tls_flood, of_warnings_is_rejected)
{
    static const uint8_t warning[] = {21, 3, 3, 0, 2, 1, 112};
    struct raw_peer raw;

    for (int i = 0; i < 2; i++) {
        meet_halfway(&raw, i == 1, WEIR_TLS_VERSION_1_2);
        flood(&raw, warning, sizeof(warning));
        assert_flooded(&raw, "too many warn alerts");
    }
}

TEST(tls_flood, of_empty_records_is_rejected)
{
    static const uint8_t empty[] = {22, 3, 3, 0, 0};
    struct raw_peer raw;

    for (int i = 0; i < 4; i++) {
        meet_halfway(&raw, i % 2 == 1, i < 2 ? WEIR_TLS_VERSION_1_2 : WEIR_TLS_VERSION_1_3);
        flood(&raw, empty, sizeof(empty));
        assert_flooded(&raw, i == 0 ? "record too small" : "rejected by us: ");
    }
}

/* Of TLS 1.3 they mean nothing, and a few are borne. */
TEST(tls_flood, of_changes_of_the_cipher_is_rejected)
{
    static const uint8_t change[] = {20, 3, 3, 0, 1, 1};
    struct raw_peer raw;

    for (int i = 0; i < 4; i++) {
        meet_halfway(&raw, i % 2 == 1, i < 2 ? WEIR_TLS_VERSION_1_2 : WEIR_TLS_VERSION_1_3);
        flood(&raw, change, sizeof(change));
        assert_flooded(&raw, "rejected by us: ");
    }
}

/* ---- encrypted ---- */

static void renew_keys(struct raw_peer *raw, int how)
{
    assert_int_equal(SSL_key_update(raw->ssl, how), 1);
    assert_int_equal(SSL_do_handshake(raw->ssl), 1);
}

/* Enough for one message of the handshake to be accepted among them. */
static void say_some(struct raw_peer *raw)
{
    raw->ours.is_long = true;
    for (int i = 0; i < 8; i++)
        raw_peer_send_text(raw, "x");
}

TEST(tls_flood, of_new_keys_among_data_is_borne)
{
    struct raw_peer raw;
    size_t bytes = 0;

    for (int i = 0; i < 4; i++) {
        meet_and_shake(&raw, i % 2 == 1, WEIR_TLS_VERSION_1_3, NULL);
        for (int j = 0; j < MANY; j++) {
            say_some(&raw);
            if (j == 200) /* as at the end: OpenSSL 3.2 and later free buffers with their keys */
                bytes = test_openssl_bytes();
            renew_keys(&raw, i < 2 ? SSL_KEY_UPDATE_NOT_REQUESTED : SSL_KEY_UPDATE_REQUESTED);
            if (j % 100 == 99)
                raw_peer_run(&raw);
        }
        raw_peer_run(&raw);
        event_log_clear(&raw.ours.events);
        raw.ours.is_long = false;
        raw_peer_send_text(&raw, "hello");
        raw_peer_run(&raw);
        assert_events(&raw.ours.events, "read(hello)");
        assert_true(test_openssl_bytes() <= bytes + 1024);
        assert_true(raw.ours.sent <= 8192 + raw.delivered);
        raw_peer_close(&raw);
    }
}

/* It demands answers, and does not take them: they must not pile up. */
TEST(tls_flood, of_demands_for_new_keys_whose_answers_nobody_takes_is_rejected)
{
    const weir_embedded_options *channel =
        WEIR_EMBEDDED_OPTIONS(.socket_space = 8192,
                              .channel = WEIR_CHANNEL_OPTIONS(.high_mark = 16384));
    int64_t most = 0;
    struct raw_peer raw;

    for (int i = 0; i < 2; i++) {
        meet_and_shake(&raw, i == 1, WEIR_TLS_VERSION_1_3, channel);
        raw.stops_reading = true;
        for (int j = 0; j < 10 * MANY && weir_channel_is_open(raw.ours.channel); j++) {
            say_some(&raw);
            renew_keys(&raw, SSL_KEY_UPDATE_REQUESTED);
            raw_peer_transfer(&raw);
            if (weir_channel_pending_bytes(raw.ours.channel) > most)
                most = weir_channel_pending_bytes(raw.ours.channel);
        }
        raw_peer_end_stream(&raw);
        assert_true(most <= 3 * 16384);
        assert_string_equal(raw.ours.detail, "the peer requests replies and does not read them");
        assert_int_equal(event_log_count(&raw.ours.events, "error(WEIR_ETLS)"), 1);
        assert_int_equal(event_log_count(&raw.ours.events, "inactive"), 1);
        raw_peer_close(&raw);
    }
}

/* A client remembers a few. */
TEST(tls_flood, of_tickets_among_data_is_borne)
{
    struct raw_peer raw;
    size_t bytes = 0;

    meet_and_shake(&raw, true, WEIR_TLS_VERSION_1_3, NULL);
    for (int i = 0; i < MANY / 10; i++) {
        assert_int_equal(SSL_new_session_ticket(raw.ssl), 1);
        assert_int_equal(SSL_do_handshake(raw.ssl), 1);
        say_some(&raw);
        raw_peer_transfer(&raw);
        if (i == 20)
            bytes = test_openssl_bytes();
    }
    assert_true(test_openssl_bytes() <= bytes + 32 * 1024);
    raw.ours.is_long = false;
    raw_peer_send_text(&raw, "hello");
    raw_peer_run(&raw);
    assert_events(&raw.ours.events, "read(hello)");
    raw_peer_close(&raw);
}

/* A server of TLS 1.2 wants another handshake, again and again. Each request is
 * rejected, then the connection. */
TEST(tls_flood, of_demands_for_another_handshake_is_rejected)
{
    struct raw_peer raw;

    meet_and_shake(&raw, true, WEIR_TLS_VERSION_1_2, NULL);
    raw.stops_reading = true;
    for (int i = 0; i < 32; i++) {
        (void)SSL_renegotiate(raw.ssl);
        (void)SSL_do_handshake(raw.ssl);
        raw_peer_transfer(&raw);
    }
    assert_events(&raw.ours.events, "");
    (void)SSL_renegotiate(raw.ssl);
    (void)SSL_do_handshake(raw.ssl);
    raw_peer_transfer(&raw);
    assert_events(&raw.ours.events, "error(WEIR_ETLS) inactive");
    assert_string_equal(raw.ours.detail, "rejected by us: too many records without data");
    raw_peer_close(&raw);
}
