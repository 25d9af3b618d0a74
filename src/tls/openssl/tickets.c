/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session tickets: what a server would have to remember of a session, encrypted, for the client to
 * bring along. AES-256-CBC and HMAC-SHA256, as RFC 5077 recommends; OpenSSL puts them together.
 *
 * OpenSSL asks the SSL_CTX that a session began with, also if another was chosen since. So each
 * server's has the callback, and looks at the session for whose keys are to be used.
 */
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "tls/openssl/session.h"
#include "tls/tls_tickets.h"

int weir__openssl_random(uint8_t *bytes, size_t length)
{
    int err = weir__openssl_start();

    if (err < 0)
        return err;
    if (RAND_priv_bytes(bytes, (int)length) == 1)
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

static int seal(const weir__tls_settings *settings, unsigned char *name, unsigned char *iv,
                EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    weir__tls_ticket_key key;
    bool is_ok;

    if (settings->tickets == NULL || weir__tls_tickets_first(settings->tickets, &key) < 0)
        return FAILED;
    memcpy(name, key.name, sizeof(key.name));
    is_ok = RAND_bytes(iv, EVP_CIPHER_get_iv_length(settings->ticket_cipher)) == 1 &&
            EVP_EncryptInit_ex(cipher, settings->ticket_cipher, NULL, key.encrypt, iv) == 1 &&
            set_mac(mac, &key);
    explicit_bzero(&key, sizeof(key));
    return is_ok ? USED : FAILED;
}

/* A ticket of TLS 1.3 is used once: its bearer gets another. */
static int open_ticket(const SSL *ssl, const weir__tls_settings *settings, unsigned char *name,
                       unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    weir__tls_ticket_key key;
    bool is_first, is_ok;

    if (settings->tickets == NULL ||
        !weir__tls_tickets_find(settings->tickets, name, &key, &is_first))
        return NO_TICKET;
    is_ok = EVP_DecryptInit_ex(cipher, settings->ticket_cipher, NULL, key.encrypt, iv) == 1 &&
            set_mac(mac, &key);
    explicit_bzero(&key, sizeof(key));
    if (!is_ok)
        return FAILED;
    return is_first && SSL_version(ssl) < TLS1_3_VERSION ? USED : USED_AND_RENEWED;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_new)
{
    const weir__tls_settings *settings = weir__openssl_session_of(ssl)->settings;

    return is_new ? seal(settings, name, iv, cipher, mac)
                  : open_ticket(ssl, settings, name, iv, cipher, mac);
}

/* ---- what is in them ---- */

static int on_sealing(SSL *ssl, void *unused)
{
    (void)unused;
    return weir__openssl_age_begin(SSL_get_session(ssl)) ? 1 : 0;
}

/* A session is good for so long as the settings say that were chosen, and for the name that it was
 * made for: another one may stand for another server here (RFC 6066, 3). */
bool weir__openssl_can_resume(SSL *ssl, SSL_SESSION *session)
{
    const weir__tls_settings *settings = weir__openssl_session_of(ssl)->settings;
    const char *name = SSL_SESSION_get0_hostname(session);

    return !weir__openssl_age_exceeds(session, SSL_CTX_get_timeout(settings->ctx)) &&
           weir__openssl_hello_asks_for(ssl, name != NULL ? name : "");
}

static SSL_TICKET_RETURN on_opened(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                   size_t name_length, SSL_TICKET_STATUS status, void *unused)
{
    (void)name;
    (void)name_length;
    (void)unused;
    if (status == SSL_TICKET_SUCCESS && weir__openssl_can_resume(ssl, session))
        return SSL_TICKET_RETURN_USE;
    if (status == SSL_TICKET_SUCCESS_RENEW && weir__openssl_can_resume(ssl, session))
        return SSL_TICKET_RETURN_USE_RENEW;
    return SSL_TICKET_RETURN_IGNORE_RENEW;
}

int weir__openssl_tickets_prepare(weir__openssl_making *making)
{
    weir__tls_settings *settings = making->settings;

    (void)SSL_CTX_set_session_cache_mode(settings->ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_tlsext_ticket_key_evp_cb(settings->ctx, on_ticket);
    (void)SSL_CTX_set_session_ticket_cb(settings->ctx, on_sealing, on_opened, NULL);
    if (making->options->tickets == NULL)
        return 0;
    settings->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    if (settings->ticket_cipher == NULL)
        return weir__openssl_making_error(making, "tickets");
    settings->tickets = weir_tls_tickets_retain(making->options->tickets);
    return 0;
}
