/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS by OpenSSL 3: what the files of this engine know of each other. Nobody else includes this,
 * or a header of OpenSSL's.
 *
 *      openssl.c               a session: bytes in, bytes out
 *      openssl_bio.c           how OpenSSL gets at these bytes
 *      openssl_choice.c        a server that asks first which settings a client gets
 *      openssl_verify.c        whether the peer is believed
 *      openssl_error.c         what went wrong, in words
 *      openssl_certificate.c   X509 as data
 *      openssl_settings.c      options to SSL_CTX, with what follows
 *      openssl_identity.c      who we are: certificate and key
 *      openssl_self_signed.c   the same, made here
 *      openssl_trust.c         whom we believe: authorities and pins
 *      openssl_alpn.c          which protocol a server takes
 *      openssl_staple.c        an OCSP response that a server has with it
 *      openssl_stapled.c       and what it says, to a client
 *      openssl_tickets.c       sessions that are taken up again, by a server
 *      openssl_session_ids.c   the same without tickets: the server remembers them
 *      openssl_sessions.c      and by a client
 *      openssl_age.c           for how long
 *
 * OpenSSL's queue of errors belongs to the thread: it is empty before each call whose errors are
 * read, and emptied by reading it.
 */
#ifndef WEIR_TLS_OPENSSL_SESSION_H
#define WEIR_TLS_OPENSSL_SESSION_H

#include <openssl/ssl.h>

#include <weir/tls_context.h>

#include "base/refcount.h"
#include "tls/engine.h"

typedef struct weir__openssl_sessions weir__openssl_sessions;

#define WEIR__OPENSSL_PIN_LENGTH 32 /* SHA-256 of a SubjectPublicKeyInfo */

/*
 * What many sessions share. Nothing changes once it is made. The first part is what sessions look
 * at; what follows belongs to openssl_settings.c and what it is made of.
 *
 * A server's session may begin with one and go on with another (openssl_choice.c), but OpenSSL
 * stays with the first SSL_CTX where tickets and lifetimes are concerned. So each has the same
 * callbacks, and these look for weir__openssl_session_of(ssl)->settings. Those that believe other
 * peers have another session id context: who has shown its certificate to the one is not taken for
 * known by the other.
 */
struct weir__tls_settings {
    weir__refs refs;
    SSL_CTX *ctx;
    bool is_server;
    enum weir_tls_verify verify; /* never DEFAULT */
    uint8_t (*pins)[WEIR__OPENSSL_PIN_LENGTH];
    size_t pin_count;
    char *groups; /* as the options have them, NULL: OpenSSL's; a SSL_CTX does not tell its own */

    uint8_t *alpn; /* as TLS writes it; NULL: none */
    size_t alpn_length;
    uint8_t *staple; /* OpenSSL's memory */
    int staple_length;
    weir_tls_tickets *tickets; /* of a server; NULL: no resumption */
    EVP_CIPHER *ticket_cipher;
    weir__openssl_sessions *sessions; /* of a client; of a server, by id. NULL: none */
    int key_log;                      /* a descriptor, or -1 */
};

/* Settings that are being made: of what, and where the reason goes if that fails. */
typedef struct weir__openssl_making {
    const weir_tls_context_options *options;
    weir__tls_settings *settings;
    char *reason; /* of WEIR__TLS_REASON_SIZE */
} weir__openssl_making;

/* Where a server's session stands whose client is to be asked whom it wants. */
enum weir__openssl_choice {
    WEIR__OPENSSL_CHOICE_NONE, /* nobody asks, or it has been made */
    WEIR__OPENSSL_CHOICE_ASKS,
    WEIR__OPENSSL_CHOICE_WAITS,
    WEIR__OPENSSL_CHOICE_REFUSED,
};

/* The first bytes of the peer's that are remembered, to tell what it speaks if not TLS. */
#define WEIR__OPENSSL_FIRST_MAX 5

#define WEIR__OPENSSL_NO_ALERT (-1)

/*
 * What a peer may send after the handshake without sending data: each record costs 1, a message of
 * the handshake (new keys, a ticket, the demand for another handshake) 16 in all, and a record with
 * data brings back 2. So 32 new keys in a row are accepted, and one for every 8 records of data.
 */
#define WEIR__OPENSSL_USELESS_MAX 512
#define WEIR__OPENSSL_MESSAGE_COST 16
#define WEIR__OPENSSL_DATA_CREDIT 2

typedef struct weir__openssl_session {
    weir__tls_session session;
    weir__tls_settings *settings;
    SSL *ssl;
    weir__tls_io *io;     /* of the call that is being made */
    char *cache_key;      /* of a client, or NULL */
    char *wanted;         /* of a client, until the handshake is over: who it must be, or NULL */
    char *words;          /* what session.reason points to, if it was allocated */
    char *refusal;        /* why the peer's certificate is not believed */
    weir__tls_wish *wish; /* of a server that asks, until the handshake is over */
    int failed;           /* the error; what every call returns from then on */
    int io_err;           /* our own, in passing bytes on */
    int16_t alert_sent;   /* a fatal one, or NO_ALERT */
    uint32_t useless;     /* what the peer has sent without data, see USELESS_MAX */
    enum weir__openssl_choice choice;
    uint8_t first[WEIR__OPENSSL_FIRST_MAX];
    uint8_t first_length;
    bool wants_address; /* not a name */
    bool is_over;       /* the handshake */
    bool is_ended;      /* by us */
    bool is_between;    /* records: OpenSSL has nothing of the next one */
    bool is_refusing;   /* OpenSSL is made to send an alert */
} weir__openssl_session;

/* ---- openssl.c ---- */

/* Makes OpenSSL ready; call it before anything else of OpenSSL's. Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_start(void);

/* The session that a callback of OpenSSL's is about. */
weir__openssl_session *weir__openssl_session_of(const SSL *ssl);

/* What every SSL_CTX needs that sessions are to be made of; when all else in `settings` is set. */
void weir__openssl_prepare(weir__tls_settings *settings);

/* ---- openssl_bio.c ---- */

/* A BIO that reads from and writes to the session's `io`. NULL if there is no memory. */
BIO *weir__openssl_bio_create(weir__openssl_session *session);

/* ---- openssl_choice.c ---- */

/* Makes the sessions of a server's SSL_CTX look at what clients want. */
void weir__openssl_choice_prepare(weir__tls_settings *settings);

const weir__tls_wish *weir__openssl_wish(weir__tls_session *session);
void weir__openssl_choose(weir__tls_session *session, weir__tls_settings *settings);

/* While a hello is being looked at: whether it asks for this name, "" for none. */
bool weir__openssl_hello_asks_for(SSL *ssl, const char *name);

/* ---- openssl_verify.c ---- */

/* Whom the sessions of a SSL_CTX believe. */
void weir__openssl_verify_prepare(weir__tls_settings *settings);

/* Whom a client asks for, if it is a name, and whom alone it believes. Fails: -ENOMEM, -EINVAL. */
int weir__openssl_verify_server(weir__openssl_session *session, const char *name);

/* Says why this certificate, of the peer's chain, is not believed. */
void weir__openssl_refuse(weir__openssl_session *session, const X509 *x509, const char *words);

/* The handshake is over: whether the peer has shown a certificate, where it must. */
bool weir__openssl_verify_has_peer(const weir__openssl_session *session);

/* ---- openssl_error.c ---- */

/* What OpenSSL has to say of a call that has failed, whose errors are forgotten then: -ENOMEM or
 * WEIR_ETLS, and words. */
int weir__openssl_error(char ret_words[WEIR__TLS_REASON_SIZE]);

/* The same of a session: sets its `failed` and `reason`, and returns the error. */
int weir__openssl_session_error(weir__openssl_session *session);

/* Sets both from what we ourselves know. */
int weir__openssl_session_fail(weir__openssl_session *session, int err, const char *format, ...)
    WEIR_PRINTF(3, 4);

void weir__openssl_on_info(const SSL *ssl, int where, int value);

/* ---- openssl_certificate.c ---- */

/* Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_certificate_create(X509 *x509, weir_tls_certificate **ret_certificate);
int weir__openssl_certificate_parse(const char *pem, char reason[WEIR__TLS_REASON_SIZE],
                                    weir_tls_certificate **ret_certificate);

/* Whose it is, as certificates say it; allocated. NULL if there is no memory. */
char *weir__openssl_name_text(const X509_NAME *name);

/* Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_pin(X509 *x509, uint8_t ret_pin[WEIR__OPENSSL_PIN_LENGTH]);

/* ---- openssl_settings.c ---- */

int weir__openssl_settings_create(const weir_tls_context_options *options, bool is_server,
                                  char reason[WEIR__TLS_REASON_SIZE],
                                  weir__tls_settings **ret_settings);
weir__tls_settings *weir__openssl_settings_retain(weir__tls_settings *settings);
void weir__openssl_settings_release(weir__tls_settings *settings);
weir_tls_certificate *weir__openssl_settings_certificate(weir__tls_settings *settings);

/* Says why settings cannot be made, and returns `err`. */
int weir__openssl_making_fail(weir__openssl_making *making, int err, const char *format, ...)
    WEIR_PRINTF(3, 4);

/* The same by what OpenSSL has to say of `what`: -ENOMEM or WEIR_ETLS. */
int weir__openssl_making_error(weir__openssl_making *making, const char *what);

/* A file, or else a text, to be read. Fails with -errno, -ENOMEM. */
int weir__openssl_making_open(weir__openssl_making *making, const char *file, const char *text,
                              BIO **ret_bio);

/* Whether OpenSSL has found no more of what it looked for in a PEM. That is forgotten then. */
bool weir__openssl_is_end_of_pem(void);

/* Whether a lack of memory was the cause of what OpenSSL has failed in. */
bool weir__openssl_is_out_of_memory(void);

/* Each does its part of the options, and says what is wrong with it. */
int weir__openssl_identity_prepare(weir__openssl_making *making);
int weir__openssl_trust_prepare(weir__openssl_making *making);
int weir__openssl_alpn_prepare(weir__openssl_making *making);
int weir__openssl_staple_prepare(weir__openssl_making *making);
void weir__openssl_stapled_prepare(weir__tls_settings *settings);
int weir__openssl_tickets_prepare(weir__openssl_making *making);
int weir__openssl_sessions_prepare(weir__openssl_making *making);

/* ---- openssl_self_signed.c ---- */

int weir__openssl_self_signed(weir__openssl_making *making, X509 **ret_x509, EVP_PKEY **ret_key);

/* ---- openssl_tickets.c ---- */

int weir__openssl_random(uint8_t *bytes, size_t length);

/* Whether a server may take this session up for the client whose hello has come. */
bool weir__openssl_can_resume(SSL *ssl, SSL_SESSION *session);

/* ---- openssl_session_ids.c ---- */

int weir__openssl_session_ids_prepare(weir__openssl_making *making);

/* New settings of a context take over the sessions that the former ones remember. */
void weir__openssl_settings_inherit(weir__tls_settings *settings, weir__tls_settings *former);

/* ---- openssl_age.c ---- */

/* The peer has been verified now, unless the session says already when. False: no memory. */
bool weir__openssl_age_begin(SSL_SESSION *session);

/* Whether that was so long ago, or longer. */
bool weir__openssl_age_exceeds(SSL_SESSION *session, int64_t lifetime_s);

/* ---- openssl_sessions.c ---- */

/* NULL if there is no memory. */
weir__openssl_sessions *weir__openssl_sessions_create(size_t capacity);
weir__openssl_sessions *weir__openssl_sessions_retain(weir__openssl_sessions *sessions);
void weir__openssl_sessions_release(weir__openssl_sessions *sessions); /* NULL is ignored */

/* How many there are, and how many there can be. */
size_t weir__openssl_sessions_count(weir__openssl_sessions *sessions);
size_t weir__openssl_sessions_capacity(const weir__openssl_sessions *sessions);

/* Takes the session, unless it returns false. */
bool weir__openssl_sessions_add(weir__openssl_sessions *sessions, const char *key,
                                SSL_SESSION *session);

/* One that can be used with `key`, the caller's to free; NULL if there is none. */
SSL_SESSION *weir__openssl_sessions_take(weir__openssl_sessions *sessions, const char *key);

/* A client's session takes one up that it remembers, if there is one. */
void weir__openssl_sessions_resume(weir__openssl_session *session);

/* The handshake is over: what was taken up may have been renewed. */
void weir__openssl_sessions_keep_renewed(weir__openssl_session *session);

#endif
