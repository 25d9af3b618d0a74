/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OCSP response goes from a file through a server to a client.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/ocsp.h>

#include <weir/error.h>

#include "support/executor/messages.h"
#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/staple.h"
#include "support/tls/visit.h"
#include "tls/openssl.h"

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
    weir_tls_context *server, *client = visit_client(version);
    unsigned char *received;
    weir__tls_facts facts;
    struct talk talk;

    assert_int_equal(create_server(path, version, &server), 0);
    assert_true(visit_begin(&talk, client, server));
    weir__tls_openssl.facts(talk.client.session, &facts);
    assert_true(facts.is_stapled);
    assert_int_equal(SSL_get_tlsext_status_ocsp_resp(
                         ((weir__openssl_session *)(void *)talk.client.session)->ssl, &received),
                     length);
    assert_memory_equal(received, der, length);
    talk_end(&talk);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(openssl_staple, a_response_reaches_the_client)
{
    char path[256];
    uint8_t *der;
    int length;

    (void)snprintf(path, sizeof(path), "%s/staple.der", pki()->folder);
    length = staple_write(path, OCSP_RESPONSE_STATUS_SUCCESSFUL, &der);
    assert_stapled(WEIR_TLS_VERSION_1_2, path, der, length);
    assert_stapled(WEIR_TLS_VERSION_1_3, path, der, length);
    OPENSSL_free(der);
    assert_int_equal(remove(path), 0);
}

TEST(openssl_staple, without_one_the_client_is_told_so)
{
    weir_tls_context *server = visit_server(WEIR_TLS_VERSION_DEFAULT);
    weir_tls_context *client = visit_client(WEIR_TLS_VERSION_DEFAULT);
    weir__tls_facts facts;
    struct talk talk;

    assert_true(visit_begin(&talk, client, server));
    weir__tls_openssl.facts(talk.client.session, &facts);
    assert_false(facts.is_stapled);
    talk_end(&talk);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(openssl_staple, a_response_that_says_nothing_is_refused)
{
    weir_tls_context *server;
    char path[256];
    uint8_t *der;

    messages_catch();
    (void)snprintf(path, sizeof(path), "%s/later.der", pki()->folder);
    (void)staple_write(path, OCSP_RESPONSE_STATUS_TRYLATER, &der);
    assert_int_equal(create_server(path, WEIR_TLS_VERSION_DEFAULT, &server), WEIR_ETLS);
    assert_non_null(strstr(weir_tls_reason(), "later.der: the response says \"trylater\""));
    OPENSSL_free(der);
    assert_int_equal(remove(path), 0);
}
