/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the peer is trusted: by authorities, by its name, by its key.
 *
 * All of it is checked in OpenSSL's verify callback, so that a rejected peer gets the right alert.
 * Names are matched against the subject alternative names only (RFC 9525); a wildcard stands for a
 * whole label. We match them ourselves: OpenSSL, given the name by SSL_set1_host, forgets it when
 * it runs out of memory, and then trusts anybody.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <weir/address.h>
#include <weir/memory.h>

#include "tls/openssl/internal.h"

#define NAME_MAX_LENGTH 255

/* ---- names ---- */

/* Without the final dot of a full name, or the zone of an address. */
struct server_name {
    char text[NAME_MAX_LENGTH + 1];
    bool is_address;
};

static bool is_address(const char *text)
{
    char with_port[NAME_MAX_LENGTH + 8];
    weir_address address;

    (void)snprintf(with_port, sizeof(with_port), strchr(text, ':') != NULL ? "[%s]:0" : "%s:0",
                   text);
    return text[0] != '\0' && weir_address_parse(with_port, &address) == 0;
}

static bool is_name(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || strchr("/:@[]\"\x7f", *c) != NULL)
            return false;
    return text[0] != '\0' && text[0] != '.';
}

static int parse_server_name(const char *name, struct server_name *ret_name)
{
    size_t length = strnlen(name, sizeof(ret_name->text));

    if (length == 0 || length == sizeof(ret_name->text))
        return -EINVAL;
    memcpy(ret_name->text, name, length + 1);
    if (strchr(name, ':') != NULL)
        ret_name->text[strcspn(name, "%")] = '\0';
    else if (name[length - 1] == '.')
        ret_name->text[length - 1] = '\0';
    ret_name->is_address = is_address(ret_name->text);
    return ret_name->is_address || is_name(ret_name->text) ? 0 : -EINVAL;
}

int weir__openssl_verify_set_server_name(weir__openssl_session *session, const char *name)
{
    struct server_name parsed;
    size_t size;
    int err = parse_server_name(name, &parsed);

    if (err < 0)
        return err;
    size = strlen(parsed.text) + 1;
    session->server_name = weir_memory_alloc(size);
    if (session->server_name == NULL)
        return -ENOMEM;
    memcpy(session->server_name, parsed.text, size);
    session->is_address = parsed.is_address;
    if (!parsed.is_address && SSL_set_tlsext_host_name(session->ssl, parsed.text) != 1)
        return -ENOMEM;
    return 0;
}

/* ---- the callback ---- */

void weir__openssl_verify_reject(weir__openssl_session *session, const X509 *x509,
                                 const char *reason)
{
    char *subject = weir__openssl_certificate_name(X509_get_subject_name(x509));
    char text[WEIR__TLS_REASON_SIZE];
    size_t size;

    (void)snprintf(text, sizeof(text), "the peer's certificate is not trusted: %s (%s)", reason,
                   subject != NULL ? subject : "unknown subject");
    weir_memory_free(subject);
    size = strlen(text) + 1;
    weir_memory_free(session->rejection);
    session->rejection = weir_memory_alloc(size);
    if (session->rejection != NULL)
        memcpy(session->rejection, text, size);
}

static void reject(weir__openssl_session *session, X509_STORE_CTX *store, const char *reason)
{
    const X509 *x509 = X509_STORE_CTX_get_current_cert(store);

    weir__openssl_verify_reject(session, x509 != NULL ? x509 : X509_STORE_CTX_get0_cert(store),
                                reason);
}

static bool check_name(weir__openssl_session *session, X509_STORE_CTX *store)
{
    unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    X509 *x509 = X509_STORE_CTX_get0_cert(store);
    int error = session->is_address ? X509_V_ERR_IP_ADDRESS_MISMATCH : X509_V_ERR_HOSTNAME_MISMATCH;
    int result;

    if (session->server_name == NULL)
        return true;
    result = session->is_address ? X509_check_ip_asc(x509, session->server_name, 0)
                                 : X509_check_host(x509, session->server_name, 0, flags, NULL);
    if (result == 1)
        return true;
    X509_STORE_CTX_set_error(store, result == 0 ? error : X509_V_ERR_OUT_OF_MEM);
    X509_STORE_CTX_set_current_cert(store, x509);
    if (result == 0)
        reject(session, store, X509_verify_cert_error_string(error));
    return false;
}

static bool has_pin(const weir__openssl_context *context, const uint8_t *pin)
{
    for (size_t i = 0; i < context->pin_count; i++)
        if (memcmp(context->pins[i], pin, WEIR__OPENSSL_PIN_LENGTH) == 0)
            return true;
    return false;
}

static bool check_pins(weir__openssl_session *session, X509_STORE_CTX *store)
{
    uint8_t pin[WEIR__OPENSSL_PIN_LENGTH];

    if (weir__openssl_certificate_pin(X509_STORE_CTX_get0_cert(store), pin) < 0) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
        return false;
    }
    if (has_pin(session->context, pin))
        return true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED); /* the alert: bad certificate */
    X509_STORE_CTX_set_current_cert(store, X509_STORE_CTX_get0_cert(store));
    reject(session, store, "its key matches none of the pins");
    return false;
}

static bool check_chain(weir__openssl_session *session, X509_STORE_CTX *store)
{
    int error;

    if (X509_verify_cert(store) == 1)
        return true;
    error = X509_STORE_CTX_get_error(store);
    if (error != X509_V_ERR_OUT_OF_MEM)
        reject(session, store, X509_verify_cert_error_string(error));
    return false;
}

static int on_verify(X509_STORE_CTX *store, void *unused)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    weir__openssl_session *session = weir__openssl_session_of(ssl);
    const weir__openssl_context *context = session->context;
    bool by_chain =
        context->verify == WEIR_TLS_VERIFY_OPTIONAL || context->verify == WEIR_TLS_VERIFY_REQUIRED;
    bool by_pins = context->verify == WEIR_TLS_VERIFY_PINS || context->pin_count > 0;

    (void)unused;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    if (by_chain && !(check_chain(session, store) && check_name(session, store)))
        return 0;
    return !by_pins || check_pins(session, store) ? 1 : 0;
}

static int verify_mode(const weir__openssl_context *context)
{
    switch (context->verify) {
    case WEIR_TLS_VERIFY_OPTIONAL:
        return SSL_VERIFY_PEER;
    case WEIR_TLS_VERIFY_REQUIRED:
    case WEIR_TLS_VERIFY_PINS:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    default:
        return context->pin_count == 0 ? SSL_VERIFY_NONE
                                       : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
}

/* With anonymous ciphers, if the options allow them, OpenSSL does not call on_verify at all. */
bool weir__openssl_verify_has_certificate(const weir__openssl_session *session)
{
    return (SSL_get_verify_mode(session->ssl) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) == 0 ||
           SSL_get0_peer_certificate(session->ssl) != NULL;
}

void weir__openssl_verify_prepare(weir__openssl_context *context)
{
    SSL_CTX_set_verify(context->ctx, verify_mode(context), NULL);
    SSL_CTX_set_cert_verify_callback(context->ctx, on_verify, NULL);
}
