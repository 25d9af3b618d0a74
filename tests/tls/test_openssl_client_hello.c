/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that pauses at the hello: what it reads there, and that the chosen context applies.
 */
#include <string.h>

#include <openssl/obj_mac.h>

#include <weir/buf.h>

#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"
#include "tls/openssl/internal.h"

static const weir_tls_context_options *with_other(weir_tls_context_options *options)
{
    options->size = sizeof(*options);
    options->certificate_pem = pki()->other.certificate;
    options->key_pem = pki()->other.key;
    return options;
}

#define OTHER(...) \
    session_pair_context(with_other(&(weir_tls_context_options){.size = 0, __VA_ARGS__}), true)

static weir__openssl_context *client(const char *protocols)
{
    return session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = protocols),
                                false);
}

static void begin(struct session_pair *pair, const char *name, const char *protocols)
{
    session_pair_open_pausing(pair, client(protocols), session_pair_server_context(0), name);
    assert_false(session_pair_handshake(pair));
    assert_int_equal(pair->server.status, WEIR__OPENSSL_WANT_CONTEXT);
}

static SSL *ssl_of(const struct session_side *side)
{
    return side->session->ssl;
}

static void assert_wish(struct session_pair *pair, const char *name, const char *protocols)
{
    const weir__openssl_hello *hello = weir__openssl_session_hello(pair->server.session);

    assert_string_equal(hello->server_name, name);
    assert_string_equal(hello->alpn, protocols);
}

/* ---- what the client wants ---- */

TEST(openssl_client_hello, the_client_s_wish_is_read)
{
    struct session_pair pair;

    begin(&pair, "Other.TEST", "h2,http/1.1");
    assert_wish(&pair, "other.test", "h2,http/1.1");
    session_pair_close(&pair);
    begin(&pair, "127.0.0.1", NULL);
    assert_wish(&pair, "", "");
    session_pair_close(&pair);
}

TEST(openssl_client_hello, a_wish_may_come_byte_by_byte)
{
    struct session_pair pair;

    session_pair_open_pausing(&pair, client("h2"), session_pair_server_context(0), "other.test");
    session_pair_set_piece(&pair, 1);
    assert_false(session_pair_handshake(&pair));
    assert_wish(&pair, "other.test", "h2");
    session_pair_set_context(&pair, OTHER(.alpn = "h2"));
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);
}

TEST(openssl_client_hello, it_waits_as_long_as_nobody_has_chosen)
{
    struct session_pair pair;

    begin(&pair, "other.test", NULL);
    assert_int_equal(session_side_step(&pair.server), 0);
    assert_int_equal(pair.server.status, WEIR__OPENSSL_WANT_CONTEXT);
    assert_wish(&pair, "other.test", "");
    session_pair_set_context(&pair, OTHER());
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);
}

/* The hello with these bytes, which are there once, replaced. */
static void assert_malformed(const char *bytes, const char *others, size_t length)
{
    struct session_pair pair;
    uint8_t *hello, *at;

    session_pair_open_pausing(&pair, client("h2,http/1.1"), session_pair_server_context(0),
                              "other.test");
    assert_int_equal(session_side_step(&pair.client), 0);
    hello = weir_buf_space(pair.client.io.out) - weir_buf_readable(pair.client.io.out);
    at = memmem(hello, weir_buf_readable(pair.client.io.out), bytes, length);
    assert_non_null(at);
    memcpy(at, others, length);
    assert_int_equal(session_side_step(&pair.server), WEIR_ETLS);
    assert_string_equal(pair.server.session->reason,
                        "rejected by us: malformed client hello (alert 50: decode error)");
    assert_int_equal(session_side_step(&pair.client), WEIR_ETLSREFUSED);
    session_pair_close(&pair);
}

TEST(openssl_client_hello, a_wish_that_makes_no_sense_is_rejected)
{
    static const char name[] = "\0\x0d\0\0\x0aother.test"; /* list, type, name */
    static const char list[] = "\0\x0c\x02h2\x08http/1.1";

    assert_malformed(name, "\0\x0c\0\0\x0aother.test", 15);
    assert_malformed(name, "\0\x0d\1\0\x0aother.test", 15);
    assert_malformed(name, "\0\x0d\0\0\x09other.test", 15);
    assert_malformed(name, "\0\x0d\0\0\x0bother.test", 15);
    assert_malformed(name, "\0\x0d\0\xff\xffother.test", 15);
    assert_malformed(name, "\0\x0d\0\0\x0aother\0test", 15);
    assert_malformed(list, "\0\x0b\x02h2\x08http/1.1", 14);
    assert_malformed(list, "\0\x0c\x00h2\x08http/1.1", 14);
    assert_malformed(list, "\0\x0c\x02h2\x07http/1.1", 14);
    assert_malformed(list, "\0\x0c\x02h2\x09http/1.1", 14);
    assert_malformed(list, "\0\x0c\xffh2\x08http/1.1", 14);
}

/* ---- what it gets ---- */

TEST(openssl_client_hello, the_client_gets_what_was_chosen)
{
    weir_tls_certificate *certificate;
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    begin(&pair, "other.test", "h2,http/1.1");
    session_pair_set_context(&pair, OTHER(.alpn = "http/1.1"));
    assert_true(session_pair_handshake(&pair));
    assert_int_equal(weir__openssl_session_peer_certificate(pair.client.session, &certificate), 0);
    assert_string_equal(weir_tls_certificate_name(certificate, 0), "other.test");
    weir_tls_certificate_release(certificate);
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.alpn, "http/1.1");
    assert_string_equal(negotiated.server_name, "other.test");
    session_pair_close(&pair);
}

TEST(openssl_client_hello, it_may_be_what_was_there)
{
    weir__openssl_context *server = session_pair_server_context(0);
    struct session_pair pair;

    session_pair_open_pausing(&pair, client(NULL), weir__openssl_context_retain(server),
                              "example.test");
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(&pair, server);
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);
}

TEST(openssl_client_hello, nobody_may_be_chosen)
{
    struct session_pair pair;

    begin(&pair, "nobody.test", NULL);
    session_pair_set_context(&pair, NULL);
    assert_int_equal(pair.server.status, WEIR_ETLS);
    assert_string_equal(pair.server.session->reason,
                        "rejected by us: unknown server name (alert 112: "
                        "unrecognized name)");
    assert_int_equal(session_side_step(&pair.client), WEIR_ETLSREFUSED);
    assert_string_equal(pair.client.session->reason,
                        "rejected by the peer: unrecognized name (alert 112)");
    session_pair_close(&pair);
}

TEST(openssl_client_hello, versions_are_those_of_the_chosen)
{
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    begin(&pair, "other.test", NULL);
    session_pair_set_context(&pair, OTHER(.max_version = WEIR_TLS_VERSION_1_2));
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.version, "TLSv1.2");
    session_pair_close(&pair);

    session_pair_open_pausing(&pair, client(NULL),
                              session_pair_server_context(WEIR_TLS_VERSION_1_2), "other.test");
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(&pair, OTHER(.min_version = WEIR_TLS_VERSION_1_3));
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.version, "TLSv1.3");
    session_pair_close(&pair);
}

TEST(openssl_client_hello, ciphers_are_those_of_the_chosen)
{
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    begin(&pair, "other.test", NULL);
    session_pair_set_context(&pair, OTHER(.cipher_suites = "TLS_CHACHA20_POLY1305_SHA256"));
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.cipher, "TLS_CHACHA20_POLY1305_SHA256");
    session_pair_close(&pair);

    begin(&pair, "other.test", NULL);
    session_pair_set_context(&pair, OTHER(.max_version = WEIR_TLS_VERSION_1_2,
                                          .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"));
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
    session_pair_close(&pair);
}

/* The client has to say its hello twice: nobody is asked again. */
TEST(openssl_client_hello, groups_are_those_of_the_chosen)
{
    struct session_pair pair;

    begin(&pair, "other.test", NULL);
    session_pair_set_context(&pair, OTHER(.groups = "P-384"));
    assert_true(session_pair_handshake(&pair));
    assert_int_equal(SSL_get_negotiated_group(ssl_of(&pair.server)), NID_secp384r1);
    session_pair_close(&pair);

    session_pair_open_pausing(&pair, client(NULL), OTHER(.groups = "P-384"), "other.test");
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(&pair, OTHER());
    assert_true(session_pair_handshake(&pair));
    assert_int_equal(SSL_get_negotiated_group(ssl_of(&pair.server)), NID_X25519);
    session_pair_close(&pair);
}

TEST(openssl_client_hello, clients_are_verified_as_the_chosen_demands)
{
    struct session_pair pair;

    begin(&pair, "other.test", NULL);
    session_pair_set_context(&pair, OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->ca));
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.server.status, WEIR_EUNTRUSTED);
    session_pair_close(&pair);

    session_pair_open_pausing(&pair, client(NULL),
                              OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->ca),
                              "other.test");
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(&pair, OTHER());
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);

    session_pair_open_pausing(
        &pair,
        session_pair_context(
            WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                     .certificate_pem = pki()->strange_client.certificate,
                                     .key_pem = pki()->strange_client.key),
            false),
        OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->ca), "other.test");
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(
        &pair, OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->strange_ca));
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);
}

/* An authority that others vouch for is one in the chosen, whatever the asked thought of it. */
TEST(openssl_client_hello, authorities_are_as_good_as_the_chosen_says)
{
    struct session_pair pair;

    session_pair_open_pausing(
        &pair,
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                                      .certificate_pem = pki()->client.certificate,
                                                      .key_pem = pki()->client.key),
                             false),
        session_pair_server_context(0), "other.test");
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(
        &pair, OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->client.certificate));
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);
}

/* ---- who says one thing and then another ---- */

static void say_another_name(int is_sent, int version, int type, const void *bytes, size_t length,
                             SSL *ssl, void *unused)
{
    static char name[] = "example.test"; /* OpenSSL's macro takes no const */

    (void)version;
    (void)unused;
    if (is_sent == 0 && type == SSL3_RT_HANDSHAKE && length > 0 &&
        *(const uint8_t *)bytes == SSL3_MT_SERVER_HELLO)
        assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
}

/* A group that the client has not guessed makes it say its hello again: what it gets was chosen by
 * the first. */
TEST(openssl_client_hello, a_second_hello_asks_for_the_same)
{
    struct session_pair pair;

    begin(&pair, "other.test", NULL);
    SSL_set_msg_callback(ssl_of(&pair.client), say_another_name);
    session_pair_set_context(&pair, OTHER(.groups = "P-384"));
    assert_false(session_pair_handshake(&pair));
    assert_int_equal(pair.server.status, WEIR_ETLS);
    assert_string_equal(pair.server.session->reason,
                        "rejected by us: the client's second hello differs from its first (alert "
                        "47: illegal parameter)");
    assert_int_equal(pair.client.status, WEIR_ETLSREFUSED);
    session_pair_close(&pair);
}

TEST(openssl_client_hello, what_was_agreed_upon_has_the_name_as_it_was_chosen_by)
{
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    session_pair_open_pausing(&pair, client(NULL), session_pair_server_context(0), "other.test");
    assert_int_equal(SSL_set_tlsext_host_name(ssl_of(&pair.client), "Other.TEST."), 1);
    assert_false(session_pair_handshake(&pair));
    assert_wish(&pair, "other.test", "");
    session_pair_set_context(&pair, OTHER());
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    assert_string_equal(negotiated.server_name, "other.test");
    session_pair_close(&pair);
}
