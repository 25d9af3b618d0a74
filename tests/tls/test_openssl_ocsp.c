/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OCSP response goes from a file through a server to a client.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/ocsp.h>

#include <weir/error.h>

#include "support/executor/log_capture.h"
#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/ocsp_response.h"
#include "support/tls/pki.h"
#include "tls/openssl/internal.h"

static int create_server(const char *path, enum weir_tls_version version,
                         weir_tls_context **ret_context)
{
    return weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                 .key_pem = pki()->server.key, .max_version = version,
                                 .ocsp_file = path),
        ret_context);
}

static void assert_stapled(enum weir_tls_version version, const char *path, const uint8_t *der,
                           int length)
{
    weir_tls_context *server, *client = handshake_client(version);
    unsigned char *received;
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    assert_int_equal(create_server(path, version, &server), 0);
    assert_true(handshake_run(&pair, client, server));
    weir__openssl_session_negotiated(pair.client.session, &negotiated);
    assert_true(negotiated.is_stapled);
    assert_int_equal(SSL_get_tlsext_status_ocsp_resp(pair.client.session->ssl, &received), length);
    assert_memory_equal(received, der, length);
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(openssl_ocsp, a_response_reaches_the_client)
{
    char path[256];
    uint8_t *der;
    int length;

    (void)snprintf(path, sizeof(path), "%s/staple.der", pki()->folder);
    length = ocsp_response_write(path, OCSP_RESPONSE_STATUS_SUCCESSFUL, &der);
    assert_stapled(WEIR_TLS_VERSION_1_2, path, der, length);
    assert_stapled(WEIR_TLS_VERSION_1_3, path, der, length);
    OPENSSL_free(der);
    assert_int_equal(remove(path), 0);
}

TEST(openssl_ocsp, without_one_the_client_is_told_so)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT);
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    assert_true(handshake_run(&pair, client, server));
    weir__openssl_session_negotiated(pair.client.session, &negotiated);
    assert_false(negotiated.is_stapled);
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(openssl_ocsp, a_response_that_says_nothing_is_rejected)
{
    weir_tls_context *server;
    char path[256];
    uint8_t *der;

    log_capture_start();
    (void)snprintf(path, sizeof(path), "%s/later.der", pki()->folder);
    (void)ocsp_response_write(path, OCSP_RESPONSE_STATUS_TRYLATER, &der);
    assert_int_equal(create_server(path, WEIR_TLS_VERSION_DEFAULT, &server), WEIR_ETLS);
    assert_non_null(
        strstr(weir_tls_reason(), "later.der: the OCSP response has the status \"trylater\""));
    OPENSSL_free(der);
    assert_int_equal(remove(path), 0);
}

/* ---- what it says ---- */

/* Visits a server of this certificate, with what is said of it; NULL: nothing is. */
static void visit_stapled(struct session_pair *pair, const struct pki_leaf *leaf,
                          enum weir_tls_version version, const struct ocsp_response_options *staple)
{
    weir_tls_context *server, *client = handshake_client(version);
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/said.der", pki()->folder);
    if (staple != NULL)
        ocsp_response_write_with(path, staple);
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate,
                                                  .key_pem = leaf->key, .max_version = version,
                                                  .ocsp_file = staple != NULL ? path : NULL),
                         &server),
                     0);
    if (staple != NULL)
        assert_int_equal(remove(path), 0);
    (void)handshake_run(pair, client, server);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

static void assert_refused(const struct pki_leaf *leaf, const struct ocsp_response_options *staple,
                           const char *words)
{
    const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

    for (size_t i = 0; i < 2; i++) {
        struct session_pair pair;

        visit_stapled(&pair, leaf, versions[i], staple);
        assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
        assert_string_equal(pair.client.session->reason, words);
        assert_int_equal(session_side_step(&pair.server), WEIR_ETLSREFUSED);
        assert_non_null(strstr(pair.server.session->reason, "(alert 113)"));
        session_pair_close(&pair);
    }
}

static bool is_trusted(const struct pki_leaf *leaf, const struct ocsp_response_options *staple)
{
    struct session_pair pair;
    bool is_over;

    visit_stapled(&pair, leaf, WEIR_TLS_VERSION_DEFAULT, staple);
    is_over = pair.client.status == WEIR__OPENSSL_DONE;
    session_pair_close(&pair);
    return is_over;
}

#define SAID(leaf, signer, what, duration)                        \
    (&(const struct ocsp_response_options){.about = (leaf),       \
                                           .by = (signer),        \
                                           .seconds = (duration), \
                                           .status = V_OCSP_CERTSTATUS_##what})

TEST(openssl_ocsp, a_server_that_says_itself_that_it_is_revoked_is_rejected)
{
    const struct pki_leaf *server = &pki()->server, *issuer = &pki()->intermediate;

    assert_refused(server, SAID(server, issuer, REVOKED, 3600),
                   "the peer's certificate is not trusted: certificate revoked (CN=localhost)");
    assert_true(is_trusted(server, SAID(server, issuer, GOOD, 3600)));
    assert_true(is_trusted(server, SAID(server, server, REVOKED, 3600))); /* not an authority */
}

TEST(openssl_ocsp, a_response_that_cannot_be_verified_counts_as_none)
{
    const struct pki_leaf *server = &pki()->server, *issuer = &pki()->intermediate;

    assert_true(is_trusted(server, NULL));
    assert_true(is_trusted(server, SAID(server, issuer, GOOD, -3600)));
    assert_true(is_trusted(server, SAID(server, issuer, UNKNOWN, 3600)));
    assert_true(is_trusted(server, SAID(server, server, GOOD, 3600)));
    assert_true(is_trusted(server, SAID(&pki()->other, issuer, REVOKED, 3600)));
}

TEST(openssl_ocsp, a_certificate_that_demands_a_response_has_a_good_one)
{
    const struct pki_leaf *leaf = &pki()->stapled, *issuer = &pki()->intermediate;
    static const char words[] =
        "the peer's certificate is not trusted: it requires a stapled OCSP response, "
        "and there is no valid one (CN=localhost)";

    assert_true(is_trusted(leaf, SAID(leaf, issuer, GOOD, 3600)));
    assert_refused(leaf, NULL, words);
    assert_refused(leaf, SAID(leaf, issuer, GOOD, -3600), words);
    assert_refused(leaf, SAID(leaf, issuer, UNKNOWN, 3600), words);
    assert_refused(leaf, SAID(leaf, leaf, GOOD, 3600), words);
    assert_refused(leaf, SAID(&pki()->server, issuer, GOOD, 3600), words);
}

TEST(openssl_ocsp, what_is_taken_up_again_needs_none)
{
    const struct pki_leaf *leaf = &pki()->stapled;
    weir_tls_context *server, *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/again.der", pki()->folder);
    ocsp_response_write_with(path, SAID(leaf, &pki()->intermediate, GOOD, 3600));
    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate,
                                                        .key_pem = leaf->key, .ocsp_file = path),
                               &server),
        0);
    assert_int_equal(remove(path), 0);
    assert_false(handshake_resumes(client, server));
    assert_true(handshake_resumes(client, server));
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}
