/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OCSP stapling. A server sends an OCSP response with its certificate, in which its authority says
 * that the certificate is not revoked. The response is in a file, which somebody else updates; a
 * reload reads it again.
 *
 * A client that trusts authorities checks it. Most servers staple nothing, so a response that says
 * nothing is harmless, unless the certificate requires one ("must-staple", RFC 7633). A response
 * that cannot be verified counts as none: rejecting it would protect nobody, since the thief of a
 * key need not staple anything, and would lock clients out where an authority made a mistake.
 */
#include <errno.h>

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include "tls/openssl/internal.h"

/* ---- server ---- */

/* Without memory the client gets none, as from most servers. */
static int on_request(SSL *ssl, void *unused)
{
    const weir__openssl_context *context = weir__openssl_session_of(ssl)->context;
    uint8_t *copy;

    (void)unused;
    if (context->staple == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    copy = OPENSSL_memdup(context->staple, (size_t)context->staple_length);
    if (copy == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    (void)SSL_set_tlsext_status_ocsp_resp(ssl, copy, context->staple_length); /* takes it */
    return SSL_TLSEXT_ERR_OK;
}

static int set_staple(weir__openssl_builder *builder, OCSP_RESPONSE *response)
{
    weir__openssl_context *context = builder->context;
    int status = OCSP_response_status(response);

    if (status != OCSP_RESPONSE_STATUS_SUCCESSFUL)
        return weir__openssl_builder_fail(
            builder, WEIR_ETLS, "%s: the OCSP response has the status \"%s\"",
            builder->options->ocsp_file, OCSP_response_status_str(status));
    context->staple_length = i2d_OCSP_RESPONSE(response, &context->staple);
    return context->staple_length > 0
               ? 0
               : weir__openssl_builder_error(builder, builder->options->ocsp_file);
}

static int read_staple(weir__openssl_builder *builder)
{
    const char *file = builder->options->ocsp_file;
    OCSP_RESPONSE *response;
    BIO *bio;
    int err = weir__openssl_builder_open(builder, file, NULL, &bio);

    if (err < 0)
        return err;
    response = d2i_OCSP_RESPONSE_bio(bio, NULL);
    if (response == NULL)
        err = weir__openssl_builder_error(builder, file);
    else
        err = set_staple(builder, response);
    OCSP_RESPONSE_free(response);
    BIO_free(bio);
    return err;
}

/* ---- client ---- */

#define SKEW_S 300 /* tolerated difference of clocks */

enum verdict { UNKNOWN, GOOD, REVOKED };

/* NULL if there is none, or it cannot be read. */
static OCSP_BASICRESP *read_response(SSL *ssl)
{
    unsigned char *der;
    long length = SSL_get_tlsext_status_ocsp_resp(ssl, &der);
    const unsigned char *at = der;
    OCSP_RESPONSE *response = length > 0 ? d2i_OCSP_RESPONSE(NULL, &at, length) : NULL;
    OCSP_BASICRESP *basic = NULL;

    if (response != NULL && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL)
        basic = OCSP_response_get1_basic(response);
    OCSP_RESPONSE_free(response);
    return basic;
}

/* True if it is signed by an authority of the verified chain, or by its delegate. */
static bool is_signed(OCSP_BASICRESP *basic, const SSL *ssl)
{
    X509_STORE *store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
    STACK_OF(X509) *authorities = sk_X509_dup(SSL_get0_verified_chain(ssl));
    bool is_ok;

    (void)sk_X509_shift(authorities); /* the server itself is none */
    is_ok = authorities != NULL &&
            OCSP_basic_verify(basic, authorities, store, OCSP_TRUSTOTHER | OCSP_PARTIAL_CHAIN) == 1;
    sk_X509_free(authorities);
    return is_ok;
}

/* REVOKED does not expire; GOOD does. */
static enum verdict verdict_by(OCSP_BASICRESP *basic, const X509 *x509, const X509 *issuer,
                               const EVP_MD *digest)
{
    OCSP_CERTID *id = OCSP_cert_to_id(digest, x509, issuer);
    ASN1_GENERALIZEDTIME *from, *until;
    int status = V_OCSP_CERTSTATUS_UNKNOWN;
    bool is_known =
        id != NULL && OCSP_resp_find_status(basic, id, &status, NULL, NULL, &from, &until) == 1;

    OCSP_CERTID_free(id);
    if (is_known && status == V_OCSP_CERTSTATUS_REVOKED)
        return REVOKED;
    return is_known && status == V_OCSP_CERTSTATUS_GOOD &&
                   OCSP_check_validity(from, until, SKEW_S, -1) == 1
               ? GOOD
               : UNKNOWN;
}

static enum verdict read_verdict(SSL *ssl, const X509 *x509)
{
    const X509 *issuer = sk_X509_value(SSL_get0_verified_chain(ssl), 1);
    OCSP_BASICRESP *basic = issuer != NULL ? read_response(ssl) : NULL;
    enum verdict verdict = UNKNOWN;

    if (basic != NULL && is_signed(basic, ssl)) {
        verdict = verdict_by(basic, x509, issuer, EVP_sha1()); /* an identifier, no signature */
        if (verdict == UNKNOWN)
            verdict = verdict_by(basic, x509, issuer, EVP_sha256());
    }
    OCSP_BASICRESP_free(basic);
    return verdict;
}

/* A certificate whose TLS features cannot be read may require it. */
static bool must_staple(const X509 *x509)
{
    int is_critical;
    TLS_FEATURE *features = X509_get_ext_d2i(x509, NID_tlsfeature, &is_critical, NULL);
    bool must = features == NULL && is_critical != -1;

    for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++)
        must |= ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == TLSEXT_TYPE_status_request;
    TLS_FEATURE_free(features);
    return must;
}

enum { REJECT = 0, ACCEPT = 1 }; /* OpenSSL's */

static int on_response(SSL *ssl, void *unused)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);
    const X509 *x509 = SSL_get0_peer_certificate(ssl);
    enum verdict verdict;

    (void)unused;
    if (self->context->verify != WEIR_TLS_VERIFY_REQUIRED || SSL_session_reused(ssl) != 0 ||
        x509 == NULL)
        return ACCEPT;
    verdict = read_verdict(ssl, x509);
    if (verdict == REVOKED)
        weir__openssl_verify_reject(self, x509,
                                    X509_verify_cert_error_string(X509_V_ERR_CERT_REVOKED));
    else if (verdict == UNKNOWN && must_staple(x509))
        weir__openssl_verify_reject(
            self, x509, "it requires a stapled OCSP response, and there is no valid one");
    else
        verdict = GOOD;
    ERR_clear_error(); /* the reason has been recorded */
    return verdict == GOOD ? ACCEPT : REJECT;
}

int weir__openssl_ocsp_prepare(weir__openssl_builder *builder)
{
    SSL_CTX *ctx = builder->context->ctx;

    if (!builder->context->is_server) {
        (void)SSL_CTX_set_tlsext_status_type(ctx, TLSEXT_STATUSTYPE_ocsp);
        (void)SSL_CTX_set_tlsext_status_cb(ctx, on_response);
        return 0;
    }
    if (builder->options->ocsp_file == NULL)
        return 0;
    (void)SSL_CTX_set_tlsext_status_cb(ctx, on_request);
    return read_staple(builder);
}
