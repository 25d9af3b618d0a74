/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_certificate.h"

#include <string.h>

#include <weir/buf.h>
#include <weir/memory.h>

#include "tls/openssl/openssl.h"
#include "tls/tls_reason.h"

weir_tls_certificate *weir__tls_certificate_create(void)
{
    weir_tls_certificate *certificate = weir_memory_alloc(sizeof(*certificate));

    if (certificate == NULL)
        return NULL;
    memset(certificate, 0, sizeof(*certificate));
    weir__refs_init(&certificate->refs);
    return certificate;
}

int weir_tls_certificate_parse(const char *pem, weir_tls_certificate **ret_certificate)
{
    char reason[WEIR__TLS_REASON_SIZE];
    int err = weir__openssl_certificate_parse(pem, reason, ret_certificate);

    if (err < 0)
        weir__tls_set_reason(reason);
    return err;
}

weir_tls_certificate *weir_tls_certificate_retain(weir_tls_certificate *certificate)
{
    weir__refs_retain(&certificate->refs);
    return certificate;
}

void weir_tls_certificate_release(weir_tls_certificate *certificate)
{
    if (certificate == NULL || !weir__refs_release(&certificate->refs))
        return;
    weir_memory_free(certificate->subject);
    weir_memory_free(certificate->issuer);
    weir_memory_free(certificate->serial);
    for (size_t i = 0; i < certificate->name_count; i++)
        weir_memory_free(certificate->names[i]);
    weir_memory_free(certificate->names);
    weir_memory_free(certificate->der);
    weir_memory_free(certificate->pem);
    weir_memory_free(certificate);
}

const char *weir_tls_certificate_subject(const weir_tls_certificate *certificate)
{
    return certificate->subject;
}

const char *weir_tls_certificate_issuer(const weir_tls_certificate *certificate)
{
    return certificate->issuer;
}

const char *weir_tls_certificate_serial(const weir_tls_certificate *certificate)
{
    return certificate->serial;
}

const char *weir_tls_certificate_name(const weir_tls_certificate *certificate, size_t n)
{
    return n < certificate->name_count ? certificate->names[n] : NULL;
}

int64_t weir_tls_certificate_not_before(const weir_tls_certificate *certificate)
{
    return certificate->not_before;
}

int64_t weir_tls_certificate_not_after(const weir_tls_certificate *certificate)
{
    return certificate->not_after;
}

const char *weir_tls_certificate_pin(const weir_tls_certificate *certificate)
{
    return certificate->pin;
}

weir_span weir_tls_certificate_der(const weir_tls_certificate *certificate)
{
    return weir_span_of(certificate->der, certificate->der_length);
}

const char *weir_tls_certificate_pem(const weir_tls_certificate *certificate)
{
    return certificate->pem;
}
