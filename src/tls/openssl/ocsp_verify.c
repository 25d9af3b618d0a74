/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an OCSP response says that came with a server's certificate, to a client that believes
 * authorities. Most servers have none, so one that says nothing does no harm; a certificate may
 * demand one, though ("must staple", RFC 7633): who has stolen its key can use it only until it is
 * revoked.
 *
 * One that cannot be verified is as none: to refuse it would protect nobody, since who has stolen a
 * key need not staple anything, and would keep clients from a server whose authority has made a
 * mistake.
 */
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include "tls/openssl/session.h"

#define SKEW_S 300 /* of clocks */

enum verdict { NOTHING, GOOD, REVOKED };

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

/* By an authority of the chain, all of which are believed, or whom it has appointed for this. */
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

/* What was revoked stays so; what was good is so for a while. */
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
               : NOTHING;
}

static enum verdict read_verdict(SSL *ssl, const X509 *x509)
{
    const X509 *issuer = sk_X509_value(SSL_get0_verified_chain(ssl), 1);
    OCSP_BASICRESP *basic = issuer != NULL ? read_response(ssl) : NULL;
    enum verdict verdict = NOTHING;

    if (basic != NULL && is_signed(basic, ssl)) {
        verdict = verdict_by(basic, x509, issuer, EVP_sha1()); /* a name, not a signature */
        if (verdict == NOTHING)
            verdict = verdict_by(basic, x509, issuer, EVP_sha256());
    }
    OCSP_BASICRESP_free(basic);
    return verdict;
}

/* One whose demands cannot be read may demand it. */
static bool demands_response(const X509 *x509)
{
    int is_critical;
    TLS_FEATURE *features = X509_get_ext_d2i(x509, NID_tlsfeature, &is_critical, NULL);
    bool demands = features == NULL && is_critical != -1;

    for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++)
        demands |=
            ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == TLSEXT_TYPE_status_request;
    TLS_FEATURE_free(features);
    return demands;
}

enum { REFUSED = 0, ACCEPTED = 1 }; /* OpenSSL's */

static int on_response(SSL *ssl, void *unused)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);
    const X509 *x509 = SSL_get0_peer_certificate(ssl);
    enum verdict verdict;

    (void)unused;
    if (self->settings->verify != WEIR_TLS_VERIFY_REQUIRED || SSL_session_reused(ssl) != 0 ||
        x509 == NULL)
        return ACCEPTED;
    verdict = read_verdict(ssl, x509);
    if (verdict == REVOKED)
        weir__openssl_refuse(self, x509, X509_verify_cert_error_string(X509_V_ERR_CERT_REVOKED));
    else if (verdict == NOTHING && demands_response(x509))
        weir__openssl_refuse(self, x509, "it demands an OCSP response, and there is no good one");
    else
        verdict = GOOD;
    ERR_clear_error(); /* what there was to say has been */
    return verdict == GOOD ? ACCEPTED : REFUSED;
}

void weir__openssl_stapled_prepare(weir__tls_settings *settings)
{
    (void)SSL_CTX_set_tlsext_status_type(settings->ctx, TLSEXT_STATUSTYPE_ocsp);
    (void)SSL_CTX_set_tlsext_status_cb(settings->ctx, on_response);
}
