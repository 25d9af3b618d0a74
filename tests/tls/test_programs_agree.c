/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What real programs and we agree upon: versions, ciphers, protocols, names, and what is said when
 * there is nothing in common.
 */
#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

#define AS_LOCALHOST .certificate_pem = pki()->server.certificate, .key_pem = pki()->server.key

#define NOTHING_IN_COMMON "handshake(WEIR_ETLS) error(WEIR_ETLS) inactive"
#define REFUSED "handshake(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive"

/* s_client comes and is sent away, with this alert; we say why. */
static void send_away(struct party *party, struct program *client, const char *alert,
                      const char *words)
{
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, alert);
    program_release(client);
    assert_party(party, NOTHING_IN_COMMON);
    assert_words(party, words);
}

/* s_client comes, says a word, hears it, has printed something, and goes. */
static void welcome(struct party *party, struct program *client, const char *printed)
{
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, printed);
    assert_int_equal(program_end(client), 0);
    assert_party(party, "handshake(OK) ended inactive");
}

/* We come, say a word to s_server -rev, hear it, and go. */
static void visit(struct party *party, unsigned port)
{
    party_connect(party, port);
    party_say(party, "hello\n");
    party_await_heard(party, "olleh\n");
    party_leave(party);
    assert_party(party, "handshake(OK) inactive");
}

/* ---- versions ---- */

TEST_EACH_LOOP(programs, s_client_of_an_old_version_is_sent_away)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_listen_as_localhost(host);
    send_away(party, s_client(party, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"),
              "SSL alert number 70", "unsupported protocol");
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_below_our_least_version_is_sent_away)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .min_version = WEIR_TLS_VERSION_1_3));
    send_away(party, s_client(party, "-tls1_2"), "SSL alert number 70", "unsupported protocol");
    welcome(party, s_client(party, "-tls1_3"), "New, TLSv1.3");
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_above_our_highest_version_comes_down)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .max_version = WEIR_TLS_VERSION_1_2));
    send_away(party, s_client(party, "-tls1_3"), "SSL alert number 70", "unsupported protocol");
    welcome(party, s_client(party, "-no_ign_eof"), "New, TLSv1.2");
    party_end(party);
}

TEST_EACH_LOOP(programs, s_server_of_an_old_version_is_left)
{
    struct party *party;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    party = party_visit_localhost(host);
    server = s_server(&port, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0");
    party_connect(party, port);
    assert_party(party, REFUSED);
    assert_words(party, "protocol version (alert 70)");
    program_release(server);
    party_end(party);
}

/* ---- ciphers ---- */

TEST_EACH_LOOP(programs, s_client_has_a_cipher_in_common_or_is_sent_away)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST,
                                                        .ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384",
                                                        .cipher_suites = "TLS_AES_256_GCM_SHA384"));
    send_away(party, s_client(party, "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"),
              "SSL alert number 40", "no shared cipher");
    send_away(party, s_client(party, "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"),
              "SSL alert number 40", "no shared cipher");
    welcome(party, s_client(party, "-tls1_2"), "Cipher is ECDHE-ECDSA-AES256-GCM-SHA384");
    assert_string_equal(party_facts(party).cipher, "ECDHE-ECDSA-AES256-GCM-SHA384");
    welcome(party, s_client(party, "-tls1_3"), "Cipher is TLS_AES_256_GCM_SHA384");
    assert_string_equal(party_facts(party).cipher, "TLS_AES_256_GCM_SHA384");
    party_end(party);
}

TEST_EACH_LOOP(programs, s_server_has_no_cipher_in_common_with_us)
{
    struct party *party;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    party = party_visit(host, WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                                       .ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384",
                                                       .max_version = WEIR_TLS_VERSION_1_2));
    server = s_server(&port, "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256");
    party_connect(party, port);
    assert_party(party, REFUSED);
    assert_words(party, "the peer refused: handshake failure (alert 40)");
    program_release(server);
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_has_a_group_in_common)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .groups = "P-384"));
    welcome(party, s_client(party, "-tls1_3"), "Server Temp Key: ECDH, secp384r1");
    send_away(party, s_client(party, "-tls1_3", "-groups", "X25519"), "SSL alert number 40",
              "no suitable key share");
    party_end(party);
}

/* ---- protocols ---- */

TEST_EACH_LOOP(programs, clients_get_the_protocol_that_we_like_best)
{
    struct party *party;
    struct program *client;

    program_require(host, "openssl");
    program_require(host, "gnutls-cli");
    party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .alpn = "h2,http/1.1"));
    for (each_version(version)) {
        welcome(party, s_client(party, version->flag, "-alpn", "http/1.1,foo,h2"),
                "ALPN protocol: h2");
        assert_string_equal(party_facts(party).alpn, "h2");
    }
    welcome(party, s_client(party, "-alpn", "http/1.1"), "ALPN protocol: http/1.1");
    assert_string_equal(party_facts(party).alpn, "http/1.1");
    welcome(party, s_client(party, "-tls1_3"), "No ALPN negotiated");
    assert_string_equal(party_facts(party).alpn, "");
    client = gnutls_cli(party, "--alpn", "h2");
    program_await(client, "- Application protocol: h2");
    (void)program_end(client);
    party_end(party);
}

TEST_EACH_LOOP(programs, clients_of_other_protocols_are_sent_away)
{
    struct party *party;
    struct program *client;

    program_require(host, "openssl");
    program_require(host, "gnutls-cli");
    party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .alpn = "h2,http/1.1"));
    for (each_version(version))
        send_away(party, s_client(party, version->flag, "-alpn", "foo,bar"), "SSL alert number 120",
                  "no application protocol");
    client = gnutls_cli(party, "--alpn", "foo");
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "[120]: No supported application protocol could be negotiated");
    program_release(client);
    assert_party(party, NOTHING_IN_COMMON);
    party_end(party);
}

static struct party *visit_with_alpn(struct host *host, const char *alpn)
{
    return party_visit(host, WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = alpn));
}

TEST_EACH_LOOP(programs, s_server_chooses_one_of_our_protocols)
{
    struct party *party;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    party = visit_with_alpn(host, "h2,http/1.1");
    server = s_server(&port, "-rev", "-alpn", "http/1.1");
    visit(party, port);
    assert_string_equal(party_facts(party).alpn, "http/1.1");
    program_release(server);
    server = s_server(&port, "-rev"); /* it does not say */
    visit(party, port);
    assert_string_equal(party_facts(party).alpn, "");
    program_release(server);
    party_end(party);
}

TEST_EACH_LOOP(programs, s_server_of_another_protocol_refuses_us)
{
    struct party *party;

    program_require(host, "openssl");
    party = visit_with_alpn(host, "h2,http/1.1");
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-alpn", "foo");

        party_connect(party, port);
        assert_party(party, REFUSED);
        assert_words(party, "no application protocol (alert 120)");
        program_release(server);
    }
    party_end(party);
}
