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
static void meet_and_shake(struct opponent *opponent, bool is_server, enum weir_tls_version version,
                           const weir_embedded_options *channel)
{
    opponent_meet(opponent, &(const struct opponent_options){.is_server = is_server,
                                                             .max_version = version,
                                                             .channel = channel});
    opponent_play(opponent);
    assert_events(&opponent->ours.events, "shaken(ok)");
}

/* The handshake has not begun; its first bytes have come from a client. */
static void meet_halfway(struct opponent *opponent, bool is_server, enum weir_tls_version version)
{
    opponent_meet(opponent,
                  &(const struct opponent_options){.is_server = is_server, .max_version = version});
    (void)SSL_do_handshake(opponent->ssl);
    opponent_bring(opponent);
}

/* Many of a record in one piece. */
static void flood(struct opponent *opponent, const uint8_t *record, size_t length)
{
    static uint8_t bytes[MANY * 16];

    assert_true(length <= 16);
    for (size_t i = 0; i < MANY; i++)
        memcpy(bytes + i * length, record, length);
    opponent_throw(opponent, bytes, MANY * length);
}

static void assert_flooded(struct opponent *opponent, const char *words)
{
    opponent_leave(opponent);
    if (strstr(opponent->ours.detail, words) == NULL)
        fail_msg("\"%s\" is not among \"%s\"", words, opponent->ours.detail);
    assert_events(&opponent->ours.events, "shaken(WEIR_ETLS) error(WEIR_ETLS) inactive");
    opponent_part(opponent);
}

/* ---- in clear ---- */

TEST(tls_flood, of_warnings_is_refused)
{
    static const uint8_t warning[] = {21, 3, 3, 0, 2, 1, 112};
    struct opponent opponent;

    for (int i = 0; i < 2; i++) {
        meet_halfway(&opponent, i == 1, WEIR_TLS_VERSION_1_2);
        flood(&opponent, warning, sizeof(warning));
        assert_flooded(&opponent, "too many warn alerts");
    }
}

TEST(tls_flood, of_empty_records_is_refused)
{
    static const uint8_t empty[] = {22, 3, 3, 0, 0};
    struct opponent opponent;

    for (int i = 0; i < 4; i++) {
        meet_halfway(&opponent, i % 2 == 1, i < 2 ? WEIR_TLS_VERSION_1_2 : WEIR_TLS_VERSION_1_3);
        flood(&opponent, empty, sizeof(empty));
        assert_flooded(&opponent, i == 0 ? "record too small" : "we refused: ");
    }
}

/* Of TLS 1.3 they mean nothing, and a few are borne. */
TEST(tls_flood, of_changes_of_the_cipher_is_refused)
{
    static const uint8_t change[] = {20, 3, 3, 0, 1, 1};
    struct opponent opponent;

    for (int i = 0; i < 4; i++) {
        meet_halfway(&opponent, i % 2 == 1, i < 2 ? WEIR_TLS_VERSION_1_2 : WEIR_TLS_VERSION_1_3);
        flood(&opponent, change, sizeof(change));
        assert_flooded(&opponent, "we refused: ");
    }
}

/* ---- encrypted ---- */

static void renew_keys(struct opponent *opponent, int how)
{
    assert_int_equal(SSL_key_update(opponent->ssl, how), 1);
    assert_int_equal(SSL_do_handshake(opponent->ssl), 1);
}

/* Enough for one message of the handshake to be accepted among them. */
static void say_some(struct opponent *opponent)
{
    opponent->ours.is_long = true;
    for (int i = 0; i < 8; i++)
        opponent_say(opponent, "x");
}

TEST(tls_flood, of_new_keys_among_data_is_borne)
{
    struct opponent opponent;
    size_t bytes = 0;

    for (int i = 0; i < 4; i++) {
        meet_and_shake(&opponent, i % 2 == 1, WEIR_TLS_VERSION_1_3, NULL);
        for (int j = 0; j < MANY; j++) {
            say_some(&opponent);
            renew_keys(&opponent, i < 2 ? SSL_KEY_UPDATE_NOT_REQUESTED : SSL_KEY_UPDATE_REQUESTED);
            if (j % 100 == 99)
                opponent_play(&opponent);
            if (j == 199)
                bytes = test_openssl_bytes();
        }
        opponent_play(&opponent);
        event_log_clear(&opponent.ours.events);
        opponent.ours.is_long = false;
        opponent_say(&opponent, "hello");
        opponent_play(&opponent);
        assert_events(&opponent.ours.events, "read(hello)");
        assert_true(test_openssl_bytes() <= bytes + 1024);
        assert_true(opponent.ours.sent <= 8192 + opponent.brought);
        opponent_part(&opponent);
    }
}

/* It demands answers, and does not take them: they must not pile up. */
TEST(tls_flood, of_demands_for_new_keys_whose_answers_nobody_takes_is_refused)
{
    const weir_embedded_options *channel =
        WEIR_EMBEDDED_OPTIONS(.socket_space = 8192,
                              .channel = WEIR_CHANNEL_OPTIONS(.high_mark = 16384));
    int64_t most = 0;
    struct opponent opponent;

    for (int i = 0; i < 2; i++) {
        meet_and_shake(&opponent, i == 1, WEIR_TLS_VERSION_1_3, channel);
        opponent.is_deaf = true;
        for (int j = 0; j < 10 * MANY && weir_channel_is_open(opponent.ours.channel); j++) {
            say_some(&opponent);
            renew_keys(&opponent, SSL_KEY_UPDATE_REQUESTED);
            opponent_bring(&opponent);
            if (weir_channel_pending_bytes(opponent.ours.channel) > most)
                most = weir_channel_pending_bytes(opponent.ours.channel);
        }
        opponent_leave(&opponent);
        assert_true(most <= 3 * 16384);
        assert_string_equal(opponent.ours.detail,
                            "the peer demands answers and does not take them");
        assert_int_equal(event_log_count(&opponent.ours.events, "error(WEIR_ETLS)"), 1);
        assert_int_equal(event_log_count(&opponent.ours.events, "inactive"), 1);
        opponent_part(&opponent);
    }
}

/* A client remembers a few. */
TEST(tls_flood, of_tickets_among_data_is_borne)
{
    struct opponent opponent;
    size_t bytes = 0;

    meet_and_shake(&opponent, true, WEIR_TLS_VERSION_1_3, NULL);
    for (int i = 0; i < MANY / 10; i++) {
        assert_int_equal(SSL_new_session_ticket(opponent.ssl), 1);
        assert_int_equal(SSL_do_handshake(opponent.ssl), 1);
        say_some(&opponent);
        opponent_bring(&opponent);
        if (i == 20)
            bytes = test_openssl_bytes();
    }
    assert_true(test_openssl_bytes() <= bytes + 32 * 1024);
    opponent.ours.is_long = false;
    opponent_say(&opponent, "hello");
    opponent_play(&opponent);
    assert_events(&opponent.ours.events, "read(hello)");
    opponent_part(&opponent);
}

/* A server of TLS 1.2 wants another handshake, again and again. It is told each time that it does
 * not get one, and then refused. */
TEST(tls_flood, of_demands_for_another_handshake_is_refused)
{
    struct opponent opponent;

    meet_and_shake(&opponent, true, WEIR_TLS_VERSION_1_2, NULL);
    opponent.is_deaf = true;
    for (int i = 0; i < 32; i++) {
        (void)SSL_renegotiate(opponent.ssl);
        (void)SSL_do_handshake(opponent.ssl);
        opponent_bring(&opponent);
    }
    assert_events(&opponent.ours.events, "");
    (void)SSL_renegotiate(opponent.ssl);
    (void)SSL_do_handshake(opponent.ssl);
    opponent_bring(&opponent);
    assert_events(&opponent.ours.events, "error(WEIR_ETLS) inactive");
    assert_string_equal(opponent.ours.detail, "we refused: too many records without data");
    opponent_part(&opponent);
}
