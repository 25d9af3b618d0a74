/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls.h - TLS as a handler: records on the side of the socket, plain bytes behind it; and two
 * handlers that look at a client's first bytes.
 *
 *      weir_tls_add(pipeline, tls);                             a server's channel
 *      weir_tls_add_with(pipeline, tls,                         a client's
 *                        WEIR_TLS_OPTIONS(.server_name = "example.com"));
 *
 *      socket  ->  [tls]  ->  [decoder]  ->  [app]
 *
 * The handshake starts when the channel becomes active, or when the handler is added if it already
 * is. Writes are queued until it is complete, and count against the marks. Its result is reported
 * once, by an event; a handler behind may then change the pipeline, for ALPN say. A failed
 * handshake is followed by an error with the reason, and the channel is closed.
 *
 * Only buffers and composites can be written. A close sends everything written before it, then
 * close_notify, then closes. A half closure (weir_channel_shutdown_output) does the same and still
 * receives. If the peer's stream ends without close_notify it may have been truncated by an
 * attacker: handlers get the error WEIR_ECUTOFF before `inactive`.
 *
 * In mid-stream (start_tls, or a client that adds the handler once the server has agreed) a decoder
 * behind may still hold plaintext that arrived with the last message in clear. It must not be
 * treated as protected: install a new decoder when the handshake completes, and close the channel
 * if the old one has bytes left.
 *
 * weir_channel_abort bypasses all handlers: queued writes fail, and to the peer the stream looks
 * truncated.
 */
#ifndef WEIR_TLS_H
#define WEIR_TLS_H

#include <weir/buf.h>
#include <weir/group.h>
#include <weir/handler.h>
#include <weir/options.h>
#include <weir/pipeline.h>
#include <weir/tls_context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_TLS_OPTIONS(...). */
typedef struct weir_tls_options {
    size_t size;
    const char *server_name; /* client: the server's name or address, sent and verified; required
                                for clients that verify */
    bool start_tls;          /* the first message written is sent in clear ("220 go ahead"), then
                                the handshake starts */
    int64_t handshake_timeout_ns;  /* default 10 s; WEIR_OFF = none */
    int64_t close_timeout_ns;      /* how long a close with pending writes waits for a handshake
                                      without a timeout, or for a peer that reads nothing; default
                                      3 s. Then it is passed on to the transport, which has
                                      close_send_timeout_ns (weir/channel.h) */
    int64_t peer_close_timeout_ns; /* how long it then waits for the peer's close_notify; default 0:
                                      not at all */
    weir_group *offload;     /* executors that do the handshake's work; retained. The peer's bytes
                                are not read meanwhile. For a handler on an executor of its own
                                (`place`) reading cannot be paused: more than 128 KiB close the
                                connection */
    weir_promise *handshake; /* completes with the handshake, or fails if the handler could not be
                                added; retained. It is for one connection: a client that tries
                                several addresses needs one for each */
    const weir_place *place; /* default: last */
} weir_tls_options;

#define WEIR_TLS_OPTIONS(...) WEIR_OPTIONS(weir_tls_options, __VA_ARGS__)

/*
 * Adds the handler to a pipeline: last, or at `place`. The reason of a failure is in
 * weir_tls_reason, and logged.
 * Thread: any.  Lends until it returns: options.  Keeps: context.  Fails: -EINVAL (also a client
 * that verifies and has no server_name), -EPROTONOSUPPORT (the context has protocols that are not
 * in weir_channel_options.alpn), WEIR_ETLS, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_tls_add(weir_pipeline *pipeline, weir_tls_context *context);
WEIR_API WEIR_MUST_USE int weir_tls_add_with(weir_pipeline *pipeline, weir_tls_context *context,
                                             const weir_tls_options *options);

/*
 * weir_tls_add_with for a client, with a server_name and otherwise the defaults. Clients of
 * protocols take this function as an option.
 * Thread: any.  Keeps: context.  Fails: as weir_tls_add_with.
 */
WEIR_API WEIR_MUST_USE int weir_tls_add_client(weir_pipeline *pipeline, weir_tls_context *context,
                                               const char *server_name);

/* --- handshake -------------------------------------------------------------------------------- */

/* The result of a handshake and what it negotiated: an event, fired once. */
typedef struct weir_tls_handshake weir_tls_handshake;

/*
 * Returns the handshake that an event is, or NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_tls_handshake *weir_tls_handshake_of(const weir_msg *event);

/*
 * Returns the same at any later time, for the first TLS handler of a pipeline; NULL if there is
 * none, its handshake has not succeeded, or there is no memory.
 * Thread: loop.  Gives: the handshake, to be released as a message.
 */
WEIR_API weir_msg *weir_tls_read_handshake(weir_pipeline *pipeline);

/*
 * Returns 0 or the error of a handshake; and its reason, "" if it succeeded.
 * Thread: any.
 */
WEIR_API int weir_tls_handshake_result(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_detail(const weir_tls_handshake *handshake);

/*
 * Return what was negotiated: "TLSv1.3"; "TLS_AES_256_GCM_SHA384"; the protocol, "" if none; the
 * name that the client asked for, in lower case and without a final dot, "" if none.
 * Thread: any.
 */
WEIR_API const char *weir_tls_handshake_version(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_cipher(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_alpn(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_server_name(const weir_tls_handshake *handshake);

/*
 * True if an earlier session was resumed.
 * Thread: any.
 */
WEIR_API bool weir_tls_handshake_is_resumed(const weir_tls_handshake *handshake);

/*
 * Client: true if the server stapled an OCSP response, valid or not. With WEIR_TLS_VERIFY_REQUIRED
 * a valid one that says "revoked" fails the handshake. One that cannot be verified (wrong
 * signature, too old, damaged) counts as none, and fails it only if the certificate requires a
 * response (must-staple).
 * Thread: any.
 */
WEIR_API bool weir_tls_handshake_is_stapled(const weir_tls_handshake *handshake);

/*
 * Returns the peer's certificate, borrowed; NULL if it sent none. With WEIR_TLS_VERIFY_NONE it has
 * not been verified.
 * Thread: any.
 */
WEIR_API weir_tls_certificate *weir_tls_handshake_peer(const weir_tls_handshake *handshake);

/* --- close ------------------------------------------------------------------------------------ */

/*
 * The event that the peer has sent close_notify: it sends nothing more. Without half closure the
 * channel is closed then. With half closure the events of a closed input follow, even if the peer's
 * stream has not ended, and we may continue to send.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_tls_closed(void);

/* --- detect: plain or TLS on one port --------------------------------------------------------- */

/*
 * The first bytes decide whether a client speaks TLS.
 *
 *      weir_tls_detect_add(pipeline, WEIR_TLS_DETECT_OPTIONS(.context = tls,
 *                                                            .init = init_echo));
 *
 * If it does, the detector is replaced by the TLS handler. Then `init` adds the handlers behind,
 * and the bytes are passed on to them. A client that sends nothing gets the error -ETIMEDOUT and is
 * closed: this is for protocols in which the client speaks first.
 */

/* Adds the handlers behind. An error closes the channel. Thread: loop. */
typedef int weir_tls_detect_fn(weir_channel *channel, bool is_tls, void *user_data);

/* Zero means default. Build with WEIR_TLS_DETECT_OPTIONS(...). */
typedef struct weir_tls_detect_options {
    size_t size;
    weir_tls_context *context;   /* a server's; retained */
    const weir_tls_options *tls; /* timeouts and offload of the TLS handler; NULL = defaults */
    weir_tls_detect_fn *init;
    void *user_data;
    int64_t timeout_ns; /* for the first bytes, default 10 s; WEIR_OFF = none */
} weir_tls_detect_options;

#define WEIR_TLS_DETECT_OPTIONS(...) WEIR_OPTIONS(weir_tls_detect_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Lends until init has run: user_data.  Keeps:
 * context.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_tls_detect_add(weir_pipeline *pipeline,
                                               const weir_tls_detect_options *options);

/* --- hello: read a client's hello without answering ------------------------------------------- */

/*
 * For proxies that route by server name and pass all bytes on.
 *
 *      weir_tls_hello_add(pipeline,
 *                         WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .user_data = proxy));
 *
 * Bytes are buffered until the hello is complete. Then on_hello is called, which may add handlers
 * behind or pause reading; then the bytes are passed on unchanged and the handler removes itself.
 * With auto-read off it requests the reads it needs. A client that sends something else
 * (WEIR_ENOTTLS) or takes too long (-ETIMEDOUT) causes an error, and the channel is closed.
 *
 * Nothing in a hello is authenticated.
 */

/* The most bytes of a hello, with its record headers: 4 records. */
#define WEIR_TLS_HELLO_MAX 65536

typedef struct weir_tls_hello {
    char server_name[256]; /* in lower case: letters, digits and "-_.:"; "" if none */
    char alpn[256];        /* the protocols offered, comma-separated: those that are printable and
                              fit; "" if none */
    uint16_t version;      /* the highest offered: 0x0303 = 1.2, 0x0304 = 1.3; 0 = none known */
    uint64_t reserved[4];
} weir_tls_hello;

/*
 * Parses a hello from the first bytes of a stream. Returns 1 if it is complete, 0 if more bytes are
 * needed.
 * Thread: any.  Fails: WEIR_ENOTTLS, WEIR_EMALFORMED, WEIR_ETOOLONG (beyond WEIR_TLS_HELLO_MAX).
 */
WEIR_API int weir_tls_hello_read(weir_span bytes, weir_tls_hello *ret_hello);

/* Called with a complete hello. An error closes the channel. Thread: the handler's. */
typedef int weir_tls_hello_fn(weir_ctx *ctx, const weir_tls_hello *hello, void *user_data);

/* Zero means default. Build with WEIR_TLS_HELLO_OPTIONS(...). */
typedef struct weir_tls_hello_options {
    size_t size;
    weir_tls_hello_fn *on_hello;
    void *user_data;
    int64_t timeout_ns; /* for the whole hello, default 10 s; WEIR_OFF = none */
} weir_tls_hello_options;

#define WEIR_TLS_HELLO_OPTIONS(...) WEIR_OPTIONS(weir_tls_hello_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Lends until on_hello has been called: user_data.
 * Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_tls_hello_add(weir_pipeline *pipeline,
                                              const weir_tls_hello_options *options);

#ifdef __cplusplus
}
#endif

#endif
