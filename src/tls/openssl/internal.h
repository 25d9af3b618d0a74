/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of tls/openssl/ share.
 *
 *      session.c         a session: bytes in, bytes out
 *      bio.c             how OpenSSL reads and writes them
 *      client_hello.c    a server that pauses at the hello until its context is chosen
 *      verify.c          whether the peer is trusted
 *      error.c           errors as text
 *      certificate.c     X509 as a weir_tls_certificate
 *      context.c         options to SSL_CTX, with the parts that follow
 *      credentials.c     our own certificate and key
 *      self_signed.c     the same, generated
 *      trust.c           trusted authorities and pins
 *      alpn.c            which protocols a client offers, and which one a server selects
 *      ocsp.c            stapled OCSP responses: a server's own, and a client's check
 *      tickets.c         session tickets of a server
 *      resumption.c      which sessions may be resumed, and for how long
 *      session_cache.c   where a client, and a server by id, keeps them
 *      key_log.c         secrets for Wireshark
 *
 * OpenSSL's error queue belongs to the thread: it is empty before each call whose errors are read,
 * and reading empties it. Reads and writes of established sessions are the exception, because it
 * takes longer to look at the queue than to seal a short record: there the last error counts.
 */
#ifndef WEIR_TLS_OPENSSL_INTERNAL_H
#define WEIR_TLS_OPENSSL_INTERNAL_H

#include <openssl/ssl.h>

#include <weir/tls_context.h>

#include "base/refcount.h"
#include "tls/openssl/openssl.h"

typedef struct weir__openssl_session_cache weir__openssl_session_cache;

#define WEIR__OPENSSL_PIN_LENGTH 32 /* SHA-256 of a SubjectPublicKeyInfo */

/*
 * What many sessions share; immutable once built. Sessions read the first part; the rest belongs to
 * context.c and its parts.
 *
 * A server's session may begin with one context and continue with another (client_hello.c), but
 * OpenSSL asks the first SSL_CTX about tickets and lifetimes. So every SSL_CTX has the same
 * callbacks, and these use weir__openssl_session_of(ssl)->context. Contexts that trust different
 * peers have different session id contexts: a client verified by one is not resumed by the other.
 */
struct weir__openssl_context {
    weir__refs refs;
    SSL_CTX *ctx;
    bool is_server;
    enum weir_tls_verify verify; /* never DEFAULT */
    uint8_t (*pins)[WEIR__OPENSSL_PIN_LENGTH];
    size_t pin_count;
    char *groups; /* as in the options, NULL = OpenSSL's; an SSL_CTX cannot be asked for its own */

    uint8_t *alpn; /* in wire format; NULL = none */
    size_t alpn_length;
    uint8_t *staple; /* OpenSSL's memory */
    int staple_length;
    weir_tls_tickets *tickets; /* server; NULL = no resumption */
    EVP_CIPHER *ticket_cipher;
    weir__openssl_session_cache *sessions; /* client; server, by id. NULL = none */
    int key_log;                           /* a descriptor, or -1 */
};

/* A context being built: from which options, and where the reason of a failure is written. */
typedef struct weir__openssl_builder {
    const weir_tls_context_options *options;
    weir__openssl_context *context;
    char *reason; /* of WEIR__TLS_REASON_SIZE */
} weir__openssl_builder;

#define WEIR__OPENSSL_NO_ALERT (-1)

/*
 * What a peer may send after the handshake without sending data: each record costs 1, a handshake
 * message (key update, ticket, renegotiation) 16 in all, and a record with data earns 2. So 32 key
 * updates in a row are accepted, and one for every 8 records of data.
 */
#define WEIR__OPENSSL_DATALESS_MAX 512
#define WEIR__OPENSSL_MESSAGE_COST 16
#define WEIR__OPENSSL_DATA_CREDIT 2

/* ---- session.c ---- */

/* Initializes OpenSSL; before any other call of it. Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_start(void);

/* The session a callback of OpenSSL is about. */
weir__openssl_session *weir__openssl_session_of(const SSL *ssl);

/* Prepares an SSL_CTX for sessions, when everything else in `context` is set. */
void weir__openssl_session_prepare(weir__openssl_context *context);

/* ---- bio.c ---- */

/* A BIO that reads from and writes to the session's `io`. NULL if there is no memory. */
BIO *weir__openssl_bio_create(weir__openssl_session *session);

/* ---- client_hello.c ---- */

/* Makes the sessions of a server's SSL_CTX look at the hello. */
void weir__openssl_client_hello_prepare(weir__openssl_context *context);

/* In the callbacks of a hello: true if it asks for this name, "" = for none. */
bool weir__openssl_client_hello_has_name(SSL *ssl, const char *name);

/* ---- alpn.c ---- */

/* Makes a client's session offer its own protocols, unless the context has some. Fails: -ENOMEM,
 * WEIR_ETLS. */
int weir__openssl_alpn_offer(weir__openssl_session *session);

/* ---- verify.c ---- */

/* Sets how the sessions of an SSL_CTX verify their peers. */
void weir__openssl_verify_prepare(weir__openssl_context *context);

/* The server name of a client: verified, and sent unless it is an address. Fails: -ENOMEM, -EINVAL.
 */
int weir__openssl_verify_set_server_name(weir__openssl_session *session, const char *name);

/* Records why this certificate of the peer's chain is not trusted. */
void weir__openssl_verify_reject(weir__openssl_session *session, const X509 *x509,
                                 const char *reason);

/* After the handshake: false if the peer had to send a certificate and sent none. */
bool weir__openssl_verify_has_certificate(const weir__openssl_session *session);

/* ---- error.c ---- */

/* Takes the error of a failed call from the queue, and empties it: -ENOMEM or WEIR_ETLS, and its
 * text. */
int weir__openssl_error_take(char ret_text[WEIR__TLS_REASON_SIZE]);

/* The same for a session: sets its `failed` and `reason`, and returns the error. */
int weir__openssl_session_fail_by_queue(weir__openssl_session *session);

/* Sets both from an error of our own. */
int weir__openssl_session_fail(weir__openssl_session *session, int err, const char *format, ...)
    WEIR_PRINTF(3, 4);

void weir__openssl_error_on_info(const SSL *ssl, int where, int value);

/* True if OpenSSL found no more objects of the wanted kind in a PEM; clears that error. */
bool weir__openssl_error_is_end_of_pem(void);

/* True if the pending error was caused by a lack of memory. */
bool weir__openssl_error_is_out_of_memory(void);

/* ---- certificate.c ---- */

/* Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_certificate_create(X509 *x509, weir_tls_certificate **ret_certificate);

/* The text of a name (RFC 2253), allocated. NULL if there is no memory. */
char *weir__openssl_certificate_name(const X509_NAME *name);

/* Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_certificate_pin(X509 *x509, uint8_t ret_pin[WEIR__OPENSSL_PIN_LENGTH]);

/* ---- context.c ---- */

/* Sets the reason why a context cannot be built, and returns `err`. */
int weir__openssl_builder_fail(weir__openssl_builder *builder, int err, const char *format, ...)
    WEIR_PRINTF(3, 4);

/* The same with OpenSSL's error about `what`: -ENOMEM or WEIR_ETLS. */
int weir__openssl_builder_error(weir__openssl_builder *builder, const char *what);

/* Opens a file, or else a text, for reading. Fails with -errno, -ENOMEM. */
int weir__openssl_builder_open(weir__openssl_builder *builder, const char *file, const char *text,
                               BIO **ret_bio);

/* Each applies its part of the options; on failure it sets the reason. */
int weir__openssl_credentials_prepare(weir__openssl_builder *builder);
int weir__openssl_trust_prepare(weir__openssl_builder *builder);
int weir__openssl_alpn_prepare(weir__openssl_builder *builder);
int weir__openssl_ocsp_prepare(weir__openssl_builder *builder);
int weir__openssl_tickets_prepare(weir__openssl_builder *builder);
int weir__openssl_resumption_prepare(weir__openssl_builder *builder);
int weir__openssl_key_log_prepare(weir__openssl_builder *builder);

void weir__openssl_key_log_close(int file);

/* ---- self_signed.c ---- */

int weir__openssl_self_signed_create(weir__openssl_builder *builder, X509 **ret_x509,
                                     EVP_PKEY **ret_key);

/* ---- resumption.c ---- */

/* When the session was made, in seconds. OpenSSL 3.4 deprecates the first function. */
static inline int64_t weir__openssl_session_time(const SSL_SESSION *session)
{
#if OPENSSL_VERSION_NUMBER < 0x30300000L
    return SSL_SESSION_get_time(session);
#else
    return SSL_SESSION_get_time_ex(session);
#endif
}

/* Notes in the session that its peer has been verified now, unless it says already when. False if
 * there is no memory. */
bool weir__openssl_resumption_stamp(SSL_SESSION *session);

/* True if that was `lifetime_s` ago, or longer. */
bool weir__openssl_resumption_is_expired(SSL_SESSION *session, int64_t lifetime_s);

/* True if a server may resume this session for the client whose hello has arrived. */
bool weir__openssl_resumption_is_allowed(SSL *ssl, SSL_SESSION *session);

/* Makes a client's session resume a cached one, if there is one. */
void weir__openssl_resumption_begin(weir__openssl_session *session);

/* After the handshake: caches a resumed session that was renewed. */
void weir__openssl_resumption_store_renewed(weir__openssl_session *session);

/* ---- session_cache.c ---- */

/* NULL if there is no memory. */
weir__openssl_session_cache *weir__openssl_session_cache_create(size_t capacity);
weir__openssl_session_cache *weir__openssl_session_cache_retain(weir__openssl_session_cache *cache);
void weir__openssl_session_cache_release(weir__openssl_session_cache *cache); /* NULL is ignored */

/* The number of sessions, and the most there can be. */
size_t weir__openssl_session_cache_count(weir__openssl_session_cache *cache);
size_t weir__openssl_session_cache_capacity(const weir__openssl_session_cache *cache);

/* Takes the session, unless it returns false. */
bool weir__openssl_session_cache_add(weir__openssl_session_cache *cache, const char *key,
                                     SSL_SESSION *session);

/* A usable session of `key`, for the caller to free; NULL if there is none. */
SSL_SESSION *weir__openssl_session_cache_take(weir__openssl_session_cache *cache, const char *key);

#endif
