/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS sessions by OpenSSL 3, as the rest of the layer uses them. A session works on bytes and knows
 * neither channels nor threads: each call consumes received bytes and produces bytes to send.
 *
 *      socket  ->  io.in  ->  handshake / open  ->  plain bytes
 *      socket  <-  io.out <-  handshake / seal / close  <-  plain bytes
 *
 * A weir__openssl_context is what a weir_tls_context is at one moment: an SSL_CTX and what belongs
 * to it, reference-counted and immutable. A session belongs to one thread at a time.
 *
 * A call that fails leaves an alert in io.out if the peer is to get one, and the reason in the
 * session. After that the session can only be released.
 *
 * Headers of OpenSSL are included in this folder only (internal.h).
 */
#ifndef WEIR_TLS_OPENSSL_OPENSSL_H
#define WEIR_TLS_OPENSSL_OPENSSL_H

#include <weir/buf.h>
#include <weir/tls_context.h>

#define WEIR__TLS_REASON_SIZE 256

/* The most plain bytes of a record, and the most bytes it adds to them. */
#define WEIR__TLS_RECORD_MAX 16384
#define WEIR__TLS_RECORD_EXTRA 320

typedef struct weir__openssl_context weir__openssl_context;

/* What a call consumes and produces. */
typedef struct weir__openssl_io {
    weir_buf *in;  /* received bytes, consumed from the front; NULL = none */
    weir_buf *out; /* records are appended; NULL = created when there are some */
} weir__openssl_io;

typedef struct weir__openssl_session_options {
    const char *server_name; /* client: sent and verified; NULL = neither */
    const char *cache_key;   /* client: sessions with the same key are resumed; NULL = none */
    const char *protocols;   /* ALPN, comma-separated: the context's must be among them, and are
                                these if it has none. NULL = any. Must outlive the session */
    bool pause_at_hello;     /* server: stop after the client's hello (WANT_CONTEXT) */
} weir__openssl_session_options;

/* What a client's hello asks for. */
typedef struct weir__openssl_hello {
    char server_name[256]; /* in lower case; "" if none */
    char alpn[256];        /* comma-separated; "" if none */
} weir__openssl_hello;

/* What the handshake negotiated. The texts are valid while the session is neither used nor freed.
 */
typedef struct weir__openssl_negotiated {
    const char *version;
    const char *cipher;
    char alpn[256];
    char server_name[256];
    bool is_resumed;
    bool is_stapled;
} weir__openssl_negotiated;

/* Results of handshake and open; errors are negative. */
enum {
    WEIR__OPENSSL_WANT_READ = 0,    /* needs more received bytes */
    WEIR__OPENSSL_DONE = 1,         /* the handshake is complete; or there are plain bytes */
    WEIR__OPENSSL_WANT_CONTEXT = 2, /* paused at the hello until session_set_context */
    WEIR__OPENSSL_CLOSED = 3,       /* the peer has sent close_notify */
};

/* Where a server's session is that pauses at the hello. */
enum weir__openssl_hello_state {
    WEIR__OPENSSL_HELLO_PASS, /* does not pause, or goes on with its context */
    WEIR__OPENSSL_HELLO_PAUSE,
    WEIR__OPENSSL_HELLO_PAUSED,
    WEIR__OPENSSL_HELLO_REJECTED,
};

/* HANDSHAKE -> OPEN -> CLOSE_SENT; from either of these, -> REJECTING, after which it fails. The
 * peer's close_notify is another question. */
enum weir__openssl_stage {
    WEIR__OPENSSL_HANDSHAKE,
    WEIR__OPENSSL_OPEN,
    WEIR__OPENSSL_CLOSE_SENT, /* our close_notify */
    WEIR__OPENSSL_REJECTING,  /* a flood of records: OpenSSL is made to send an alert */
};

/* The first bytes of the peer are remembered, to name what it speaks if not TLS. */
#define WEIR__OPENSSL_FIRST_MAX 5

/* Outside of this folder only the first three are read. */
typedef struct weir__openssl_session {
    const char *reason; /* after an error, never NULL then */
    bool is_blocked;    /* after `open`: part of a post-handshake message (a ticket, a key update)
                           has arrived; nothing can be sealed or closed until the rest has */
    bool is_between_records; /* OpenSSL holds no part of the next record */

    weir__openssl_context *context;
    struct ssl_st *ssl;
    weir__openssl_io *io;       /* of the call in progress */
    char *cache_key;            /* client; or NULL */
    char *server_name;          /* client, until the handshake is complete: to verify; or NULL */
    const char *protocols;      /* as given; or NULL */
    char *reason_text;          /* what `reason` points to if it was allocated */
    char *rejection;            /* why the peer's certificate is not trusted */
    weir__openssl_hello *hello; /* server that pauses, until the handshake is complete */
    int failed;                 /* the error; every later call returns it */
    int io_err;                 /* an error of our own in the BIO */
    int16_t alert_sent;         /* a fatal one, or WEIR__OPENSSL_NO_ALERT */
    uint32_t dataless;          /* cost of records without data, see WEIR__OPENSSL_DATALESS_MAX */
    enum weir__openssl_stage stage;
    enum weir__openssl_hello_state hello_state;
    uint8_t first[WEIR__OPENSSL_FIRST_MAX];
    uint8_t first_length;
    bool is_address;       /* server_name is one */
    bool has_close_notify; /* the peer's, after the handshake */
    bool has_rest;         /* OpenSSL holds plain bytes, for which there was no room */
    bool is_starved;       /* the last call of the BIO found nothing to read */
} weir__openssl_session;

/* Random bytes for secrets. Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_random_bytes(uint8_t *ret_bytes, size_t length);

/* Reads the first certificate of a PEM text. Fails with a reason. */
int weir__openssl_certificate_parse(const char *pem, char ret_reason[WEIR__TLS_REASON_SIZE],
                                    weir_tls_certificate **ret_certificate);

/* ---- context.c ---- */

/* Builds a context from checked options, reading their files. A server without `tickets` resumes no
 * session. Fails with a reason. */
int weir__openssl_context_create(const weir_tls_context_options *options, bool is_server,
                                 char ret_reason[WEIR__TLS_REASON_SIZE],
                                 weir__openssl_context **ret_context);
weir__openssl_context *weir__openssl_context_retain(weir__openssl_context *context);
void weir__openssl_context_release(weir__openssl_context *context); /* NULL is ignored */

/* Takes over the cached sessions of the context that this one replaces. Before its first use. */
void weir__openssl_context_inherit(weir__openssl_context *context, weir__openssl_context *former);

/* Our own certificate; NULL if there is none, or no memory. */
weir_tls_certificate *weir__openssl_context_certificate(weir__openssl_context *context);

/* True if clients of this context need a server name to verify. */
bool weir__openssl_context_verifies_names(const weir__openssl_context *context);

/* Fails with -EPROTONOSUPPORT, and a reason, if the context has protocols (ALPN) that are not among
 * these. */
int weir__openssl_context_check_protocols(const weir__openssl_context *context,
                                          const char *protocols,
                                          char ret_reason[WEIR__TLS_REASON_SIZE]);

/* ---- session.c ---- */

/* Retains the context. Fails: -ENOMEM, -EINVAL (invalid server_name), WEIR_ETLS. */
int weir__openssl_session_create(weir__openssl_context *context,
                                 const weir__openssl_session_options *options,
                                 weir__openssl_session **ret_session);
void weir__openssl_session_release(weir__openssl_session *session);

/*
 * Continues the handshake as far as the bytes reach: WANT_READ, DONE, WANT_CONTEXT or an error. A
 * client's first call has no input. Bytes behind the handshake stay in io.in.
 */
int weir__openssl_session_handshake(weir__openssl_session *session, weir__openssl_io *io);

/* After WANT_CONTEXT: what the client asks for, valid until the next call of `handshake`; and the
 * context to continue with, NULL = reject the client. */
const weir__openssl_hello *weir__openssl_session_hello(const weir__openssl_session *session);
void weir__openssl_session_set_context(weir__openssl_session *session,
                                       weir__openssl_context *context);

/*
 * Decrypts records into the free space of `plain`, which must have some: WANT_READ, CLOSED or an
 * error, with the plain bytes before it in `plain`; or DONE if that is full. Then call it again
 * with more space: there may be more, even if io.in is empty. A reply (to a key update, say) is in
 * io.out.
 */
int weir__openssl_session_open(weir__openssl_session *session, weir__openssl_io *io,
                               weir_buf *plain);

/* Encrypts `length` plain bytes, at least one, into full records and a last one. */
int weir__openssl_session_seal(weir__openssl_session *session, weir__openssl_io *io,
                               const uint8_t *plain, size_t length);

/* Writes close_notify. Does nothing before the handshake is complete. */
void weir__openssl_session_close(weir__openssl_session *session, weir__openssl_io *io);

/* After the handshake. */
void weir__openssl_session_negotiated(const weir__openssl_session *session,
                                      weir__openssl_negotiated *ret_negotiated);

/* After the handshake; NULL if the peer sent none. Fails: -ENOMEM, WEIR_ETLS. */
int weir__openssl_session_peer_certificate(const weir__openssl_session *session,
                                           weir_tls_certificate **ret_certificate);

#endif
