/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls.h - TLS as a handler: records on the side of the socket, plain bytes behind.
 *
 *      weir_tls_add(pipeline, tls);                             a server's channel
 *      weir_tls_add_with(pipeline, tls,                         a client's
 *                        WEIR_TLS_OPTIONS(.server_name = "example.com"));
 *
 *      socket  ->  [tls]  ->  [decoder]  ->  [app]
 *
 * The handshake begins when the channel is active, or the handler is added if it is already. What
 * is written before its end is held back, and counts against the marks. How it went is told once,
 * by an event: a handler behind may then change the pipeline, as ALPN asks for. If it has failed an
 * error with the reason in words follows, and the channel is closed.
 *
 * Only bytes can be written (buffers and composites). A close sends what was written before it,
 * then the end of TLS, then closes. A half closure (weir_channel_shutdown_output) does so, too, but
 * that what the peer sends is still received. If the peer's end of stream comes without its end of
 * TLS somebody may have cut it off: handlers hear the error WEIR_ECUTOFF before `inactive`.
 *
 * In mid-stream (start_tls, or a client that adds the handler when the server has agreed) a decoder
 * behind may still have bytes that came in clear, from whomever: such that followed the word that
 * asked for TLS. They must not be taken for protected ones. So put a new decoder in its place with
 * the handshake's event, and close if the old one has something left.
 *
 * weir_channel_abort goes past all handlers: what TLS holds back fails, and to the peer it looks as
 * if it had been cut off.
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
    const char *server_name; /* a client: whom it wants to reach, a name or an address; asked for
                                and verified. A client that verifies must say */
    bool start_tls;          /* the first message that is written goes out in clear; then it begins
                                ("220 go ahead") */
    int64_t handshake_timeout_ns;  /* default 10 s; WEIR_OFF = none */
    int64_t close_timeout_ns;      /* a close waits so long, if there are writes, for a handshake
                                      that has no timeout, or for a peer that is to end TLS and
                                      takes nothing; default 3 s. Then it goes on to the transport,
                                      which has close_send_timeout_ns (weir/channel.h) */
    int64_t peer_close_timeout_ns; /* then so long for the peer's end of TLS; default 0: not */
    weir_group *offload;     /* the handshake's work is done on executors of this group; kept. What
                                the peer sends meanwhile is not read; where the handler has an
                                executor of its own (`place`) it cannot be held back, and more than
                                128 KiB of it end the connection */
    weir_promise *handshake; /* completes with the handshake, as its event, or if the handler could
                                not be added; kept. Of one connection: a client that tries several
                                addresses has one for each, and those that lose have failed */
    const weir_place *place; /* default: last */
} weir_tls_options;

#define WEIR_TLS_OPTIONS(...) WEIR_OPTIONS(weir_tls_options, __VA_ARGS__)

/*
 * Adds the handler at the end of a pipeline, or where the options say. A name that will not do is
 * told in words by weir_tls_reason, and logged.
 * Thread: any.  Lends until it returns: options.  Keeps: context.  Fails: -EINVAL (also a client
 * that verifies and does not say whom), WEIR_ETLS, and as weir_pipeline_add.
 */
WEIR_API int weir_tls_add(weir_pipeline *pipeline, weir_tls_context *context);
WEIR_API int weir_tls_add_with(weir_pipeline *pipeline, weir_tls_context *context,
                               const weir_tls_options *options);

/* ---- the handshake ---- */

/* How the handshake went, and what was agreed upon: an event, which is a message. Fired once. */
typedef struct weir_tls_handshake weir_tls_handshake;

/*
 * The handshake that an event is, or NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_tls_handshake *weir_tls_handshake_of(const weir_msg *event);

/*
 * The same at any later time, of the first TLS handler of a pipeline; NULL if there is none, its
 * handshake has not succeeded, or there is no memory.
 * Thread: loop.  Gives: the handshake, to be released as the message that it is.
 */
WEIR_API weir_msg *weir_tls_read_handshake(weir_pipeline *pipeline);

/*
 * 0 if it succeeded, else its error, and what was wrong in words: by which side.
 * Thread: any.
 */
WEIR_API int weir_tls_handshake_result(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_detail(const weir_tls_handshake *handshake);

/*
 * What was agreed upon: "TLSv1.3", "TLS_AES_256_GCM_SHA384"; the protocol, "" if none; the name
 * that the client asked for, in lower case and without a dot at its end, "" if none.
 * Thread: any.
 */
WEIR_API const char *weir_tls_handshake_version(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_cipher(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_alpn(const weir_tls_handshake *handshake);
WEIR_API const char *weir_tls_handshake_server_name(const weir_tls_handshake *handshake);

/*
 * Whether an earlier session was taken up again.
 * Thread: any.
 */
WEIR_API bool weir_tls_handshake_is_resumed(const weir_tls_handshake *handshake);

/*
 * Whether the server has stapled an OCSP response, good or not, as a client sees it. Where
 * authorities are believed, one of theirs that says that the certificate is revoked makes the
 * handshake fail. One that cannot be verified (signed by somebody else, too old, damaged) counts as
 * none: who has stolen a key need not staple anything. Only if the certificate demands a response
 * (must-staple) the handshake fails without a good one.
 * Thread: any.
 */
WEIR_API bool weir_tls_handshake_is_stapled(const weir_tls_handshake *handshake);

/*
 * The peer's certificate, borrowed; NULL if it has shown none. With WEIR_TLS_VERIFY_NONE nobody has
 * looked whether it can be believed.
 * Thread: any.
 */
WEIR_API weir_tls_certificate *weir_tls_handshake_peer(const weir_tls_handshake *handshake);

/* ---- the end ---- */

/*
 * The event that the peer has ended TLS properly: nothing more comes from it. Without half closure
 * the channel is closed then. With it the events of the end of the input follow, also if the peer's
 * stream has not ended, and we may go on sending.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_tls_closed(void);

/* --- tls detect ------------------------------------------------------------------------------- */

/*
 * Plain or TLS on one port: the first bytes decide.
 *
 *      weir_tls_detect_add(pipeline, WEIR_TLS_DETECT_OPTIONS(.context = tls,
 *                                                            .init = init_echo));
 *
 * A client that begins as TLS does gets the TLS handler in this place; any other none. Then `init`
 * runs, which adds the handlers behind, and the bytes go on to them. A client that says nothing is
 * closed after a while, with the error -ETIMEDOUT: this is for protocols in which clients speak
 * first.
 */

/* The pipeline behind: an error closes the channel. Thread: loop. */
typedef int weir_tls_detect_fn(weir_channel *channel, bool is_tls, void *user_data);

/* Zero means default. Build with WEIR_TLS_DETECT_OPTIONS(...). */
typedef struct weir_tls_detect_options {
    size_t size;
    weir_tls_context *context;   /* of a server; kept */
    const weir_tls_options *tls; /* of the handler: its time limits, and where it works; NULL =
                                    every default */
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
WEIR_API int weir_tls_detect_add(weir_pipeline *pipeline, const weir_tls_detect_options *options);

/* --- tls hello -------------------------------------------------------------------------------- */

/*
 * What a TLS client says first, read without answering: for proxies that look at
 * the name and pass all bytes on.
 *
 *      weir_tls_hello_add(pipeline,
 *                         WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .user_data = proxy));
 *
 * The bytes are held until the hello is complete; then it is told, then they go on as they came,
 * and the handler goes: on_hello may add others behind it, or stop the reading. Where reads are on
 * demand it asks for as many as the hello takes. Anything else, WEIR_ENOTTLS say, or a client that
 * takes too long, is an error, and the channel is closed.
 *
 * What is read is nothing but what somebody says: no certificate was shown, no name proven.
 */

/* The longest hello that is read: 4 records' worth. */
#define WEIR_TLS_HELLO_MAX 65536

typedef struct weir_tls_hello {
    char server_name[256]; /* in lower case: letters, digits and "-_.:"; "" if none */
    char alpn[256];        /* what is offered, by commas, as far as it can be printed and there is
                              room; "" if none */
    uint16_t version;      /* the highest that is offered: 0x0303 = 1.2, 0x0304 = 1.3; 0 = none that
                              exists */
    uint64_t reserved[4];
} weir_tls_hello;

/*
 * Reads a hello from the first bytes of a stream: 1 if it is complete, 0 if more bytes are needed.
 * Thread: any.  Fails: WEIR_ENOTTLS (it is not a TLS client), WEIR_EMALFORMED (it pretends to be
 * one), WEIR_ETOOLONG (beyond WEIR_TLS_HELLO_MAX).
 */
WEIR_API int weir_tls_hello_read(weir_span bytes, weir_tls_hello *ret_hello);

/* Tells of a hello. An error closes the channel. Thread: the handler's. */
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
WEIR_API int weir_tls_hello_add(weir_pipeline *pipeline, const weir_tls_hello_options *options);

#ifdef __cplusplus
}
#endif

#endif
