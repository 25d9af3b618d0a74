/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a TLS library has to be able to do for us. It knows bytes, and neither channels nor threads:
 * each call takes what has come and leaves what is to be sent.
 *
 *      socket  ->  io.in  ->  handshake / open  ->  plain bytes
 *      socket  <-  io.out <-  handshake / seal / end  <-  plain bytes
 *
 * `settings` are what many sessions share (a context as it is at the moment), counted and never
 * changed. A session belongs to one thread at a time.
 *
 * A call that fails has left an alert in io.out, if there is something to be told to the peer, and
 * the reason in words in the session: who says so, and what. After that a session is only good for
 * being released.
 */
#ifndef WEIR_TLS_ENGINE_H
#define WEIR_TLS_ENGINE_H

#include <weir/buf.h>
#include <weir/tls_context.h>

#define WEIR__TLS_REASON_SIZE 256

/* The most plain bytes in a record, and what a record may have besides them. */
#define WEIR__TLS_RECORD_MAX 16384
#define WEIR__TLS_RECORD_EXTRA 320

typedef struct weir__tls_engine weir__tls_engine;
typedef struct weir__tls_settings weir__tls_settings; /* the engine's own */

typedef struct weir__tls_session {
    const weir__tls_engine *engine;
    const char *reason; /* after an error; never NULL then */
    bool is_blocked; /* after `open`: half a message of a handshake has come (a ticket, a new key);
                        nothing can be sealed or ended until the rest has */
} weir__tls_session;

/* What a call may take and leave. */
typedef struct weir__tls_io {
    weir_buf *in;  /* what has come; taken from the front. NULL: nothing */
    weir_buf *out; /* records are appended, and it grows; NULL: made when there are some */
} weir__tls_io;

/* Whom a session is with. */
typedef struct weir__tls_peer {
    const char *server_name; /* of a client: asked for and verified; NULL: neither */
    const char *cache_key;   /* of a client: sessions with the same one are taken up again */
    bool asks;               /* of a server: stop when the client has said whom it wants */
} weir__tls_peer;

/* What a client has said first, when `handshake` asks for a choice. Lent until that is made. */
typedef struct weir__tls_wish {
    char server_name[256]; /* in lower case; "" if none */
    char alpn[256];        /* by commas; "" if none */
} weir__tls_wish;

/* What was agreed upon. Lent for as long as the session lives, and is not used. */
typedef struct weir__tls_facts {
    const char *version;
    const char *cipher;
    char alpn[256];
    char server_name[256];
    bool is_resumed;
    bool is_stapled;
} weir__tls_facts;

/* What handshake and open return besides errors. */
enum {
    WEIR__TLS_MORE = 0,   /* bytes of the peer's are needed */
    WEIR__TLS_DONE = 1,   /* the handshake is over; or there are plain bytes */
    WEIR__TLS_CHOOSE = 2, /* the handshake goes on when `choose` has been called */
    WEIR__TLS_ENDED = 3,  /* the peer has ended TLS: nothing more comes */
};

struct weir__tls_engine {
    const char *name;

    /* Random bytes, for secrets. Fails: -ENOMEM, WEIR_ETLS (there are none). */
    int (*random)(uint8_t *bytes, size_t length);

    /*
     * Makes settings of options, all of which are there (`self_signed_for` too; a server without
     * tickets takes no session up). Files are read here. Fails with the reason in words.
     */
    int (*settings_create)(const weir_tls_context_options *options, bool is_server,
                           char reason[WEIR__TLS_REASON_SIZE], weir__tls_settings **ret_settings);
    weir__tls_settings *(*settings_retain)(weir__tls_settings *settings);
    void (*settings_release)(weir__tls_settings *settings);
    /* Before settings are used: they take the place of others, and remember what those did. */
    void (*settings_inherit)(weir__tls_settings *settings, weir__tls_settings *former);
    /* Our own certificate, or NULL. */
    weir_tls_certificate *(*settings_certificate)(weir__tls_settings *settings);
    bool (*settings_verify_names)(const weir__tls_settings *settings);

    /* Keeps: settings. Fails: -ENOMEM, -EINVAL (the name), WEIR_ETLS. */
    int (*session_create)(weir__tls_settings *settings, const weir__tls_peer *peer,
                          weir__tls_session **ret_session);
    void (*session_release)(weir__tls_session *session);

    /*
     * Goes on with the handshake as far as the bytes reach: MORE, DONE, CHOOSE or an error. A
     * client's first call has no bytes. Bytes behind the handshake stay in io.in.
     */
    int (*handshake)(weir__tls_session *session, weir__tls_io *io);

    /* After CHOOSE: what the client wants; and it gets these, or (NULL) is refused. */
    const weir__tls_wish *(*wish)(weir__tls_session *session);
    void (*choose)(weir__tls_session *session, weir__tls_settings *settings);

    /*
     * Puts plain bytes into the free space of `plain`, of which there is some, as long as there are
     * bytes and space is left: DONE if there are any, MORE, ENDED, or an error. DONE means: call
     * again, with more space; there may be others, also some that have been taken from io.in
     * already. The other results come alone, after all bytes that were before them. What is to be
     * answered (a new key, say) is in io.out.
     */
    int (*open)(weir__tls_session *session, weir__tls_io *io, weir_buf *plain);

    /* Whether it has taken the beginning of a record whose end has not come. */
    bool (*is_amid_record)(const weir__tls_session *session);

    /* Makes records of `length` plain bytes, of which there are some: full ones, and the last. */
    int (*seal)(weir__tls_session *session, weir__tls_io *io, const uint8_t *plain, size_t length);

    /* Tells the peer that nothing more comes from us. Nothing, if the handshake is not over. */
    void (*end)(weir__tls_session *session, weir__tls_io *io);

    /* After the handshake. */
    void (*facts)(weir__tls_session *session, weir__tls_facts *ret_facts);
    /* NULL: the peer has shown none. Fails: -ENOMEM, WEIR_ETLS. */
    int (*peer_certificate)(weir__tls_session *session, weir_tls_certificate **ret_certificate);

    /* Reads the first certificate of a text in PEM; fails with the reason in words. */
    int (*certificate_parse)(const char *pem, char reason[WEIR__TLS_REASON_SIZE],
                             weir_tls_certificate **ret_certificate);
};

/* The one that there is. */
extern const weir__tls_engine weir__tls_openssl;

#endif
