/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that asks first: what it is told, and that all of what is chosen holds.
 */
#include <string.h>

#include <openssl/obj_mac.h>

#include <weir/buf.h>

#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"
#include "tls/openssl/session.h"

static const weir_tls_context_options *with_other(weir_tls_context_options *options)
{
    options->size = sizeof(*options);
    options->certificate_pem = pki()->other.certificate;
    options->key_pem = pki()->other.key;
    return options;
}

#define OTHER(...) \
    talk_settings(with_other(&(weir_tls_context_options){.size = 0, __VA_ARGS__}), true)

static weir__tls_settings *client(const char *protocols)
{
    return talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = protocols), false);
}

static void begin(struct talk *talk, const char *name, const char *protocols)
{
    talk_begin_asking(talk, client(protocols), talk_server(0), name);
    assert_false(talk_handshake(talk));
    assert_int_equal(talk->server.status, WEIR__TLS_CHOOSE);
}

static SSL *ssl_of(const struct talker *talker)
{
    return ((weir__openssl_session *)(void *)talker->session)->ssl;
}

static void assert_wish(struct talk *talk, const char *name, const char *protocols)
{
    const weir__tls_wish *wish = talk->server.session->engine->wish(talk->server.session);

    assert_string_equal(wish->server_name, name);
    assert_string_equal(wish->alpn, protocols);
}

/* ---- what the client wants ---- */

TEST(openssl_choice, the_client_s_wish_is_read)
{
    struct talk talk;

    begin(&talk, "Other.TEST", "h2,http/1.1");
    assert_wish(&talk, "other.test", "h2,http/1.1");
    talk_end(&talk);
    begin(&talk, "127.0.0.1", NULL);
    assert_wish(&talk, "", "");
    talk_end(&talk);
}

TEST(openssl_choice, a_wish_may_come_byte_by_byte)
{
    struct talk talk;

    talk_begin_asking(&talk, client("h2"), talk_server(0), "other.test");
    talk_set_piece(&talk, 1);
    assert_false(talk_handshake(&talk));
    assert_wish(&talk, "other.test", "h2");
    talk_choose(&talk, OTHER(.alpn = "h2"));
    assert_true(talk_handshake(&talk));
    talk_end(&talk);
}

TEST(openssl_choice, it_waits_as_long_as_nobody_has_chosen)
{
    struct talk talk;

    begin(&talk, "other.test", NULL);
    assert_int_equal(talk_step(&talk.server), 0);
    assert_int_equal(talk.server.status, WEIR__TLS_CHOOSE);
    assert_wish(&talk, "other.test", "");
    talk_choose(&talk, OTHER());
    assert_true(talk_handshake(&talk));
    talk_end(&talk);
}

/* The hello with these bytes, which are there once, replaced. */
static void assert_malformed(const char *bytes, const char *others, size_t length)
{
    struct talk talk;
    uint8_t *hello, *at;

    talk_begin_asking(&talk, client("h2,http/1.1"), talk_server(0), "other.test");
    assert_int_equal(talk_step(&talk.client), 0);
    hello = weir_buf_space(talk.client.io.out) - weir_buf_readable(talk.client.io.out);
    at = memmem(hello, weir_buf_readable(talk.client.io.out), bytes, length);
    assert_non_null(at);
    memcpy(at, others, length);
    assert_int_equal(talk_step(&talk.server), WEIR_ETLS);
    assert_string_equal(talk.server.session->reason,
                        "we refused: the client's hello makes no sense (alert 50: decode error)");
    assert_int_equal(talk_step(&talk.client), WEIR_ETLSREFUSED);
    talk_end(&talk);
}

TEST(openssl_choice, a_wish_that_makes_no_sense_is_refused)
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

TEST(openssl_choice, the_client_gets_what_was_chosen)
{
    weir_tls_certificate *certificate;
    weir__tls_facts facts;
    struct talk talk;

    begin(&talk, "other.test", "h2,http/1.1");
    talk_choose(&talk, OTHER(.alpn = "http/1.1"));
    assert_true(talk_handshake(&talk));
    assert_int_equal(weir__tls_openssl.peer_certificate(talk.client.session, &certificate), 0);
    assert_string_equal(weir_tls_certificate_name(certificate, 0), "other.test");
    weir_tls_certificate_release(certificate);
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.alpn, "http/1.1");
    assert_string_equal(facts.server_name, "other.test");
    talk_end(&talk);
}

TEST(openssl_choice, it_may_be_what_was_there)
{
    weir__tls_settings *server = talk_server(0);
    struct talk talk;

    talk_begin_asking(&talk, client(NULL), weir__tls_openssl.settings_retain(server),
                      "example.test");
    assert_false(talk_handshake(&talk));
    talk_choose(&talk, server);
    assert_true(talk_handshake(&talk));
    talk_end(&talk);
}

TEST(openssl_choice, nobody_may_be_chosen)
{
    struct talk talk;

    begin(&talk, "nobody.test", NULL);
    talk_choose(&talk, NULL);
    assert_int_equal(talk.server.status, WEIR_ETLS);
    assert_string_equal(talk.server.session->reason,
                        "we refused: nobody here has the name that the client asks for (alert 112: "
                        "unrecognized name)");
    assert_int_equal(talk_step(&talk.client), WEIR_ETLSREFUSED);
    assert_string_equal(talk.client.session->reason,
                        "the peer refused: unrecognized name (alert 112)");
    talk_end(&talk);
}

TEST(openssl_choice, versions_are_those_of_the_chosen)
{
    weir__tls_facts facts;
    struct talk talk;

    begin(&talk, "other.test", NULL);
    talk_choose(&talk, OTHER(.max_version = WEIR_TLS_VERSION_1_2));
    assert_true(talk_handshake(&talk));
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.version, "TLSv1.2");
    talk_end(&talk);

    talk_begin_asking(&talk, client(NULL), talk_server(WEIR_TLS_VERSION_1_2), "other.test");
    assert_false(talk_handshake(&talk));
    talk_choose(&talk, OTHER(.min_version = WEIR_TLS_VERSION_1_3));
    assert_true(talk_handshake(&talk));
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.version, "TLSv1.3");
    talk_end(&talk);
}

TEST(openssl_choice, ciphers_are_those_of_the_chosen)
{
    weir__tls_facts facts;
    struct talk talk;

    begin(&talk, "other.test", NULL);
    talk_choose(&talk, OTHER(.cipher_suites = "TLS_CHACHA20_POLY1305_SHA256"));
    assert_true(talk_handshake(&talk));
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.cipher, "TLS_CHACHA20_POLY1305_SHA256");
    talk_end(&talk);

    begin(&talk, "other.test", NULL);
    talk_choose(&talk, OTHER(.max_version = WEIR_TLS_VERSION_1_2,
                             .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"));
    assert_true(talk_handshake(&talk));
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
    talk_end(&talk);
}

/* The client has to say its hello twice: nobody is asked again. */
TEST(openssl_choice, groups_are_those_of_the_chosen)
{
    struct talk talk;

    begin(&talk, "other.test", NULL);
    talk_choose(&talk, OTHER(.groups = "P-384"));
    assert_true(talk_handshake(&talk));
    assert_int_equal(SSL_get_negotiated_group(ssl_of(&talk.server)), NID_secp384r1);
    talk_end(&talk);

    talk_begin_asking(&talk, client(NULL), OTHER(.groups = "P-384"), "other.test");
    assert_false(talk_handshake(&talk));
    talk_choose(&talk, OTHER());
    assert_true(talk_handshake(&talk));
    assert_int_equal(SSL_get_negotiated_group(ssl_of(&talk.server)), NID_X25519);
    talk_end(&talk);
}

TEST(openssl_choice, clients_are_verified_as_the_chosen_demands)
{
    struct talk talk;

    begin(&talk, "other.test", NULL);
    talk_choose(&talk, OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->ca));
    assert_false(talk_handshake(&talk));
    assert_int_equal(talk.server.status, WEIR_EUNTRUSTED);
    talk_end(&talk);

    talk_begin_asking(&talk, client(NULL),
                      OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->ca), "other.test");
    assert_false(talk_handshake(&talk));
    talk_choose(&talk, OTHER());
    assert_true(talk_handshake(&talk));
    talk_end(&talk);

    talk_begin_asking(
        &talk,
        talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                               .certificate_pem = pki()->strange_client.certificate,
                                               .key_pem = pki()->strange_client.key),
                      false),
        OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->ca), "other.test");
    assert_false(talk_handshake(&talk));
    talk_choose(&talk, OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->strange_ca));
    assert_true(talk_handshake(&talk));
    talk_end(&talk);
}

/* An authority that others vouch for is one in the chosen, whatever the asked thought of it. */
TEST(openssl_choice, authorities_are_as_good_as_the_chosen_says)
{
    struct talk talk;

    talk_begin_asking(
        &talk,
        talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                               .certificate_pem = pki()->client.certificate,
                                               .key_pem = pki()->client.key),
                      false),
        talk_server(0), "other.test");
    assert_false(talk_handshake(&talk));
    talk_choose(&talk,
                OTHER(.verify = WEIR_TLS_VERIFY_REQUIRED, .ca_pem = pki()->client.certificate));
    assert_true(talk_handshake(&talk));
    talk_end(&talk);
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
TEST(openssl_choice, a_second_hello_asks_for_the_same)
{
    struct talk talk;

    begin(&talk, "other.test", NULL);
    SSL_set_msg_callback(ssl_of(&talk.client), say_another_name);
    talk_choose(&talk, OTHER(.groups = "P-384"));
    assert_false(talk_handshake(&talk));
    assert_int_equal(talk.server.status, WEIR_ETLS);
    assert_string_equal(talk.server.session->reason,
                        "we refused: the client's second hello asks for something else (alert "
                        "47: illegal parameter)");
    assert_int_equal(talk.client.status, WEIR_ETLSREFUSED);
    talk_end(&talk);
}

TEST(openssl_choice, what_was_agreed_upon_has_the_name_as_it_was_chosen_by)
{
    weir__tls_facts facts;
    struct talk talk;

    talk_begin_asking(&talk, client(NULL), talk_server(0), "other.test");
    assert_int_equal(SSL_set_tlsext_host_name(ssl_of(&talk.client), "Other.TEST."), 1);
    assert_false(talk_handshake(&talk));
    assert_wish(&talk, "other.test", "");
    talk_choose(&talk, OTHER());
    assert_true(talk_handshake(&talk));
    talk.server.session->engine->facts(talk.server.session, &facts);
    assert_string_equal(facts.server_name, "other.test");
    talk_end(&talk);
}
