/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which peers a session trusts, its reason for others, and the alert that these get.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/tls_context.h>

#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

static weir__openssl_context *server_of(const struct pki_leaf *leaf)
{
    return session_pair_context(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate, .key_pem = leaf->key), true);
}

static weir__openssl_context *server_that_verifies(enum weir_tls_verify verify,
                                                   enum weir_tls_version version)
{
    return session_pair_context(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                 .key_pem = pki()->server.key, .ca_pem = pki()->ca,
                                 .verify = verify, .max_version = version),
        true);
}

static weir__openssl_context *client_with(const struct pki_leaf *leaf)
{
    return session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                                         .certificate_pem = leaf->certificate,
                                                         .key_pem = leaf->key),
                                false);
}

static bool is_over(weir__openssl_context *client, weir__openssl_context *server, const char *name)
{
    struct session_pair pair;
    bool over;

    session_pair_open(&pair, client, server, name);
    over = session_pair_handshake(&pair);
    session_pair_close(&pair);
    return over;
}

/* The client refuses: it says why, and the server hears this alert. */
static void assert_refused(weir__openssl_context *client, weir__openssl_context *server,
                           const char *name, const char *words, const char *received)
{
    struct session_pair pair;

    session_pair_open(&pair, client, server, name);
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
    assert_string_equal(pair.client.session->reason, words);
    assert_int_equal(pair.server.status, WEIR_ETLSREFUSED);
    assert_string_equal(pair.server.session->reason, received);
    assert_int_equal(session_side_step(&pair.client), WEIR_EUNTRUSTED); /* for good */
    session_pair_close(&pair);
}

/* ---- names ---- */

TEST(openssl_verify, a_server_may_have_several_names_and_addresses)
{
    static const char *const names[] = {"example.test", "EXAMPLE.test", "example.test.",
                                        "localhost",    "127.0.0.1",    "::1"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(
            is_over(session_pair_client_context(0), session_pair_server_context(0), names[i]));
}

TEST(openssl_verify, an_address_is_not_asked_for)
{
    static const char *const addresses[] = {"127.0.0.1", "::1"};
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open(&pair, session_pair_client_context(0), session_pair_server_context(0),
                          addresses[i]);
        assert_true(session_pair_handshake(&pair));
        weir__openssl_session_negotiated(pair.server.session, &negotiated);
        assert_string_equal(negotiated.server_name, "");
        session_pair_close(&pair);
    }
}

TEST(openssl_verify, a_wildcard_is_one_label)
{
    assert_true(is_over(session_pair_client_context(0), server_of(&pki()->other), "a.wild.test"));
    assert_false(
        is_over(session_pair_client_context(0), server_of(&pki()->other), "a.b.wild.test"));
    assert_false(is_over(session_pair_client_context(0), server_of(&pki()->other), "wild.test"));
}

TEST(openssl_verify, what_is_no_name_is_rejected_at_once)
{
    static const char *const names[] = {"",          ".",        "with space", "a/b",
                                        "user@host", "host:443", "[::1]",      ".example.test",
                                        "tab\there"};
    weir__openssl_context *context = session_pair_client_context(0);
    weir__openssl_session *session;
    char long_name[300];

    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(
            weir__openssl_session_create(
                context, &(weir__openssl_session_options){.server_name = names[i]}, &session),
            -EINVAL);
    assert_int_equal(
        weir__openssl_session_create(
            context, &(weir__openssl_session_options){.server_name = long_name}, &session),
        -EINVAL);
    weir__openssl_context_release(context);
}

TEST(openssl_verify, a_server_of_another_name_is_rejected)
{
    assert_refused(session_pair_client_context(0), server_of(&pki()->wrong_host), "example.test",
                   "the peer's certificate is not trusted: hostname mismatch (CN=wrong.test)",
                   "rejected by the peer: bad certificate (alert 42)");
    assert_refused(session_pair_client_context(0), server_of(&pki()->wrong_host), "127.0.0.1",
                   "the peer's certificate is not trusted: IP address mismatch (CN=wrong.test)",
                   "rejected by the peer: bad certificate (alert 42)");
}

/* ---- authorities ---- */

TEST(openssl_verify, what_is_wrong_with_a_certificate_is_said_to_both_sides)
{
    assert_refused(session_pair_client_context(0), server_of(&pki()->expired), "localhost",
                   "the peer's certificate is not trusted: certificate has expired (CN=localhost)",
                   "rejected by the peer: certificate expired (alert 45)");
    assert_refused(session_pair_client_context(0), server_of(&pki()->future), "localhost",
                   "the peer's certificate is not trusted: certificate is not yet valid "
                   "(CN=localhost)",
                   "rejected by the peer: bad certificate (alert 42)");
    assert_refused(session_pair_client_context(0), server_of(&pki()->self_signed), "localhost",
                   "the peer's certificate is not trusted: self-signed certificate (CN=localhost)",
                   "rejected by the peer: unknown CA (alert 48)");
}

TEST(openssl_verify, a_strange_authority_is_not_trusted)
{
    struct session_pair pair;

    session_pair_open(&pair, session_pair_client_context(0), server_of(&pki()->stranger),
                      "localhost");
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
    assert_int_equal(pair.server.status, WEIR_ETLSREFUSED);
    assert_string_equal(pair.server.session->reason, "rejected by the peer: unknown CA (alert 48)");
    session_pair_close(&pair);
}

TEST(openssl_verify, a_client_s_certificate_is_none_of_a_server)
{
    struct session_pair pair;

    session_pair_open(&pair, session_pair_client_context(0), server_of(&pki()->client), NULL);
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
    session_pair_close(&pair);
}

TEST(openssl_verify, who_does_not_verify_takes_anybody)
{
    weir__openssl_context *client =
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE), false);

    assert_false(weir__openssl_context_verifies_names(client));
    assert_true(is_over(client, server_of(&pki()->stranger), "example.test"));
}

/* ---- clients' certificates ---- */

TEST(openssl_verify, a_server_reads_the_client_s_certificate)
{
    weir_tls_certificate *certificate;
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open(&pair, client_with(&pki()->client),
                          server_that_verifies(WEIR_TLS_VERIFY_REQUIRED, versions[i]),
                          "example.test");
        assert_true(session_pair_handshake(&pair));
        assert_int_equal(weir__openssl_session_peer_certificate(pair.server.session, &certificate),
                         0);
        assert_non_null(certificate);
        assert_string_equal(weir_tls_certificate_subject(certificate), "CN=client");
        weir_tls_certificate_release(certificate);
        session_pair_close(&pair);
    }
}

/* With 1.3 the client is through before the server has seen what it shows. */
TEST(openssl_verify, a_client_without_a_certificate_is_rejected)
{
    struct session_pair pair;
    int status;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open(&pair, session_pair_client_context(0),
                          server_that_verifies(WEIR_TLS_VERIFY_REQUIRED, versions[i]),
                          "example.test");
        assert_false(session_pair_handshake(&pair));
        assert_int_equal(pair.server.status, WEIR_EUNTRUSTED);
        assert_string_equal(pair.server.session->reason, "the peer sent no certificate");
        status = pair.client.status == WEIR__OPENSSL_DONE ? session_side_receive(&pair.client)
                                                          : pair.client.status;
        assert_int_equal(status, WEIR_ETLSREFUSED);
        assert_non_null(strstr(pair.client.session->reason, "rejected by the peer: "));
        session_pair_close(&pair);
    }
}

TEST(openssl_verify, a_client_that_nobody_knows_is_rejected)
{
    static const enum weir_tls_verify modes[] = {WEIR_TLS_VERIFY_OPTIONAL,
                                                 WEIR_TLS_VERIFY_REQUIRED};
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open(&pair, client_with(&pki()->strange_client),
                          server_that_verifies(modes[i], WEIR_TLS_VERSION_DEFAULT), "example.test");
        assert_false(session_pair_handshake(&pair));
        assert_int_equal(pair.server.status, WEIR_EUNTRUSTED);
        assert_non_null(
            strstr(pair.server.session->reason, "the peer's certificate is not trusted"));
        assert_int_equal(session_side_receive(&pair.client), WEIR_ETLSREFUSED);
        session_pair_close(&pair);
    }
}

/* Who asks for ciphers that need none has still to be shown one. */
TEST(openssl_verify, a_server_without_a_certificate_is_rejected)
{
    static const char anonymous[] = "aNULL:@SECLEVEL=0";
    struct session_pair pair;

    session_pair_open(
        &pair,
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .ciphers = anonymous,
                                                      .max_version = WEIR_TLS_VERSION_1_2),
                             false),
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                      .key_pem = pki()->server.key,
                                                      .ciphers = anonymous),
                             true),
        "example.test");
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
    assert_string_equal(pair.client.session->reason, "the peer sent no certificate");
    session_pair_close(&pair);
}

TEST(openssl_verify, a_certificate_may_be_optional)
{
    weir_tls_certificate *certificate;
    struct session_pair pair;

    session_pair_open(&pair, session_pair_client_context(0),
                      server_that_verifies(WEIR_TLS_VERIFY_OPTIONAL, 0), "example.test");
    assert_true(session_pair_handshake(&pair));
    assert_int_equal(weir__openssl_session_peer_certificate(pair.server.session, &certificate), 0);
    assert_null(certificate);
    session_pair_close(&pair);
    assert_true(is_over(client_with(&pki()->client),
                        server_that_verifies(WEIR_TLS_VERIFY_OPTIONAL, 0), "example.test"));
}

/* ---- pins ---- */

static const char *pin_of(const struct pki_leaf *leaf, char ret_pin[WEIR_TLS_PIN_SIZE])
{
    weir_tls_certificate *certificate;

    assert_int_equal(weir_tls_certificate_parse(leaf->certificate, &certificate), 0);
    memcpy(ret_pin, weir_tls_certificate_pin(certificate), WEIR_TLS_PIN_SIZE);
    weir_tls_certificate_release(certificate);
    return ret_pin;
}

static weir__openssl_context *client_of_pins(enum weir_tls_verify verify, const char *pins)
{
    return session_pair_context(
        WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .verify = verify, .pins = pins), false);
}

TEST(openssl_verify, a_pin_is_enough_where_it_decides)
{
    char pins[2 * WEIR_TLS_PIN_SIZE], pin[WEIR_TLS_PIN_SIZE];

    (void)snprintf(pins, sizeof(pins), "%s,", pin_of(&pki()->server, pin));
    (void)snprintf(pins + strlen(pins), sizeof(pins) - strlen(pins), "%s",
                   pin_of(&pki()->self_signed, pin));
    assert_true(is_over(client_of_pins(WEIR_TLS_VERIFY_PINS, pins), server_of(&pki()->self_signed),
                        "whatever.test"));
    assert_true(is_over(client_of_pins(WEIR_TLS_VERIFY_NONE, pins), server_of(&pki()->self_signed),
                        "whatever.test"));
}

TEST(openssl_verify, a_pin_is_demanded_besides)
{
    static const char words[] =
        "the peer's certificate is not trusted: its key matches none of the pins (CN=localhost)";
    static const char received[] = "rejected by the peer: bad certificate (alert 42)";
    char pin[WEIR_TLS_PIN_SIZE];

    assert_true(is_over(client_of_pins(0, pin_of(&pki()->server, pin)),
                        session_pair_server_context(0), "example.test"));
    assert_refused(client_of_pins(0, pin_of(&pki()->renewed, pin)), session_pair_server_context(0),
                   "example.test", words, received);
    assert_refused(client_of_pins(WEIR_TLS_VERIFY_PINS, pin), session_pair_server_context(0),
                   "example.test", words, received);
    assert_refused(client_of_pins(WEIR_TLS_VERIFY_NONE, pin), session_pair_server_context(0),
                   "example.test", words, received);
    assert_false(is_over(client_of_pins(0, pin_of(&pki()->expired, pin)),
                         server_of(&pki()->expired), "localhost"));
}

TEST(openssl_verify, a_server_knows_clients_by_their_pins)
{
    char pin[WEIR_TLS_PIN_SIZE];
    const weir_tls_context_options options = {
        .size = sizeof(options),
        .certificate_pem = pki()->server.certificate,
        .key_pem = pki()->server.key,
        .verify = WEIR_TLS_VERIFY_PINS,
        .pins = pin_of(&pki()->strange_client, pin),
    };

    assert_true(is_over(client_with(&pki()->strange_client), session_pair_context(&options, true),
                        "example.test"));
    assert_false(
        is_over(client_with(&pki()->client), session_pair_context(&options, true), "example.test"));
    assert_false(is_over(session_pair_client_context(0), session_pair_context(&options, true),
                         "example.test"));
}
