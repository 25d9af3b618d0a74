/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification between real programs and us: invalid certificates in both directions, and the
 * errors of both sides.
 */
#include <stdio.h>
#include <string.h>

#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

/* ---- a server's certificate ---- */

/* A server that must not be trusted, and the expected reason. */
struct flaw {
    const struct pki_leaf *leaf;
    const char *we_say;
    const char *alert; /* that we send, and s_server prints */
    const char *s_client_says;
    const char *s_client_sends; /* an alert, in our words */
    const char *gnutls_says;
    const char *curl_says;
};

#define FLAWS 5

static void list_flaws(struct flaw ret_flaws[FLAWS])
{
    const struct flaw flaws[FLAWS] = {
        {&pki()->wrong_host, "hostname mismatch", "SSL alert number 42", "hostname mismatch",
         "bad certificate (alert 42)", "does not match the expected", "no alternative"},
        {&pki()->expired, "certificate has expired", "SSL alert number 45",
         "certificate has expired", "certificate expired (alert 45)", "expired",
         "certificate has expired"},
        {&pki()->future, "certificate is not yet valid", "SSL alert number 42",
         "certificate is not yet valid", "bad certificate (alert 42)", "not yet valid",
         "certificate is not yet valid"},
        {&pki()->self_signed, "self-signed certificate", "SSL alert number 48",
         "self-signed certificate", "unknown CA (alert 48)", "The certificate is NOT trusted",
         "self-signed certificate"},
        {&pki()->stranger, "unable to get local issuer certificate", "SSL alert number 48",
         "unable to get local issuer certificate", "unknown CA (alert 48)",
         "The certificate issuer is unknown", "unable to get local issuer certificate"},
    };

    memcpy(ret_flaws, flaws, sizeof(flaws));
}

TEST_EACH_LOOP(programs, s_server_is_not_trusted)
{
    struct flaw flaws[FLAWS];
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    list_flaws(flaws);
    for (size_t i = 0; i < FLAWS; i++) {
        const struct tls_version_names *version = &tls_versions[i % 2];
        unsigned port;
        struct program *server =
            s_server(&port, version->flag, "-cert", flaws[i].leaf->certificate_file, "-cert_chain",
                     flaws[i].leaf->certificate_file, "-key", flaws[i].leaf->key_file);

        tls_endpoint_connect(endpoint, port);
        assert_endpoint(endpoint, "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
        assert_detail(endpoint, flaws[i].we_say);
        assert_non_null(strstr(tls_endpoint_handshake(endpoint).detail, flaws[i].we_say));
        program_await(server, flaws[i].alert);
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}

/* A name, an address, or what a star stands for. */
TEST_EACH_LOOP(programs, s_server_is_trusted_by_each_of_its_names)
{
    const struct {
        const struct pki_leaf *leaf;
        const char *name;
        const char *refusal; /* NULL = it is trusted */
    } visits[] = {
        {&pki()->server, "127.0.0.1", NULL},
        {&pki()->server, "::1", NULL},
        {&pki()->server, "EXAMPLE.test", NULL},
        {&pki()->other, "any.wild.test", NULL},
        {&pki()->server, "127.0.0.2", "IP address mismatch"},
        {&pki()->other, "wild.test", "hostname mismatch"},
        {&pki()->other, "one.more.wild.test", "hostname mismatch"},
    };
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    for (size_t i = 0; i < sizeof(visits) / sizeof(visits[0]); i++) {
        unsigned port;
        struct program *server =
            s_server(&port, "-rev", "-cert", visits[i].leaf->certificate_file, "-cert_chain",
                     visits[i].leaf->certificate_file, "-key", visits[i].leaf->key_file);

        endpoint->options.server_name = visits[i].name;
        tls_endpoint_connect(endpoint, port);
        if (visits[i].refusal != NULL) {
            assert_endpoint(endpoint, "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
            assert_detail(endpoint, visits[i].refusal);
        } else {
            tls_endpoint_send_text(endpoint, "hello\n");
            tls_endpoint_await_text(endpoint, "olleh\n");
            tls_endpoint_disconnect(endpoint);
            assert_endpoint(endpoint, "handshake(OK) inactive");
        }
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}

static struct tls_endpoint *listen_as(struct host *host, const struct pki_leaf *leaf)
{
    return tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate, .key_pem = leaf->key));
}

/* The next that comes gets this one. */
static void change_to(struct tls_endpoint *endpoint, const struct pki_leaf *leaf)
{
    assert_int_equal(
        weir_tls_context_replace(
            endpoint->tls,
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate, .key_pem = leaf->key)),
        0);
}

TEST_EACH_LOOP(programs, s_client_does_not_trust_our_server)
{
    struct flaw flaws[FLAWS];
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    list_flaws(flaws);
    for (size_t i = 0; i < FLAWS; i++) {
        struct program *client;

        change_to(endpoint, flaws[i].leaf);
        client = s_client(endpoint, tls_versions[i % 2].flag);
        assert_int_not_equal(program_wait(client), 0);
        assert_printed(client, flaws[i].s_client_says);
        program_release(client);
        assert_endpoint(endpoint, "handshake(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
        assert_detail(endpoint, flaws[i].s_client_sends);
    }
    tls_endpoint_close(endpoint);
}

/* Both look at the certificate when the handshake is over, or tell us nothing before they go. */
TEST_EACH_LOOP(programs, curl_and_gnutls_cli_do_not_trust_our_server)
{
    struct flaw flaws[FLAWS];
    struct tls_endpoint *endpoint;

    program_require(host, "curl");
    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen_localhost(host);
    list_flaws(flaws);
    for (size_t i = 0; i < FLAWS; i++) {
        struct program *client;

        change_to(endpoint, flaws[i].leaf);
        client = curl(endpoint, "https", "--tls-max", tls_versions[i % 2].number);
        assert_int_equal(program_wait(client), 60);
        assert_printed(client, flaws[i].curl_says);
        program_release(client);
        client = gnutls_cli(endpoint, "--priority", tls_versions[i % 2].priority);
        assert_int_not_equal(program_wait(client), 0);
        assert_printed(client, flaws[i].gnutls_says);
        program_release(client);
        events_await(&endpoint->events, &endpoint->notes, "inactive", 2 * ((unsigned)i + 1));
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_reaches_our_server_by_an_rsa_key)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = listen_as(host, pki_rsa());
    client = s_client(endpoint, "-tls1_2", "-sigalgs", "RSA-PSS+SHA256");
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, "Verify return code: 0 (ok)");
    program_await(client, "Peer signature type: ");
    assert_true(program_printed(client, "type: RSA-PSS") ||
                program_printed(client, "type: rsa_pss_rsae_sha256")); /* OpenSSL 3.5 */
    assert_int_equal(program_end(client), 0);
    tls_endpoint_close(endpoint);
}

/* A self-signed certificate is trusted by a client that has it. */
TEST_EACH_LOOP(programs, s_client_may_trust_a_certificate_that_we_made_ourselves)
{
    struct tls_endpoint *endpoint;
    struct program *client;
    weir_tls_certificate *certificate;
    char path[256];
    FILE *file;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.self_signed_for = "localhost,127.0.0.1"));
    certificate = weir_tls_context_certificate(endpoint->tls);
    (void)snprintf(path, sizeof(path), "%s/own.pem", pki()->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(weir_tls_certificate_pem(certificate), file) >= 0);
    assert_int_equal(fclose(file), 0);
    weir_tls_certificate_release(certificate);
    client = s_client(endpoint, "-CAfile", path, "-verify_ip", "127.0.0.1");
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, "Verify return code: 0 (ok)");
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    tls_endpoint_close(endpoint);
}

/* Of whatever authority: it is the key that counts. */
static void visit_by_pin(struct host *host, const char *pin, const char *notes)
{
    struct tls_endpoint *endpoint = tls_endpoint_create_client(
        host, WEIR_TLS_CONTEXT_OPTIONS(.verify = WEIR_TLS_VERIFY_PINS, .pins = pin));
    unsigned port;
    struct program *server = s_server(&port, "-rev", "-cert", pki()->self_signed.certificate_file,
                                      "-key", pki()->self_signed.key_file);

    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "hello\n");
    if (strstr(notes, "OK") != NULL) {
        tls_endpoint_await_text(endpoint, "olleh\n");
        tls_endpoint_disconnect(endpoint);
    }
    assert_endpoint(endpoint, notes);
    program_release(server);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_has_the_right_pin)
{
    weir_tls_certificate *certificate;

    program_require(host, "openssl");
    assert_int_equal(weir_tls_certificate_parse(pki()->self_signed.certificate, &certificate), 0);
    visit_by_pin(host, weir_tls_certificate_pin(certificate), "handshake(OK) inactive");
    weir_tls_certificate_release(certificate);
}

TEST_EACH_LOOP(programs, s_server_has_a_wrong_pin)
{
    weir_tls_certificate *certificate;

    program_require(host, "openssl");
    assert_int_equal(weir_tls_certificate_parse(pki()->server.certificate, &certificate), 0);
    visit_by_pin(host, weir_tls_certificate_pin(certificate),
                 "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    weir_tls_certificate_release(certificate);
}

/* ---- a client's certificate ---- */

/* Arguments of s_client for a client certificate. */
#define AS(leaf)                                                                      \
    "-cert", (leaf).certificate_file, "-cert_chain", (leaf).certificate_file, "-key", \
        (leaf).key_file

#define ASKING(demand)                                                          \
    WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,      \
                             .key_pem = pki()->server.key, .ca_pem = pki()->ca, \
                             .verify = (demand))

TEST_EACH_LOOP(programs, s_client_has_to_show_a_certificate)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(host, ASKING(WEIR_TLS_VERIFY_REQUIRED));
    for (each_version(version)) {
        bool is_1_3 = strcmp(version->name, "TLSv1.3") == 0;
        struct program *client = s_client(endpoint, version->flag);

        assert_int_not_equal(program_wait(client), 0);
        assert_printed(client, is_1_3 ? "SSL alert number 116" : "SSL alert number 40");
        assert_printed(client, "Acceptable client certificate CA names");
        program_release(client);
        assert_endpoint(endpoint, "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
        assert_detail(endpoint, "certificate");
    }
    tls_endpoint_close(endpoint);
}

static void refuse_stranger(struct tls_endpoint *endpoint, const struct tls_version_names *version)
{
    struct program *client = s_client(endpoint, version->flag, AS(pki()->strange_client));

    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "SSL alert number 48");
    program_release(client);
    assert_endpoint(endpoint, "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    assert_detail(endpoint, "unable to get local issuer certificate");
}

/* Who may do without a certificate may still not show a wrong one. */
TEST_EACH_LOOP(programs, s_client_of_a_strange_authority_is_rejected)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(host, ASKING(WEIR_TLS_VERIFY_REQUIRED));
    for (each_version(version))
        refuse_stranger(endpoint, version);
    assert_int_equal(weir_tls_context_replace(endpoint->tls, ASKING(WEIR_TLS_VERIFY_OPTIONAL)), 0);
    for (each_version(version))
        refuse_stranger(endpoint, version);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_is_known_by_its_certificate)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(host, ASKING(WEIR_TLS_VERIFY_REQUIRED));
    for (each_version(version)) {
        struct program *client =
            s_client(endpoint, version->flag, "-quiet", "-no_ign_eof", AS(pki()->client));

        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).peer, "CN=client");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_may_do_without_a_certificate_that_is_optional)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen(host, ASKING(WEIR_TLS_VERIFY_OPTIONAL));
    client = s_client(endpoint, "-quiet", "-no_ign_eof");
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    assert_string_equal(tls_endpoint_handshake(endpoint).peer, "");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, gnutls_cli_is_known_by_its_certificate)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen(host, ASKING(WEIR_TLS_VERIFY_REQUIRED));
    client = gnutls_cli(endpoint, "--x509certfile", pki()->client.certificate_file, "--x509keyfile",
                        pki()->client.key_file);
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    assert_string_equal(tls_endpoint_handshake(endpoint).peer, "CN=client");
    tls_endpoint_close(endpoint);
}

/* ---- our certificate, as a client ---- */

static struct tls_endpoint *visit_as(struct host *host, const struct pki_leaf *leaf)
{
    return tls_endpoint_create_client(
        host, WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .certificate_pem = leaf->certificate,
                                       .key_pem = leaf->key));
}

#define DEMANDING \
    "-Verify", "3", "-verify_return_error", "-verify_quiet", "-CAfile", pki()->ca_file, "-rev"

TEST_EACH_LOOP(programs, s_server_knows_us_by_our_certificate)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = visit_as(host, &pki()->client);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, DEMANDING);

        tls_endpoint_connect(endpoint, port);
        tls_endpoint_send_text(endpoint, "hello\n");
        tls_endpoint_await_text(endpoint, "olleh\n");
        program_await(server, "Peer certificate: CN");
        assert_true(program_printed(server, "certificate: CN = client") ||
                    program_printed(server, "certificate: CN=client")); /* OpenSSL 3.2 */
        tls_endpoint_disconnect(endpoint);
        program_release(server);
        assert_endpoint(endpoint, "handshake(OK) inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).peer, "CN=localhost");
    }
    tls_endpoint_close(endpoint);
}

/* In TLS 1.3 the client's part is over before the server has seen the certificate. */
static void be_refused(struct tls_endpoint *endpoint, const struct tls_version_names *version,
                       const char *words)
{
    bool is_1_3 = strcmp(version->name, "TLSv1.3") == 0;
    unsigned port;
    struct program *server = s_server(&port, version->flag, DEMANDING);

    tls_endpoint_connect(endpoint, port);
    assert_endpoint(endpoint, is_1_3
                                  ? "handshake(OK) error(WEIR_ETLSREFUSED) inactive"
                                  : "handshake(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
    assert_detail(endpoint, words);
    program_release(server);
}

TEST_EACH_LOOP(programs, s_server_refuses_us_without_a_certificate)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    be_refused(endpoint, &tls_versions[0], "handshake failure (alert 40)");
    be_refused(endpoint, &tls_versions[1], "certificate required (alert 116)");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_refuses_us_of_a_strange_authority)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = visit_as(host, &pki()->strange_client);
    for (each_version(version))
        be_refused(endpoint, version, "unknown CA (alert 48)");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, gnutls_serv_wants_our_certificate)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "gnutls-serv");
    endpoint = visit_as(host, &pki()->client);
    server = gnutls_serv(&port, "--require-client-cert", "--verify-client-cert", "--x509cafile",
                         pki()->ca_file);
    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "hello\n");
    tls_endpoint_await_text(endpoint, "hello\n");
    program_await(server, "- Client Signature: ");
    tls_endpoint_disconnect(endpoint);
    program_release(server);
    assert_endpoint(endpoint, "handshake(OK) inactive");
    tls_endpoint_close(endpoint);
}
