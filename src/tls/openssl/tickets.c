/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session tickets: the server's state of a session, encrypted, for the client to present again.
 * AES-256-CBC and HMAC-SHA256, as RFC 5077 recommends; OpenSSL assembles them.
 *
 * OpenSSL asks the SSL_CTX that a session began with, even if another was chosen since. So every
 * server's has the callback, which uses the keys of the session's current context.
 */
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "tls/openssl/internal.h"
#include "tls/tls_tickets.h"

int weir__openssl_random_bytes(uint8_t *ret_bytes, size_t length)
{
    int err = weir__openssl_start();

    if (err < 0)
        return err;
    if (RAND_priv_bytes(ret_bytes, (int)length) == 1)
        return 0;
    ERR_clear_error();
    return WEIR_ETLS;
}

static bool set_mac(EVP_MAC_CTX *mac, weir__tls_ticket_key *key)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->sign, sizeof(key->sign)),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

enum { FAILED = -1, NO_TICKET = 0, USED = 1, USED_AND_RENEWED = 2 }; /* OpenSSL's */

static int seal(const weir__openssl_context *context, unsigned char *name, unsigned char *iv,
                EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    weir__tls_ticket_key key;
    bool is_ok;

    if (context->tickets == NULL || weir__tls_tickets_first(context->tickets, &key) < 0)
        return FAILED;
    memcpy(name, key.name, sizeof(key.name));
    is_ok = RAND_bytes(iv, EVP_CIPHER_get_iv_length(context->ticket_cipher)) == 1 &&
            EVP_EncryptInit_ex(cipher, context->ticket_cipher, NULL, key.encrypt, iv) == 1 &&
            set_mac(mac, &key);
    explicit_bzero(&key, sizeof(key));
    return is_ok ? USED : FAILED;
}

/* A ticket of TLS 1.3 is used once: its client gets another. */
static int open_ticket(const SSL *ssl, const weir__openssl_context *context, unsigned char *name,
                       unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    weir__tls_ticket_key key;
    bool is_first, is_ok;

    if (context->tickets == NULL ||
        !weir__tls_tickets_find(context->tickets, name, &key, &is_first))
        return NO_TICKET;
    is_ok = EVP_DecryptInit_ex(cipher, context->ticket_cipher, NULL, key.encrypt, iv) == 1 &&
            set_mac(mac, &key);
    explicit_bzero(&key, sizeof(key));
    if (!is_ok)
        return FAILED;
    return is_first && SSL_version(ssl) < TLS1_3_VERSION ? USED : USED_AND_RENEWED;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_new)
{
    const weir__openssl_context *context = weir__openssl_session_of(ssl)->context;

    return is_new ? seal(context, name, iv, cipher, mac)
                  : open_ticket(ssl, context, name, iv, cipher, mac);
}

/* ---- contents ---- */

static int on_sealing(SSL *ssl, void *unused)
{
    (void)unused;
    return weir__openssl_resumption_stamp(SSL_get_session(ssl)) ? 1 : 0;
}

static SSL_TICKET_RETURN on_opened(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                   size_t name_length, SSL_TICKET_STATUS status, void *unused)
{
    (void)name;
    (void)name_length;
    (void)unused;
    if (status == SSL_TICKET_SUCCESS && weir__openssl_resumption_is_allowed(ssl, session))
        return SSL_TICKET_RETURN_USE;
    if (status == SSL_TICKET_SUCCESS_RENEW && weir__openssl_resumption_is_allowed(ssl, session))
        return SSL_TICKET_RETURN_USE_RENEW;
    return SSL_TICKET_RETURN_IGNORE_RENEW;
}

int weir__openssl_tickets_prepare(weir__openssl_builder *builder)
{
    weir__openssl_context *context = builder->context;

    (void)SSL_CTX_set_session_cache_mode(context->ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_tlsext_ticket_key_evp_cb(context->ctx, on_ticket);
    (void)SSL_CTX_set_session_ticket_cb(context->ctx, on_sealing, on_opened, NULL);
    if (builder->options->tickets == NULL)
        return 0;
    context->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    if (context->ticket_cipher == NULL)
        return weir__openssl_builder_error(builder, "tickets");
    context->tickets = weir_tls_tickets_retain(builder->options->tickets);
    return 0;
}
