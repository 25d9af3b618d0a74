/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the peer is believed: by authorities, by its name, by its key.
 *
 * All of it is decided in the one step of the handshake in which OpenSSL asks, so that a peer that
 * is refused hears why. Names are looked for among the alternative names alone (RFC 9525); a
 * wildcard stands for a whole label. We look for them ourselves: OpenSSL, told whom to expect
 * (SSL_set1_host), forgets it where it runs out of memory, and believes anybody.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <weir/address.h>
#include <weir/memory.h>

#include "tls/openssl/session.h"

#define NAME_MAX_LENGTH 255

/* ---- names ---- */

/* What is asked for: without the dot that ends a full name, or the zone of an address. */
struct wanted {
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

static int read_wanted(const char *name, struct wanted *ret_wanted)
{
    size_t length = strnlen(name, sizeof(ret_wanted->text));

    if (length == 0 || length == sizeof(ret_wanted->text))
        return -EINVAL;
    memcpy(ret_wanted->text, name, length + 1);
    if (strchr(name, ':') != NULL)
        ret_wanted->text[strcspn(name, "%")] = '\0';
    else if (name[length - 1] == '.')
        ret_wanted->text[length - 1] = '\0';
    ret_wanted->is_address = is_address(ret_wanted->text);
    return ret_wanted->is_address || is_name(ret_wanted->text) ? 0 : -EINVAL;
}

int weir__openssl_verify_server(weir__openssl_session *session, const char *name)
{
    struct wanted wanted;
    size_t size;
    int err = read_wanted(name, &wanted);

    if (err < 0)
        return err;
    size = strlen(wanted.text) + 1;
    session->wanted = weir_memory_alloc(size);
    if (session->wanted == NULL)
        return -ENOMEM;
    memcpy(session->wanted, wanted.text, size);
    session->wants_address = wanted.is_address;
    if (!wanted.is_address && SSL_set_tlsext_host_name(session->ssl, wanted.text) != 1)
        return -ENOMEM;
    return 0;
}

/* ---- the step ---- */

void weir__openssl_refuse(weir__openssl_session *session, const X509 *x509, const char *words)
{
    char *subject = weir__openssl_name_text(X509_get_subject_name(x509));
    char text[WEIR__TLS_REASON_SIZE];
    size_t size;

    (void)snprintf(text, sizeof(text), "the peer's certificate was refused: %s (%s)", words,
                   subject != NULL ? subject : "whose, there is no memory to say");
    weir_memory_free(subject);
    size = strlen(text) + 1;
    weir_memory_free(session->refusal);
    session->refusal = weir_memory_alloc(size);
    if (session->refusal != NULL)
        memcpy(session->refusal, text, size);
}

static void refuse(weir__openssl_session *session, X509_STORE_CTX *store, const char *words)
{
    const X509 *x509 = X509_STORE_CTX_get_current_cert(store);

    weir__openssl_refuse(session, x509 != NULL ? x509 : X509_STORE_CTX_get0_cert(store), words);
}

static bool check_name(weir__openssl_session *session, X509_STORE_CTX *store)
{
    unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    X509 *x509 = X509_STORE_CTX_get0_cert(store);
    int error =
        session->wants_address ? X509_V_ERR_IP_ADDRESS_MISMATCH : X509_V_ERR_HOSTNAME_MISMATCH;
    int result;

    if (session->wanted == NULL)
        return true;
    result = session->wants_address ? X509_check_ip_asc(x509, session->wanted, 0)
                                    : X509_check_host(x509, session->wanted, 0, flags, NULL);
    if (result == 1)
        return true;
    X509_STORE_CTX_set_error(store, result == 0 ? error : X509_V_ERR_OUT_OF_MEM);
    X509_STORE_CTX_set_current_cert(store, x509);
    if (result == 0)
        refuse(session, store, X509_verify_cert_error_string(error));
    return false;
}

static bool has_pin(const weir__tls_settings *settings, const uint8_t *pin)
{
    for (size_t i = 0; i < settings->pin_count; i++)
        if (memcmp(settings->pins[i], pin, WEIR__OPENSSL_PIN_LENGTH) == 0)
            return true;
    return false;
}

static bool check_pins(weir__openssl_session *session, X509_STORE_CTX *store)
{
    uint8_t pin[WEIR__OPENSSL_PIN_LENGTH];

    if (weir__openssl_pin(X509_STORE_CTX_get0_cert(store), pin) < 0) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
        return false;
    }
    if (has_pin(session->settings, pin))
        return true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED); /* the alert: bad certificate */
    X509_STORE_CTX_set_current_cert(store, X509_STORE_CTX_get0_cert(store));
    refuse(session, store, "its key has none of the pins");
    return false;
}

static bool check_chain(weir__openssl_session *session, X509_STORE_CTX *store)
{
    int error;

    if (X509_verify_cert(store) == 1)
        return true;
    error = X509_STORE_CTX_get_error(store);
    if (error != X509_V_ERR_OUT_OF_MEM)
        refuse(session, store, X509_verify_cert_error_string(error));
    return false;
}

static int on_verify(X509_STORE_CTX *store, void *unused)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    weir__openssl_session *session = weir__openssl_session_of(ssl);
    const weir__tls_settings *settings = session->settings;
    bool by_chain = settings->verify == WEIR_TLS_VERIFY_OPTIONAL ||
                    settings->verify == WEIR_TLS_VERIFY_REQUIRED;
    bool by_pins = settings->verify == WEIR_TLS_VERIFY_PINS || settings->pin_count > 0;

    (void)unused;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    if (by_chain && !(check_chain(session, store) && check_name(session, store)))
        return 0;
    return !by_pins || check_pins(session, store) ? 1 : 0;
}

static int verify_mode(const weir__tls_settings *settings)
{
    switch (settings->verify) {
    case WEIR_TLS_VERIFY_OPTIONAL:
        return SSL_VERIFY_PEER;
    case WEIR_TLS_VERIFY_REQUIRED:
    case WEIR_TLS_VERIFY_PINS:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    default:
        return settings->pin_count == 0 ? SSL_VERIFY_NONE
                                        : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
}

/* Ciphers that do without one can be asked for: then OpenSSL does not ask us at all. */
bool weir__openssl_verify_has_peer(const weir__openssl_session *session)
{
    return (SSL_get_verify_mode(session->ssl) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) == 0 ||
           SSL_get0_peer_certificate(session->ssl) != NULL;
}

void weir__openssl_verify_prepare(weir__tls_settings *settings)
{
    SSL_CTX_set_verify(settings->ctx, verify_mode(settings), NULL);
    SSL_CTX_set_cert_verify_callback(settings->ctx, on_verify, NULL);
}
