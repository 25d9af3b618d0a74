/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OCSP response, made here, goes from a file through a server to a client.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/ocsp.h>
#include <openssl/pem.h>

#include <weir/error.h>

#include "support/executor/messages.h"
#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/visit.h"
#include "tls/openssl.h"

static X509 *read_x509(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    assert_non_null(x509);
    BIO_free(bio);
    return x509;
}

static void sign(OCSP_BASICRESP *basic, X509 *signer, const char *key_pem)
{
    BIO *bio = BIO_new_mem_buf(key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

    assert_int_equal(OCSP_basic_sign(basic, signer, key, EVP_sha256(), NULL, 0), 1);
    EVP_PKEY_free(key);
    BIO_free(bio);
}

/* That the server's certificate is good: it says so itself, for nobody here checks. */
static OCSP_RESPONSE *make_response(int status)
{
    X509 *leaf = read_x509(pki()->server.certificate), *authority = read_x509(pki()->ca);
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, 0), *later = X509_gmtime_adj(NULL, 3600);
    OCSP_CERTID *id = OCSP_cert_to_id(NULL, leaf, authority);
    OCSP_RESPONSE *response;

    assert_non_null(OCSP_basic_add1_status(basic, id, V_OCSP_CERTSTATUS_GOOD, 0, NULL, now, later));
    sign(basic, leaf, pki()->server.key);
    response = OCSP_response_create(status, basic);
    assert_non_null(response);
    OCSP_CERTID_free(id);
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    OCSP_BASICRESP_free(basic);
    X509_free(leaf);
    X509_free(authority);
    return response;
}

/* The bytes of it, which are written to the file. */
static int write_response(const char *path, int status, uint8_t **ret_der)
{
    OCSP_RESPONSE *response = make_response(status);
    int length;
    FILE *file = fopen(path, "w");

    *ret_der = NULL;
    length = i2d_OCSP_RESPONSE(response, ret_der);
    assert_true(length > 0);
    assert_non_null(file);
    assert_int_equal(fwrite(*ret_der, 1, (size_t)length, file), length);
    assert_int_equal(fclose(file), 0);
    OCSP_RESPONSE_free(response);
    return length;
}

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
    length = write_response(path, OCSP_RESPONSE_STATUS_SUCCESSFUL, &der);
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
    (void)write_response(path, OCSP_RESPONSE_STATUS_TRYLATER, &der);
    assert_int_equal(create_server(path, WEIR_TLS_VERSION_DEFAULT, &server), WEIR_ETLS);
    assert_non_null(strstr(weir_tls_reason(), "later.der: the response says \"trylater\""));
    OPENSSL_free(der);
    assert_int_equal(remove(path), 0);
}
