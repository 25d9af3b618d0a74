/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/identity.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "support/bench.h"

enum { DAY_SECONDS = 24 * 60 * 60, PEM_MAX = 4096 };

static EVP_PKEY *key;
static X509 *certificate;

static void sign_certificate(void)
{
    X509_NAME *name = X509_get_subject_name(certificate);

    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY_SECONDS);
    X509_gmtime_adj(X509_getm_notAfter(certificate), DAY_SECONDS);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    bench_require(X509_sign(certificate, key, EVP_sha256()) > 0, "X509_sign");
}

static void make_once(void)
{
    if (key != NULL)
        return;
    key = EVP_EC_gen("P-256");
    certificate = X509_new();
    bench_require(key != NULL && certificate != NULL, "making a key");
    sign_certificate();
}

/* What was written to memory, as text. */
static void take_text(BIO *memory, char text[PEM_MAX])
{
    int length = BIO_read(memory, text, PEM_MAX - 1);

    bench_require(length > 0, "PEM");
    text[length] = '\0';
    BIO_free(memory);
}

const char *tls_identity_certificate(void)
{
    static char text[PEM_MAX];
    BIO *memory = BIO_new(BIO_s_mem());

    make_once();
    bench_require(PEM_write_bio_X509(memory, certificate) == 1, "PEM_write_bio_X509");
    take_text(memory, text);
    return text;
}

const char *tls_identity_key(void)
{
    static char text[PEM_MAX];
    BIO *memory = BIO_new(BIO_s_mem());

    make_once();
    bench_require(PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL) == 1,
                  "PEM_write_bio_PrivateKey");
    take_text(memory, text);
    return text;
}

SSL_CTX *tls_identity_server(bool tickets)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    make_once();
    bench_require(context != NULL, "SSL_CTX_new");
    bench_require(SSL_CTX_use_certificate(context, certificate) == 1, "the certificate");
    bench_require(SSL_CTX_use_PrivateKey(context, key) == 1, "the key");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    if (!tickets) {
        SSL_CTX_set_num_tickets(context, 0); /* of TLS 1.3; the option is that of 1.2 */
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    }
    return context;
}
