/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of peers: the alert that the peer gets, and the reason on our side.
 */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>

#include <weir/buf.h>

#include "support/test.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"
#include "tls/openssl/internal.h"

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

static void say(struct session_side *side, const void *bytes, size_t length)
{
    if (side->io.out == NULL)
        assert_int_equal(weir_buf_create(length, 0, &side->io.out), 0);
    assert_int_equal(weir_buf_write_bytes(side->io.out, bytes, length), 0);
}

static void send_raw_text(struct session_side *side, const char *text)
{
    say(side, text, strlen(text));
}

/* ---- what is not TLS ---- */

TEST(openssl_error, a_client_may_speak_something_else)
{
    static const char *const others[][2] = {
        {"GET / HTTP/1.1\r\n\r\n", "not TLS: received an HTTP request"},
        {"POST / HTTP/1.1\r\n\r\n", "not TLS: received an HTTP request"},
        {"OPTIONS * HTTP/1.1\r\n\r\n", "not TLS: received an HTTP request"},
        {"CONNECT a:1 HTTP/1.1\r\n\r\n", "not TLS: received an HTTP request"},
        {"PRI * HTTP/2.0\r\n\r\n", "not TLS: received an HTTP/2 preface"},
        {"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "not TLS: received a PROXY header"},
        {"SSH-2.0-OpenSSH\r\n", "not TLS: received SSH"},
        {"hello, hello", "not TLS: received unknown bytes"},
        {"\x80\x80\x01\x00\x00\x00\x00\x00\x00", "not TLS: received unknown bytes"},
    };
    struct session_pair pair;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        session_pair_open_default(&pair, WEIR_TLS_VERSION_DEFAULT);
        send_raw_text(&pair.client, others[i][0]);
        if (others[i][0][0] == '\x80')
            for (size_t j = 0; j < 20; j++)
                say(&pair.client, "\0\0\0\0\0\0\0\0", 8);
        assert_int_equal(session_side_step(&pair.server), WEIR_ENOTTLS);
        assert_string_equal(pair.server.session->reason, others[i][1]);
        session_pair_close(&pair);
    }
}

TEST(openssl_error, a_server_may_speak_something_else)
{
    static const char *const others[][2] = {
        {"HTTP/1.1 400 Bad Request\r\n", "not TLS: received an HTTP response"},
        {"220 mail.example.test ESMTP\r\n", "not TLS: received a plaintext greeting"},
        {"SSH-2.0-OpenSSH\r\n", "not TLS: received SSH"},
    };
    struct session_pair pair;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        session_pair_open_default(&pair, WEIR_TLS_VERSION_DEFAULT);
        assert_int_equal(session_side_step(&pair.client), 0);
        send_raw_text(&pair.server, others[i][0]);
        assert_int_equal(session_side_step(&pair.client), WEIR_ENOTTLS);
        assert_string_equal(pair.client.session->reason, others[i][1]);
        session_pair_close(&pair);
    }
}

/* ---- no agreement ---- */

TEST(openssl_error, versions_that_do_not_meet)
{
    struct session_pair pair;

    session_pair_open(
        &pair, session_pair_client_context(WEIR_TLS_VERSION_1_2),
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                      .key_pem = pki()->server.key,
                                                      .min_version = WEIR_TLS_VERSION_1_3),
                             true),
        "example.test");
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.server.status, WEIR_ETLS);
    assert_string_equal(pair.server.session->reason,
                        "rejected by us: unsupported protocol (alert 70: protocol version)");
    assert_int_equal(pair.client.status, WEIR_ETLSREFUSED);
    assert_string_equal(pair.client.session->reason,
                        "rejected by the peer: protocol version (alert 70)");
    session_pair_close(&pair);
}

static weir__openssl_context *server_of_protocols(const char *protocols)
{
    return session_pair_context(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                 .key_pem = pki()->server.key, .alpn = protocols),
        true);
}

static weir__openssl_context *client_of_protocols(const char *protocols)
{
    return session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = protocols),
                                false);
}

TEST(openssl_error, protocols_that_do_not_meet)
{
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    session_pair_open(&pair, client_of_protocols("spdy/3"), server_of_protocols("h2,http/1.1"),
                      "example.test");
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.server.status, WEIR_ETLS);
    assert_string_equal(pair.server.session->reason,
                        "rejected by us: no application protocol (alert 120)");
    assert_int_equal(pair.client.status, WEIR_ETLSREFUSED);
    assert_string_equal(pair.client.session->reason,
                        "rejected by the peer: no application protocol (alert 120)");
    session_pair_close(&pair);

    session_pair_open(&pair, client_of_protocols("http/1.1,h2"), server_of_protocols("h2,http/1.1"),
                      "example.test");
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.client.session, &negotiated);
    assert_string_equal(negotiated.alpn, "h2");
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.alpn, "h2");
    session_pair_close(&pair);
}

/* ---- bytes on their way ---- */

/* How many bytes each side hears in a handshake. They vary by a few: signatures do. */
static void measure(enum weir_tls_version version, size_t *ret_client, size_t *ret_server)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, version);
    *ret_client = pair.client.fetched;
    *ret_server = pair.server.fetched;
    session_pair_close(&pair);
}

static void assert_bad(const struct session_side *side)
{
    if (side->status == WEIR__OPENSSL_WANT_READ)
        return; /* it waits for bytes that it was promised */
    assert_true(side->status < 0);
    assert_non_null(side->session->reason);
    assert_true(strlen(side->session->reason) > 0);
}

/* Only the version of the first record means nothing. */
static void flip(enum weir_tls_version version, bool of_server, size_t at)
{
    struct session_pair pair;

    session_pair_open_default(&pair, version);
    *(of_server ? &pair.server.flip_at : &pair.client.flip_at) = at;
    if (!session_pair_handshake(&pair)) {
        if (pair.client.status != WEIR__OPENSSL_DONE)
            assert_bad(&pair.client);
        if (pair.server.status != WEIR__OPENSSL_DONE)
            assert_bad(&pair.server);
    } else {
        assert_int_equal(at, 2);
    }
    session_pair_close(&pair);
}

/* Samples the positions under sanitizers, which are slow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STRIDE 11
#else
#define STRIDE 1
#endif

TEST(openssl_error, no_flipped_bit_goes_unseen_in_a_handshake)
{
    size_t client, server;

    for (size_t i = 0; i < 2; i++) {
        measure(versions[i], &client, &server);
        for (size_t at = 0; at + 10 < server; at += STRIDE)
            flip(versions[i], true, at);
        for (size_t at = 0; at + 10 < client; at += 5 * STRIDE)
            flip(versions[i], false, at);
    }
}

TEST(openssl_error, no_flipped_bit_goes_unseen_in_a_record)
{
    struct session_pair pair;
    size_t length = 64;

    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < length; at++) {
            int status;

            session_pair_open_connected(&pair, versions[i]);
            assert_int_equal(session_side_seal(&pair.client, "some words", 10), 0);
            length = weir_buf_readable(pair.client.io.out);
            pair.server.flip_at = pair.server.fetched + at;
            status = session_side_receive(&pair.server);
            if (status == WEIR__OPENSSL_WANT_READ) {
                assert_in_range(at, 3, 4); /* the record has become longer */
            } else {
                assert_int_equal(status, WEIR_ETLS);
                assert_non_null(strstr(pair.server.session->reason, "rejected by us: "));
                assert_int_equal(session_side_receive(&pair.client), WEIR_ETLSREFUSED);
            }
            assert_int_equal(weir_buf_readable(pair.server.received), 0);
            session_pair_close(&pair);
        }
    }
}

TEST(openssl_error, a_stream_that_is_cut_off_waits_for_the_rest)
{
    size_t client, server;
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        measure(versions[i], &client, &server);
        for (size_t at = 0; at + 10 < server; at += 3 * STRIDE) {
            session_pair_open_default(&pair, versions[i]);
            pair.server.cut_at = at;
            assert_false(session_pair_handshake(&pair));
            assert_int_equal(pair.server.status, WEIR__OPENSSL_WANT_READ);
            session_pair_close(&pair);
        }
    }
}

TEST(openssl_error, what_came_before_a_bad_record_is_delivered)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_3);
    assert_int_equal(session_side_seal(&pair.client, "good", 4), 0);
    pair.server.flip_at = pair.server.fetched + weir_buf_readable(pair.client.io.out) + 8;
    assert_int_equal(session_side_seal(&pair.client, "bad", 3), 0);
    assert_int_equal(session_side_receive(&pair.server), WEIR_ETLS);
    assert_int_equal(weir_buf_readable(pair.server.received), 4);
    assert_int_equal(session_side_receive(&pair.server), WEIR_ETLS); /* for good */
    assert_int_equal(session_side_seal(&pair.server, "more", 4), WEIR_ETLS);
    session_pair_close(&pair);
}

static SSL *ssl_of(const struct session_side *side)
{
    return side->session->ssl;
}

/* Other code on the thread may use OpenSSL and leave its errors behind. */
static void leave_errors(void)
{
    ERR_raise(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA);
    ERR_raise(ERR_LIB_PEM, ERR_R_INTERNAL_ERROR);
}

TEST(openssl_error, errors_of_others_are_not_those_of_a_read)
{
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        session_pair_set_piece(&pair, 7);
        leave_errors();
        assert_int_equal(session_side_seal(&pair.client, "in pieces", 9), 0);
        session_side_expect(&pair.server, "in pieces", 9);
        weir__openssl_session_close(pair.client.session, &pair.client.io);
        leave_errors();
        assert_int_equal(session_side_receive(&pair.server), WEIR__OPENSSL_CLOSED);
        session_pair_close(&pair);
    }
    ERR_clear_error();
}

TEST(openssl_error, errors_of_others_are_not_the_reason)
{
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        assert_int_equal(session_side_seal(&pair.client, "some words", 10), 0);
        pair.server.flip_at = pair.server.fetched + 20;
        leave_errors();
        assert_int_equal(session_side_receive(&pair.server), WEIR_ETLS);
        assert_non_null(strstr(pair.server.session->reason, "rejected by us: decryption failed"));
        assert_int_equal(ERR_peek_error(), 0);
        session_pair_close(&pair);
    }
}

/* The read before it has found nothing; this one does not get that far. */
TEST(openssl_error, a_read_without_memory_does_not_wait_for_more)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_3);
    assert_int_equal(SSL_key_update(ssl_of(&pair.client), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    assert_int_equal(session_side_step(&pair.client), 0);
    assert_int_equal(session_side_receive(&pair.server), WEIR__OPENSSL_WANT_READ);
    assert_int_equal(session_side_seal(&pair.client, "data", 4), 0);
    test_openssl_fail_at(1);
    assert_int_equal(session_side_receive(&pair.server), -ENOMEM);
    session_pair_close(&pair);
}

/* ---- a second handshake ---- */

/* The server goes on as it was, the client hears that it cannot have one. */
TEST(openssl_error, keys_are_not_negotiated_again)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_2);
    SSL_clear_options(ssl_of(&pair.client), SSL_OP_NO_RENEGOTIATION);
    assert_int_equal(SSL_renegotiate(ssl_of(&pair.client)), 1);
    assert_int_equal(session_side_step(&pair.client), 0);
    assert_int_equal(pair.client.status, WEIR__OPENSSL_WANT_READ);
    assert_int_equal(session_side_receive(&pair.server), WEIR__OPENSSL_WANT_READ);
    assert_int_equal(session_side_step(&pair.client), WEIR_ETLS);
    assert_string_equal(pair.client.session->reason,
                        "rejected by us: no renegotiation (alert 40: handshake failure)");
    assert_int_equal(session_side_receive(&pair.server), WEIR_ETLSREFUSED);
    session_pair_close(&pair);
}

TEST(openssl_error, a_server_cannot_demand_it_either)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_2);
    SSL_clear_options(ssl_of(&pair.server), SSL_OP_NO_RENEGOTIATION);
    assert_int_equal(SSL_renegotiate(ssl_of(&pair.server)), 1);
    assert_int_equal(session_side_step(&pair.server), 0);
    assert_int_equal(session_side_seal(&pair.server, "and go on", 9), 0);
    session_side_expect(&pair.client, "and go on", 9);
    session_pair_close(&pair);
}

/* ---- alerts ---- */

TEST(openssl_error, a_flood_of_warnings_is_not_borne)
{
    struct session_pair pair;

    session_pair_open_default(&pair, WEIR_TLS_VERSION_1_2);
    assert_int_equal(session_side_step(&pair.client), 0);
    for (size_t i = 0; i < 100; i++)
        say(&pair.server, "\x15\x03\x01\x00\x02\x01\x70", 7); /* unrecognized name */
    assert_int_equal(session_side_step(&pair.client), WEIR_ETLS);
    assert_string_equal(pair.client.session->reason,
                        "rejected by us: too many warn alerts (alert 10: unexpected message)");
    assert_true(weir_buf_readable(pair.client.io.in) > 600);
    session_pair_close(&pair);
}

TEST(openssl_error, an_alert_in_clear_is_heard)
{
    struct session_pair pair;

    session_pair_open_default(&pair, WEIR_TLS_VERSION_1_3);
    assert_int_equal(session_side_step(&pair.client), 0);
    say(&pair.server, "\x15\x03\x03\x00\x02\x02\x28", 7);
    assert_int_equal(session_side_step(&pair.client), WEIR_ETLSREFUSED);
    assert_string_equal(pair.client.session->reason,
                        "rejected by the peer: handshake failure (alert 40)");
    session_pair_close(&pair);
}

TEST(openssl_error, an_end_in_the_handshake_is_a_refusal)
{
    struct session_pair pair;

    session_pair_open_default(&pair, WEIR_TLS_VERSION_1_3);
    assert_int_equal(session_side_step(&pair.client), 0);
    say(&pair.server, "\x15\x03\x03\x00\x02\x01\x00", 7);
    assert_int_equal(session_side_step(&pair.client), WEIR_ETLSREFUSED);
    assert_string_equal(pair.client.session->reason, "the peer closed TLS during the handshake");
    session_pair_close(&pair);
}
