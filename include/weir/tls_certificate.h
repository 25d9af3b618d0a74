/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_certificate.h - a certificate: whose it is, and who says so.
 *
 * Counted; nothing in it changes. Texts are UTF-8 and lent for as long as the certificate is kept.
 */
#ifndef WEIR_TLS_CERTIFICATE_H
#define WEIR_TLS_CERTIFICATE_H

#include <weir/buf.h>
#include <weir/tls_context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The length of "sha256/BASE64", with its end. */
#define WEIR_TLS_PIN_SIZE 52

/*
 * Reads the first certificate of a text in PEM.
 * Thread: any.  Gives: certificate.  Fails: -ENOMEM, WEIR_ETLS (weir_tls_reason).
 */
WEIR_API int weir_tls_certificate_parse(const char *pem, weir_tls_certificate **ret_certificate);

/*
 * Keeps a certificate.
 * Thread: any.
 */
WEIR_API weir_tls_certificate *weir_tls_certificate_retain(weir_tls_certificate *certificate);

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: certificate.
 */
WEIR_API void weir_tls_certificate_release(weir_tls_certificate *certificate);

/*
 * Whose it is and who says so, as "CN=example.com,O=Example" (RFC 2253); its number in hex.
 * Thread: any.
 */
WEIR_API const char *weir_tls_certificate_subject(const weir_tls_certificate *certificate);
WEIR_API const char *weir_tls_certificate_issuer(const weir_tls_certificate *certificate);
WEIR_API const char *weir_tls_certificate_serial(const weir_tls_certificate *certificate);

/*
 * The names and addresses that it is for: the n-th, NULL if there are not so many.
 * Thread: any.
 */
WEIR_API const char *weir_tls_certificate_name(const weir_tls_certificate *certificate, size_t n);

/*
 * From when, and until when: seconds since 1970, UTC.
 * Thread: any.
 */
WEIR_API int64_t weir_tls_certificate_not_before(const weir_tls_certificate *certificate);
WEIR_API int64_t weir_tls_certificate_not_after(const weir_tls_certificate *certificate);

/*
 * "sha256/BASE64" of its public key: what weir_tls_context_options.pins has.
 * Thread: any.
 */
WEIR_API const char *weir_tls_certificate_pin(const weir_tls_certificate *certificate);

/*
 * All of it, in DER; and as text in PEM.
 * Thread: any.
 */
WEIR_API weir_span weir_tls_certificate_der(const weir_tls_certificate *certificate);
WEIR_API const char *weir_tls_certificate_pem(const weir_tls_certificate *certificate);

#ifdef __cplusplus
}
#endif

#endif
