/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that do not do as they should: each is told what, and so are we.
 */
#include <string.h>

#include <weir/buf.h>

#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"
#include "tls/openssl/session.h"

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

static void say(struct talker *talker, const void *bytes, size_t length)
{
    if (talker->io.out == NULL)
        assert_int_equal(weir_buf_create(length, 0, &talker->io.out), 0);
    assert_int_equal(weir_buf_write_bytes(talker->io.out, bytes, length), 0);
}

static void say_text(struct talker *talker, const char *text)
{
    say(talker, text, strlen(text));
}

/* ---- what is not TLS ---- */

TEST(openssl_error, a_client_may_speak_something_else)
{
    static const char *const others[][2] = {
        {"GET / HTTP/1.1\r\n\r\n", "this is not TLS: an HTTP request has come"},
        {"POST / HTTP/1.1\r\n\r\n", "this is not TLS: an HTTP request has come"},
        {"OPTIONS * HTTP/1.1\r\n\r\n", "this is not TLS: an HTTP request has come"},
        {"CONNECT a:1 HTTP/1.1\r\n\r\n", "this is not TLS: an HTTP request has come"},
        {"PRI * HTTP/2.0\r\n\r\n", "this is not TLS: an HTTP/2 preface has come"},
        {"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "this is not TLS: a PROXY header has come"},
        {"SSH-2.0-OpenSSH\r\n", "this is not TLS: SSH has come"},
        {"hello, hello", "this is not TLS: something else has come"},
        {"\x80\x80\x01\x00\x00\x00\x00\x00\x00", "this is not TLS: something else has come"},
    };
    struct talk talk;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        talk_begin_plainly(&talk, WEIR_TLS_VERSION_DEFAULT);
        say_text(&talk.client, others[i][0]);
        if (others[i][0][0] == '\x80')
            for (size_t j = 0; j < 20; j++)
                say(&talk.client, "\0\0\0\0\0\0\0\0", 8);
        assert_int_equal(talk_step(&talk.server), WEIR_ENOTTLS);
        assert_string_equal(talk.server.session->reason, others[i][1]);
        talk_end(&talk);
    }
}

TEST(openssl_error, a_server_may_speak_something_else)
{
    static const char *const others[][2] = {
        {"HTTP/1.1 400 Bad Request\r\n", "this is not TLS: an HTTP response has come"},
        {"220 mail.example.test ESMTP\r\n", "this is not TLS: a greeting in clear has come"},
        {"SSH-2.0-OpenSSH\r\n", "this is not TLS: SSH has come"},
    };
    struct talk talk;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        talk_begin_plainly(&talk, WEIR_TLS_VERSION_DEFAULT);
        assert_int_equal(talk_step(&talk.client), 0);
        say_text(&talk.server, others[i][0]);
        assert_int_equal(talk_step(&talk.client), WEIR_ENOTTLS);
        assert_string_equal(talk.client.session->reason, others[i][1]);
        talk_end(&talk);
    }
}

/* ---- no agreement ---- */

TEST(openssl_error, versions_that_do_not_meet)
{
    struct talk talk;

    talk_begin(&talk, talk_client(WEIR_TLS_VERSION_1_2),
               talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                      .key_pem = pki()->server.key,
                                                      .min_version = WEIR_TLS_VERSION_1_3),
                             true),
               "example.test");
    assert_false(talk_handshake(&talk));
    assert_int_equal(talk.server.status, WEIR_ETLS);
    assert_string_equal(talk.server.session->reason,
                        "we refused: unsupported protocol (alert 70: protocol version)");
    assert_int_equal(talk.client.status, WEIR_ETLSREFUSED);
    assert_string_equal(talk.client.session->reason,
                        "the peer refused: protocol version (alert 70)");
    talk_end(&talk);
}

static weir__tls_settings *server_of_protocols(const char *protocols)
{
    return talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key, .alpn = protocols),
                         true);
}

static weir__tls_settings *client_of_protocols(const char *protocols)
{
    return talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = protocols), false);
}

TEST(openssl_error, protocols_that_do_not_meet)
{
    weir__tls_facts facts;
    struct talk talk;

    talk_begin(&talk, client_of_protocols("spdy/3"), server_of_protocols("h2,http/1.1"),
               "example.test");
    assert_false(talk_handshake(&talk));
    assert_int_equal(talk.server.status, WEIR_ETLS);
    assert_string_equal(talk.server.session->reason,
                        "we refused: no application protocol (alert 120)");
    assert_int_equal(talk.client.status, WEIR_ETLSREFUSED);
    assert_string_equal(talk.client.session->reason,
                        "the peer refused: no application protocol (alert 120)");
    talk_end(&talk);

    talk_begin(&talk, client_of_protocols("http/1.1,h2"), server_of_protocols("h2,http/1.1"),
               "example.test");
    assert_true(talk_handshake(&talk));
    talk.client.session->engine->facts(talk.client.session, &facts);
    assert_string_equal(facts.alpn, "h2");
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.alpn, "h2");
    talk_end(&talk);
}

/* ---- bytes on their way ---- */

/* How many bytes each side hears in a handshake. They vary by a few: signatures do. */
static void measure(enum weir_tls_version version, size_t *ret_client, size_t *ret_server)
{
    struct talk talk;

    talk_begin_over(&talk, version);
    *ret_client = talk.client.fetched;
    *ret_server = talk.server.fetched;
    talk_end(&talk);
}

static void assert_bad(const struct talker *talker)
{
    if (talker->status == WEIR__TLS_MORE)
        return; /* it waits for bytes that it was promised */
    assert_true(talker->status < 0);
    assert_non_null(talker->session->reason);
    assert_true(strlen(talker->session->reason) > 0);
}

/* Only the version of the first record means nothing. */
static void flip(enum weir_tls_version version, bool of_server, size_t at)
{
    struct talk talk;

    talk_begin_plainly(&talk, version);
    *(of_server ? &talk.server.flip_at : &talk.client.flip_at) = at;
    if (!talk_handshake(&talk)) {
        if (talk.client.status != WEIR__TLS_DONE)
            assert_bad(&talk.client);
        if (talk.server.status != WEIR__TLS_DONE)
            assert_bad(&talk.server);
    } else {
        assert_int_equal(at, 2);
    }
    talk_end(&talk);
}

TEST(openssl_error, no_flipped_bit_goes_unseen_in_a_handshake)
{
    size_t client, server;

    for (size_t i = 0; i < 2; i++) {
        measure(versions[i], &client, &server);
        for (size_t at = 0; at + 10 < server; at++)
            flip(versions[i], true, at);
        for (size_t at = 0; at + 10 < client; at += 5)
            flip(versions[i], false, at);
    }
}

TEST(openssl_error, no_flipped_bit_goes_unseen_in_a_record)
{
    struct talk talk;
    size_t length = 64;

    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < length; at++) {
            int status;

            talk_begin_over(&talk, versions[i]);
            assert_int_equal(talk_seal(&talk.client, "some words", 10), 0);
            length = weir_buf_readable(talk.client.io.out);
            talk.server.flip_at = talk.server.fetched + at;
            status = talk_hear(&talk.server);
            if (status == WEIR__TLS_MORE) {
                assert_in_range(at, 3, 4); /* the record has become longer */
            } else {
                assert_int_equal(status, WEIR_ETLS);
                assert_non_null(strstr(talk.server.session->reason, "we refused: "));
                assert_int_equal(talk_hear(&talk.client), WEIR_ETLSREFUSED);
            }
            assert_int_equal(weir_buf_readable(talk.server.heard), 0);
            talk_end(&talk);
        }
    }
}

TEST(openssl_error, a_stream_that_is_cut_off_waits_for_the_rest)
{
    size_t client, server;
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        measure(versions[i], &client, &server);
        for (size_t at = 0; at + 10 < server; at += 3) {
            talk_begin_plainly(&talk, versions[i]);
            talk.server.cut_at = at;
            assert_false(talk_handshake(&talk));
            assert_int_equal(talk.server.status, WEIR__TLS_MORE);
            talk_end(&talk);
        }
    }
}

TEST(openssl_error, what_came_before_a_bad_record_is_delivered)
{
    struct talk talk;

    talk_begin_over(&talk, WEIR_TLS_VERSION_1_3);
    assert_int_equal(talk_seal(&talk.client, "good", 4), 0);
    talk.server.flip_at = talk.server.fetched + weir_buf_readable(talk.client.io.out) + 8;
    assert_int_equal(talk_seal(&talk.client, "bad", 3), 0);
    assert_int_equal(talk_hear(&talk.server), WEIR_ETLS);
    assert_int_equal(weir_buf_readable(talk.server.heard), 4);
    assert_int_equal(talk_hear(&talk.server), WEIR_ETLS); /* for good */
    assert_int_equal(talk_seal(&talk.server, "more", 4), WEIR_ETLS);
    talk_end(&talk);
}

/* ---- a second handshake ---- */

static SSL *ssl_of(const struct talker *talker)
{
    return ((weir__openssl_session *)(void *)talker->session)->ssl;
}

/* The server goes on as it was, the client hears that it cannot have one. */
TEST(openssl_error, keys_are_not_negotiated_again)
{
    struct talk talk;

    talk_begin_over(&talk, WEIR_TLS_VERSION_1_2);
    SSL_clear_options(ssl_of(&talk.client), SSL_OP_NO_RENEGOTIATION);
    assert_int_equal(SSL_renegotiate(ssl_of(&talk.client)), 1);
    assert_int_equal(talk_step(&talk.client), 0);
    assert_int_equal(talk.client.status, WEIR__TLS_MORE);
    assert_int_equal(talk_hear(&talk.server), WEIR__TLS_MORE);
    assert_int_equal(talk_step(&talk.client), WEIR_ETLS);
    assert_string_equal(talk.client.session->reason,
                        "we refused: no renegotiation (alert 40: handshake failure)");
    assert_int_equal(talk_hear(&talk.server), WEIR_ETLSREFUSED);
    talk_end(&talk);
}

TEST(openssl_error, a_server_cannot_demand_it_either)
{
    struct talk talk;

    talk_begin_over(&talk, WEIR_TLS_VERSION_1_2);
    SSL_clear_options(ssl_of(&talk.server), SSL_OP_NO_RENEGOTIATION);
    assert_int_equal(SSL_renegotiate(ssl_of(&talk.server)), 1);
    assert_int_equal(talk_step(&talk.server), 0);
    assert_int_equal(talk_seal(&talk.server, "and go on", 9), 0);
    talk_expect(&talk.client, "and go on", 9);
    talk_end(&talk);
}

/* ---- alerts ---- */

TEST(openssl_error, a_flood_of_warnings_is_not_borne)
{
    struct talk talk;

    talk_begin_plainly(&talk, WEIR_TLS_VERSION_1_2);
    assert_int_equal(talk_step(&talk.client), 0);
    for (size_t i = 0; i < 100; i++)
        say(&talk.server, "\x15\x03\x01\x00\x02\x01\x70", 7); /* unrecognized name */
    assert_int_equal(talk_step(&talk.client), WEIR_ETLS);
    assert_string_equal(talk.client.session->reason,
                        "we refused: too many warn alerts (alert 10: unexpected message)");
    assert_true(weir_buf_readable(talk.client.io.in) > 600);
    talk_end(&talk);
}

TEST(openssl_error, an_alert_in_clear_is_heard)
{
    struct talk talk;

    talk_begin_plainly(&talk, WEIR_TLS_VERSION_1_3);
    assert_int_equal(talk_step(&talk.client), 0);
    say(&talk.server, "\x15\x03\x03\x00\x02\x02\x28", 7);
    assert_int_equal(talk_step(&talk.client), WEIR_ETLSREFUSED);
    assert_string_equal(talk.client.session->reason,
                        "the peer refused: handshake failure (alert 40)");
    talk_end(&talk);
}

TEST(openssl_error, an_end_in_the_handshake_is_a_refusal)
{
    struct talk talk;

    talk_begin_plainly(&talk, WEIR_TLS_VERSION_1_3);
    assert_int_equal(talk_step(&talk.client), 0);
    say(&talk.server, "\x15\x03\x03\x00\x02\x01\x00", 7);
    assert_int_equal(talk_step(&talk.client), WEIR_ETLSREFUSED);
    assert_string_equal(talk.client.session->reason, "the peer has ended TLS before it had begun");
    talk_end(&talk);
}
