/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_context.h - who we are and whom we believe: what many TLS connections have in common.
 *
 *      weir_tls_context *tls;
 *      weir_tls_server_create(
 *          WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = "server.pem", .key_file = "server.key"),
 *          &tls);
 *      ...
 *      weir_tls_add(pipeline, tls);            for each channel (weir/tls.h)
 *      weir_tls_context_reload(tls);           the files have changed; nobody is interrupted
 *
 * Link with weir-tls. A context is counted, and good on any thread. What it is made of can be
 * swapped while connections come and go: each keeps what it began with.
 */
#ifndef WEIR_TLS_CONTEXT_H
#define WEIR_TLS_CONTEXT_H

#include <weir/base.h>
#include <weir/buf.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_tls_context weir_tls_context;
typedef struct weir_tls_certificate weir_tls_certificate;
typedef struct weir_tls_choice weir_tls_choice;
typedef struct weir_tls_tickets weir_tls_tickets;

enum weir_tls_version {
    WEIR_TLS_VERSION_DEFAULT, /* 1.2 at the least, 1.3 at the most */
    WEIR_TLS_VERSION_1_2,
    WEIR_TLS_VERSION_1_3,
};

/* Whether the peer must show a certificate that we believe. */
enum weir_tls_verify {
    WEIR_TLS_VERIFY_DEFAULT,  /* a client: REQUIRED, a server: NONE */
    WEIR_TLS_VERIFY_NONE,     /* of a server anybody may pretend to be it: for trying things out */
    WEIR_TLS_VERIFY_OPTIONAL, /* a server asks; who has one must be believed */
    WEIR_TLS_VERIFY_REQUIRED, /* by the authorities; of servers, for the right name as well */
    WEIR_TLS_VERIFY_PINS,     /* it must have one of the pins, nothing else is looked at */
};

/*
 * A server with several names decides here which context a client gets: by
 * weir_tls_choice_accept or _refuse, now or later, on any thread, once (weir/tls_context.h).
 * Takes: choice. Thread: the handler's.
 */
typedef void weir_tls_choose_fn(weir_tls_choice *choice, void *user_data);

/* Zero means default. Build with WEIR_TLS_CONTEXT_OPTIONS(...). Everything is copied. */
typedef struct weir_tls_context_options {
    size_t size;

    /* Who we are: a server must say, a client may. The certificate, then those between it and the
     * authority, in PEM; from a file, or as text. */
    const char *certificate_file;
    const char *key_file; /* NULL: in the same file. A warning is logged if everybody on the
                             machine can read it, unless it is encrypted, or change it */
    const char *certificate_pem;
    const char *key_pem;         /* NULL: in the same text */
    const char *passphrase;      /* of the key */
    const char *self_signed_for; /* names, by commas: makes a certificate for trying things out */

    /* Whom we believe: authorities in PEM; neither: those of the system. (To a server that wants
     * certificates of clients that is everybody who has one for some name: say whose you mean.) */
    const char *ca_file;
    const char *ca_pem;
    enum weir_tls_verify verify;
    const char *pins; /* "sha256/BASE64" of public keys, by commas: the peer must have one of them,
                         besides what `verify` demands. (OPTIONAL: or show no certificate) */

    /* What we speak. */
    enum weir_tls_version min_version;
    enum weir_tls_version max_version;
    const char *ciphers;       /* of TLS 1.2, as OpenSSL writes them; default
                                  "ECDHE+AESGCM:ECDHE+CHACHA20": what was said stays secret when
                                  the key becomes known */
    const char *cipher_suites; /* of TLS 1.3: "TLS_AES_128_GCM_SHA256:..." */
    const char *groups;        /* "X25519:P-256" */
    const char *alpn;          /* protocols by commas, the best first: "h2,http/1.1". A client whose
                                  offers the server knows none of is refused */

    /* Sessions that are taken up again. */
    bool no_resumption;
    weir_tls_tickets *tickets;   /* a server's keys, shared with others; kept. NULL: its own, which
                                    change every 12 hours */
    int64_t session_lifetime_ns; /* how long after the peer was verified, however often it was
                                    taken up since; default 2 hours, at most 7 days */
    size_t session_cache;        /* how many a client remembers, by server_name; default 256. How
                                    many a server remembers, by id, for clients of TLS 1.2 without
                                    tickets; default 1024 */

    /* A server with several names; see also weir_tls_context_add_name. */
    weir_tls_choose_fn *choose;
    void *choose_data; /* must be good for as long as the context is, also after a replace: on other
                          threads the former chooser may just have been called */

    const char *ocsp_file;    /* an OCSP response (DER) to be stapled; read again by a reload */
    const char *key_log_file; /* secrets are appended for Wireshark: for finding mistakes only */
    bool no_session_ids;      /* a server remembers no sessions: it resumes by ticket only */
} weir_tls_context_options;

#define WEIR_TLS_CONTEXT_OPTIONS(...) WEIR_OPTIONS(weir_tls_context_options, __VA_ARGS__)

/*
 * Makes a context for servers, or for clients; NULL options of a client: every default. What was
 * wrong is said in words by weir_tls_reason, and logged.
 * Thread: any, and reads files.  Lends until it returns: options.  Gives: context.  Fails: -ENOMEM,
 * -EINVAL, -ENOENT and others of a file's, WEIR_ETLS (what is in it).
 */
WEIR_API int weir_tls_server_create(const weir_tls_context_options *options,
                                    weir_tls_context **ret_context);
WEIR_API int weir_tls_client_create(const weir_tls_context_options *options,
                                    weir_tls_context **ret_context);

/*
 * What the last function of weir/tls*.h that failed on this thread had to say; "" if none has. Of
 * a handler whose options make no sense the log says which.
 * Thread: any.  Lends until the next such call: the text.
 */
WEIR_API const char *weir_tls_reason(void);

/*
 * Keeps a context.
 * Thread: any.
 */
WEIR_API weir_tls_context *weir_tls_context_retain(weir_tls_context *context);

/*
 * Gives a reference back; NULL is fine. Connections keep what they need.
 * Thread: any.  Takes: context.
 */
WEIR_API void weir_tls_context_release(weir_tls_context *context);

/*
 * Reads the files again; or takes other options in the place of those that it has. New connections
 * get the new ones, from one moment to the next; if something is wrong all stays as it was.
 * Thread: any, and reads files.  Fails: as the making of one.
 */
WEIR_API int weir_tls_context_reload(weir_tls_context *context);
WEIR_API int weir_tls_context_replace(weir_tls_context *context,
                                      const weir_tls_context_options *options);

/*
 * Clients of a server that ask for this name get `other`: "example.com", or "*.example.com" for
 * all names with one label more. Again for the same name: `other` takes the former's place; NULL:
 * the name is forgotten. What nobody has a name for gets the context itself. The names of `other`,
 * and its chooser, do not count. Two contexts that have names for each other keep each other: they
 * are freed when one of the names has been forgotten.
 * Thread: any.  Keeps: other.  Fails: -ENOMEM, -EINVAL (no such name can be; a client's context),
 * -ENOENT (there is none to be forgotten).
 */
WEIR_API int weir_tls_context_add_name(weir_tls_context *context, const char *name,
                                       weir_tls_context *other);

/*
 * Our own certificate, as it is now; NULL if there is none, or no memory.
 * Thread: any.  Gives: the certificate.
 */
WEIR_API weir_tls_certificate *weir_tls_context_certificate(weir_tls_context *context);

/* How often; of all connections that began with this context. */
typedef struct weir_tls_context_stats {
    uint64_t handshakes; /* that succeeded */
    uint64_t resumed;    /* of these */
    uint64_t failed;
    uint64_t reloads;
    uint64_t reserved[4];
} weir_tls_context_stats;

/*
 * Reads the figures.
 * Thread: any.
 */
WEIR_API void weir_tls_context_read_stats(const weir_tls_context *context,
                                          weir_tls_context_stats *ret_stats);

/* --- tls certificate -------------------------------------------------------------------------- */

/*
 * A certificate: whose it is, and who says so.
 *
 * Counted; nothing in it changes. Texts are UTF-8 and lent for as long as the certificate is kept.
 */

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

/* --- tls tickets ------------------------------------------------------------------------------ */

/*
 * The keys of session tickets: with them a client that comes back proves that
 * it was here, and both save the expensive part of the handshake.
 *
 * A server's context has keys of its own unless it is given some. Servers that share their clients
 * share their keys: the first of them makes new tickets, all of them open old ones.
 */

/* Bytes of one key: 16 name, 32 to sign, 32 to encrypt. */
#define WEIR_TLS_TICKET_KEY_SIZE 80
/* How many are kept at the most. */
#define WEIR_TLS_TICKET_KEYS_MAX 8

/*
 * Makes keys: one that is random, and a new one every `rotation_ns` (0 = 12 hours, WEIR_OFF =
 * never), while the former ones still open what they have made for as long again.
 * Thread: any.  Gives: tickets.  Fails: -ENOMEM, -EINVAL, WEIR_ETLS (no random numbers).
 */
WEIR_API int weir_tls_tickets_create(int64_t rotation_ns, weir_tls_tickets **ret_tickets);

/*
 * Keeps the keys.
 * Thread: any.
 */
WEIR_API weir_tls_tickets *weir_tls_tickets_retain(weir_tls_tickets *tickets);

/*
 * Gives a reference back; NULL is fine. Keys are wiped with the last.
 * Thread: any.  Takes: tickets.
 */
WEIR_API void weir_tls_tickets_release(weir_tls_tickets *tickets);

/*
 * A new random key becomes the first, now; the oldest is forgotten if there are too many.
 * Thread: any.  Fails: WEIR_ETLS (no random numbers).
 */
WEIR_API int weir_tls_tickets_rotate(weir_tls_tickets *tickets);

/*
 * These keys, each of WEIR_TLS_TICKET_KEY_SIZE bytes, in the place of all others. They do not
 * change by themselves any more.
 * Thread: any.  Fails: -EINVAL (none, or more than WEIR_TLS_TICKET_KEYS_MAX).
 */
WEIR_API int weir_tls_tickets_set(weir_tls_tickets *tickets, const uint8_t *keys, size_t count);

/* --- tls choice ------------------------------------------------------------------------------- */

/*
 * A client has said which server it wants; somebody decides what it gets.
 *
 *      static void choose(weir_tls_choice *choice, void *user_data)
 *      {
 *          look_up(user_data, weir_tls_choice_server_name(choice), choice);   calls back some time
 *      }
 *
 * The handshake waits meanwhile, and its time limit holds. A connection that ends before may still
 * be decided upon: that has no effect. A decision made on another thread that there is no memory to
 * pass on is lost: then the time limit ends the handshake.
 */

/*
 * The name that the client asks for, in lower case and without a dot at its end; "" if it has none.
 * Thread: any, before it is decided.
 */
WEIR_API const char *weir_tls_choice_server_name(const weir_tls_choice *choice);

/*
 * The protocols that the client offers, by commas; "" if none.
 * Thread: any, before it is decided.
 */
WEIR_API const char *weir_tls_choice_alpn(const weir_tls_choice *choice);

/*
 * The client gets this context, of a server; NULL = the one that was asked.
 * Thread: any.  Takes: choice.  Keeps: context.
 */
WEIR_API void weir_tls_choice_accept(weir_tls_choice *choice, weir_tls_context *context);

/*
 * The client is refused: it hears "unrecognized name", our own handlers hear `reason`.
 * Thread: any.  Takes: choice.
 */
WEIR_API void weir_tls_choice_refuse(weir_tls_choice *choice, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
