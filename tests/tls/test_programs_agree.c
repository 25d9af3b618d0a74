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
static void send_away(struct tls_endpoint *endpoint, struct program *client, const char *alert,
                      const char *words)
{
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, alert);
    program_release(client);
    assert_endpoint(endpoint, NOTHING_IN_COMMON);
    assert_detail(endpoint, words);
}

/* s_client comes, says a word, hears it, has printed something, and goes. */
static void welcome(struct tls_endpoint *endpoint, struct program *client, const char *printed)
{
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, printed);
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
}

/* We come, say a word to s_server -rev, hear it, and go. */
static void visit(struct tls_endpoint *endpoint, unsigned port)
{
    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "hello\n");
    tls_endpoint_await_text(endpoint, "olleh\n");
    tls_endpoint_disconnect(endpoint);
    assert_endpoint(endpoint, "handshake(OK) inactive");
}

/* ---- versions ---- */

TEST_EACH_LOOP(programs, s_client_of_an_old_version_is_sent_away)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    send_away(endpoint, s_client(endpoint, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"),
              "SSL alert number 70", "unsupported protocol");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_below_our_least_version_is_sent_away)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .min_version = WEIR_TLS_VERSION_1_3));
    send_away(endpoint, s_client(endpoint, "-tls1_2"), "SSL alert number 70",
              "unsupported protocol");
    welcome(endpoint, s_client(endpoint, "-tls1_3"), "New, TLSv1.3");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_above_our_highest_version_comes_down)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .max_version = WEIR_TLS_VERSION_1_2));
    send_away(endpoint, s_client(endpoint, "-tls1_3"), "SSL alert number 70",
              "unsupported protocol");
    welcome(endpoint, s_client(endpoint, "-no_ign_eof"), "New, TLSv1.2");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_of_an_old_version_is_left)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    server = s_server(&port, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0");
    tls_endpoint_connect(endpoint, port);
    assert_endpoint(endpoint, REFUSED);
    assert_detail(endpoint, "protocol version (alert 70)");
    program_release(server);
    tls_endpoint_close(endpoint);
}

/* ---- ciphers ---- */

TEST_EACH_LOOP(programs, s_client_has_a_cipher_in_common_or_is_sent_away)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384",
                                       .cipher_suites = "TLS_AES_256_GCM_SHA384"));
    send_away(endpoint, s_client(endpoint, "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"),
              "SSL alert number 40", "no shared cipher");
    send_away(endpoint, s_client(endpoint, "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"),
              "SSL alert number 40", "no shared cipher");
    welcome(endpoint, s_client(endpoint, "-tls1_2"), "Cipher is ECDHE-ECDSA-AES256-GCM-SHA384");
    assert_string_equal(tls_endpoint_handshake(endpoint).cipher, "ECDHE-ECDSA-AES256-GCM-SHA384");
    welcome(endpoint, s_client(endpoint, "-tls1_3"), "Cipher is TLS_AES_256_GCM_SHA384");
    assert_string_equal(tls_endpoint_handshake(endpoint).cipher, "TLS_AES_256_GCM_SHA384");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_has_no_cipher_in_common_with_us)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_client(
        host,
        WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384",
                                 .max_version = WEIR_TLS_VERSION_1_2));
    server = s_server(&port, "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256");
    tls_endpoint_connect(endpoint, port);
    assert_endpoint(endpoint, REFUSED);
    assert_detail(endpoint, "rejected by the peer: handshake failure (alert 40)");
    program_release(server);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_has_a_group_in_common)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .groups = "P-384"));
    welcome(endpoint, s_client(endpoint, "-tls1_3"), "Temp Key: ECDH, secp384r1");
    send_away(endpoint, s_client(endpoint, "-tls1_3", "-groups", "X25519"), "SSL alert number 40",
              "no suitable key share");
    tls_endpoint_close(endpoint);
}

/* ---- protocols ---- */

TEST_EACH_LOOP(programs, clients_get_the_protocol_that_we_like_best)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    program_require(host, "gnutls-cli");
    endpoint =
        tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .alpn = "h2,http/1.1"));
    for (each_version(version)) {
        welcome(endpoint, s_client(endpoint, version->flag, "-alpn", "http/1.1,foo,h2"),
                "ALPN protocol: h2");
        assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "h2");
    }
    welcome(endpoint, s_client(endpoint, "-alpn", "http/1.1"), "ALPN protocol: http/1.1");
    assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "http/1.1");
    welcome(endpoint, s_client(endpoint, "-tls1_3"), "No ALPN negotiated");
    assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "");
    client = gnutls_cli(endpoint, "--alpn", "h2");
    program_await(client, "- Application protocol: h2");
    (void)program_end(client);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, clients_of_other_protocols_are_sent_away)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    program_require(host, "gnutls-cli");
    endpoint =
        tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS_LOCALHOST, .alpn = "h2,http/1.1"));
    for (each_version(version))
        send_away(endpoint, s_client(endpoint, version->flag, "-alpn", "foo,bar"),
                  "SSL alert number 120", "no application protocol");
    client = gnutls_cli(endpoint, "--alpn", "foo");
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "[120]: No supported application protocol could be negotiated");
    program_release(client);
    assert_endpoint(endpoint, NOTHING_IN_COMMON);
    tls_endpoint_close(endpoint);
}

static struct tls_endpoint *visit_with_alpn(struct host *host, const char *alpn)
{
    return tls_endpoint_create_client(host,
                                      WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = alpn));
}

TEST_EACH_LOOP(programs, s_server_chooses_one_of_our_protocols)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = visit_with_alpn(host, "h2,http/1.1");
    server = s_server(&port, "-rev", "-alpn", "http/1.1");
    visit(endpoint, port);
    assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "http/1.1");
    program_release(server);
    server = s_server(&port, "-rev"); /* it does not say */
    visit(endpoint, port);
    assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "");
    program_release(server);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_of_another_protocol_refuses_us)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = visit_with_alpn(host, "h2,http/1.1");
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-alpn", "foo");

        tls_endpoint_connect(endpoint, port);
        assert_endpoint(endpoint, REFUSED);
        assert_detail(endpoint, "no application protocol (alert 120)");
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}
