/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_context.h - what many TLS connections share: certificate and key, trusted authorities,
 * versions, session tickets.
 *
 *      weir_tls_context *tls;
 *      weir_tls_server_create(
 *          WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = "server.pem", .key_file = "server.key"),
 *          &tls);
 *      ...
 *      weir_tls_add(pipeline, tls);            for each channel (weir/tls.h)
 *      weir_tls_context_reload(tls);           the files have changed; no connection is interrupted
 *
 * Link with weir-tls. A context is reference-counted and may be used on any thread. Its options can
 * be replaced at any time: each connection keeps those that it began with.
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
typedef struct weir_tls_sni_request weir_tls_sni_request;
typedef struct weir_tls_tickets weir_tls_tickets;

enum weir_tls_version {
    WEIR_TLS_VERSION_DEFAULT, /* minimum 1.2, maximum 1.3 */
    WEIR_TLS_VERSION_1_2,
    WEIR_TLS_VERSION_1_3,
};

/* Whether the peer must present a trusted certificate. */
enum weir_tls_verify {
    WEIR_TLS_VERIFY_DEFAULT, /* client: REQUIRED, server: NONE */
    WEIR_TLS_VERIFY_NONE, /* for a client, anybody may impersonate the server: development only */
    WEIR_TLS_VERIFY_OPTIONAL, /* server: the client may send none; one that it sends is verified */
    WEIR_TLS_VERIFY_REQUIRED, /* by the authorities; a server's also for the right name */
    WEIR_TLS_VERIFY_PINS,     /* its key must match a pin; nothing else is checked */
};

/*
 * Chooses the context for a client of a server with several names, by weir_tls_sni_request_accept
 * or _reject: once, now or later, on any thread. Takes: request. Thread: the handler's.
 */
typedef void weir_tls_sni_fn(weir_tls_sni_request *request, void *user_data);

/* Zero means default. Build with WEIR_TLS_CONTEXT_OPTIONS(...). Everything is copied. */
typedef struct weir_tls_context_options {
    size_t size;

    /* Our own certificate, required for servers: PEM, the certificate and then its chain; a file or
     * a text. */
    const char *certificate_file;
    const char *key_file; /* NULL = in certificate_file. Logs a warning if the file is
                             world-writable, or world-readable and not encrypted */
    const char *certificate_pem;
    const char *key_pem;         /* NULL = in certificate_pem */
    const char *passphrase;      /* of the key */
    const char *self_signed_for; /* names, comma-separated: generates a certificate; development
                                    only */

    /* The trusted authorities: PEM; NULL = those of the system. A server that verifies clients
     * should set them: the system authorities certify any domain owner. */
    const char *ca_file;
    const char *ca_pem;
    enum weir_tls_verify verify;
    const char *pins; /* "sha256/BASE64" of public keys, comma-separated: the peer's key must match
                         one, in addition to `verify`. (OPTIONAL: or it sends no certificate) */

    /* Protocol parameters. */
    enum weir_tls_version min_version;
    enum weir_tls_version max_version;
    const char *ciphers;       /* TLS 1.2, in OpenSSL's notation; default
                                  "ECDHE+AESGCM:ECDHE+CHACHA20" (forward secrecy) */
    const char *cipher_suites; /* TLS 1.3: "TLS_AES_128_GCM_SHA256:..." */
    const char *groups;        /* "X25519:P-256" */
    const char *alpn;          /* protocols, comma-separated, the preferred first: "h2,http/1.1". A
                                  server rejects a client that offers only others. Default: those of
                                  the channel (weir_channel_options.alpn), such as http/1.1 */

    /* Session resumption. */
    int resumption;              /* default on; WEIR_OFF = every handshake is a full one */
    weir_tls_tickets *tickets;   /* server: ticket keys shared with other servers; retained. NULL =
                                    its own, rotated every 12 hours */
    int64_t session_lifetime_ns; /* since the peer was verified, however often the session was
                                    resumed since; default 2 hours, at most 7 days */
    size_t session_cache;        /* the most sessions cached: client, by server_name; default 256.
                                    Server, by id, for TLS 1.2 clients without tickets; default
                                    1024 */
    int session_ids;             /* server: default on; WEIR_OFF = caches none, resumes by ticket
                                    only */

    /* A server with several names; see also weir_tls_context_add_name. */
    weir_tls_sni_fn *on_sni;
    void *on_sni_data; /* must stay valid as long as the context, even after a replace: other
                          threads may still be calling the former on_sni */

    const char *ocsp_file;    /* server: OCSP response (DER) to staple; read again by a reload */
    const char *key_log_file; /* secrets are appended to it, for Wireshark; debugging only */
} weir_tls_context_options;

#define WEIR_TLS_CONTEXT_OPTIONS(...) WEIR_OPTIONS(weir_tls_context_options, __VA_ARGS__)

/*
 * Creates a context for servers, or for clients; NULL options (clients only) = defaults. The reason
 * of a failure is in weir_tls_reason, and logged.
 * Thread: any, and reads files.  Lends until it returns: options.  Gives: context.  Fails: -ENOMEM,
 * -EINVAL, -ENOENT and other errors of files, WEIR_ETLS (their contents).
 */
WEIR_API WEIR_MUST_USE int weir_tls_server_create(const weir_tls_context_options *options,
                                                  weir_tls_context **ret_context);
WEIR_API WEIR_MUST_USE int weir_tls_client_create(const weir_tls_context_options *options,
                                                  weir_tls_context **ret_context);

/*
 * Returns the reason of the last failure of a function of weir/tls*.h on this thread; "" if there
 * was none. For invalid options of a handler, see the log.
 * Thread: any.  Lends until the next such call: the text.
 */
WEIR_API const char *weir_tls_reason(void);

/*
 * Retains a context.
 * Thread: any.
 */
WEIR_API weir_tls_context *weir_tls_context_retain(weir_tls_context *context);

/*
 * Releases a reference. NULL is ignored. Connections keep what they need.
 * Thread: any.  Takes: context.
 */
WEIR_API void weir_tls_context_release(weir_tls_context *context);

/*
 * Reads the files again; or replaces the options. New connections use the result; on failure
 * nothing changes.
 * Thread: any, and reads files.  Fails: as the creation.
 */
WEIR_API WEIR_MUST_USE int weir_tls_context_reload(weir_tls_context *context);
WEIR_API WEIR_MUST_USE int weir_tls_context_replace(weir_tls_context *context,
                                                    const weir_tls_context_options *options);

/*
 * Makes clients of a server that ask for `name` use `other`: "example.com", or "*.example.com" for
 * all names with one more label. Replaces an earlier context of the same name; NULL removes the
 * name. Clients that ask for an unknown name use `context` itself. The names and the on_sni of
 * `other` have no effect. Two contexts that name each other retain each other: remove one of the
 * names to free them.
 * Thread: any.  Keeps: other.  Fails: -ENOMEM, -EINVAL (invalid name; a client's context), -ENOENT
 * (no such name to remove).
 */
WEIR_API WEIR_MUST_USE int weir_tls_context_add_name(weir_tls_context *context, const char *name,
                                                     weir_tls_context *other);

/*
 * Returns our own certificate at this moment; NULL if there is none, or no memory.
 * Thread: any.  Gives: the certificate.
 */
WEIR_API weir_tls_certificate *weir_tls_context_certificate(weir_tls_context *context);

/* Counters of all connections that began with this context. */
typedef struct weir_tls_context_stats {
    uint64_t handshakes; /* succeeded */
    uint64_t resumed;    /* of these */
    uint64_t failed;
    uint64_t reloads;
    uint64_t reserved[4];
} weir_tls_context_stats;

/*
 * Reads the counters.
 * Thread: any.
 */
WEIR_API void weir_tls_context_read_stats(const weir_tls_context *context,
                                          weir_tls_context_stats *ret_stats);

/* --- certificates ----------------------------------------------------------------------------- */

/*
 * A certificate is reference-counted and immutable. Its texts are UTF-8 and valid as long as the
 * certificate is retained.
 */

/* The size of "sha256/BASE64" with its terminating zero. */
#define WEIR_TLS_PIN_SIZE 52

/*
 * Parses the first certificate of a PEM text.
 * Thread: any.  Gives: certificate.  Fails: -ENOMEM, WEIR_ETLS (weir_tls_reason).
 */
WEIR_API WEIR_MUST_USE int weir_tls_certificate_parse(const char *pem,
                                                      weir_tls_certificate **ret_certificate);

/*
 * Retains a certificate.
 * Thread: any.
 */
WEIR_API weir_tls_certificate *weir_tls_certificate_retain(weir_tls_certificate *certificate);

/*
 * Releases a reference. NULL is ignored.
 * Thread: any.  Takes: certificate.
 */
WEIR_API void weir_tls_certificate_release(weir_tls_certificate *certificate);

/*
 * Return the subject and the issuer, as "CN=example.com,O=Example" (RFC 2253), and the serial
 * number in hex.
 * Thread: any.
 */
WEIR_API const char *weir_tls_certificate_subject(const weir_tls_certificate *certificate);
WEIR_API const char *weir_tls_certificate_issuer(const weir_tls_certificate *certificate);
WEIR_API const char *weir_tls_certificate_serial(const weir_tls_certificate *certificate);

/*
 * Returns the n-th subject alternative name (a host name, an address), NULL if there are fewer.
 * Thread: any.
 */
WEIR_API const char *weir_tls_certificate_name(const weir_tls_certificate *certificate, size_t n);

/*
 * Return the validity period: seconds since 1970, UTC.
 * Thread: any.
 */
WEIR_API int64_t weir_tls_certificate_not_before(const weir_tls_certificate *certificate);
WEIR_API int64_t weir_tls_certificate_not_after(const weir_tls_certificate *certificate);

/*
 * Returns the pin of its public key, "sha256/BASE64", for weir_tls_context_options.pins.
 * Thread: any.
 */
WEIR_API const char *weir_tls_certificate_pin(const weir_tls_certificate *certificate);

/*
 * Return the whole certificate, as DER and as PEM text.
 * Thread: any.
 */
WEIR_API weir_span weir_tls_certificate_der(const weir_tls_certificate *certificate);
WEIR_API const char *weir_tls_certificate_pem(const weir_tls_certificate *certificate);

/* --- session tickets -------------------------------------------------------------------------- */

/*
 * The keys of session tickets. With a ticket a returning client resumes its session, and both sides
 * save the expensive part of the handshake.
 *
 * A server's context has its own keys unless it is given some. Servers that share clients share
 * keys: the first key encrypts new tickets, all of them decrypt old ones.
 */

/* Bytes of one key: 16 name, 32 HMAC, 32 encryption. */
#define WEIR_TLS_TICKET_KEY_SIZE 80
/* The most keys. */
#define WEIR_TLS_TICKET_KEYS_MAX 8

/*
 * Creates keys: a random one, and a new one every `rotation_ns` (0 = 12 hours, WEIR_OFF = never).
 * A former key still decrypts its tickets for as long again.
 * Thread: any.  Gives: tickets.  Fails: -ENOMEM, -EINVAL, WEIR_ETLS (no random bytes).
 */
WEIR_API WEIR_MUST_USE int weir_tls_tickets_create(int64_t rotation_ns,
                                                   weir_tls_tickets **ret_tickets);

/*
 * Retains the keys.
 * Thread: any.
 */
WEIR_API weir_tls_tickets *weir_tls_tickets_retain(weir_tls_tickets *tickets);

/*
 * Releases a reference. NULL is ignored. The last one wipes the keys.
 * Thread: any.  Takes: tickets.
 */
WEIR_API void weir_tls_tickets_release(weir_tls_tickets *tickets);

/*
 * Makes a new random key the first one now; drops the oldest if there are too many.
 * Thread: any.  Fails: WEIR_ETLS (no random bytes).
 */
WEIR_API WEIR_MUST_USE int weir_tls_tickets_rotate(weir_tls_tickets *tickets);

/*
 * Replaces all keys by `count` keys of WEIR_TLS_TICKET_KEY_SIZE bytes each, and stops the rotation.
 * Thread: any.  Fails: -EINVAL (none, or more than WEIR_TLS_TICKET_KEYS_MAX).
 */
WEIR_API WEIR_MUST_USE int weir_tls_tickets_set(weir_tls_tickets *tickets, const uint8_t *keys,
                                                size_t count);

/* --- SNI requests ----------------------------------------------------------------------------- */

/*
 * A client has named the server that it wants; on_sni chooses its context.
 *
 *      static void on_sni(weir_tls_sni_request *request, void *user_data)
 *      {
 *          look_up(user_data, weir_tls_sni_request_server_name(request), request);   async
 *      }
 *
 * The handshake waits meanwhile, under its timeout. A request may be decided after its connection
 * has ended; that has no effect. A decision made on another thread is lost if there is no memory to
 * pass it on: then the timeout ends the handshake.
 */

/*
 * Returns the server name in lower case and without a final dot; "" if there is none.
 * Thread: any, before it is decided.
 */
WEIR_API const char *weir_tls_sni_request_server_name(const weir_tls_sni_request *request);

/*
 * Returns the protocols that the client offers, comma-separated; "" if none.
 * Thread: any, before it is decided.
 */
WEIR_API const char *weir_tls_sni_request_alpn(const weir_tls_sni_request *request);

/*
 * Continues the handshake with this server context; NULL = the one that called on_sni.
 * Thread: any.  Takes: request.  Keeps: context.
 */
WEIR_API void weir_tls_sni_request_accept(weir_tls_sni_request *request, weir_tls_context *context);

/*
 * Rejects the client with the alert "unrecognized name". `reason` is the detail of the error that
 * our own handlers get.
 * Thread: any.  Takes: request.
 */
WEIR_API void weir_tls_sni_request_reject(weir_tls_sni_request *request, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
