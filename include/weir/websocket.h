/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/websocket.h - WebSocket (RFC 6455) with permessage-deflate (RFC 7692), servers and clients.
 *
 *      static void on_message(weir_ctx *ctx, weir_msg *msg)         the read slot of "echo"
 *      {
 *          weir_write_and_flush(ctx, msg, NULL);
 *      }
 *
 *      static int add_echo(weir_channel *channel, void *user_data)
 *      {
 *          return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
 *      }
 *
 *      static void open_echo(weir_http_exchange *exchange, void *user_data)   a route of GET
 *      {
 *          weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_echo));
 *      }
 *
 * The upgrade removes the HTTP handlers from the pipeline, adds "websocket" in their place, and
 * calls `init` to add the application's handlers behind it. They read and write weir_ws_message
 * messages. "websocket" checks everything that RFC 6455 demands, answers pings, and does the
 * closing handshake; a peer that breaks the protocol gets the close code that the RFC names.
 *
 * Events, in this order: a weir_ws_opened; messages; a weir_ws_closed, once, also if the connection
 * was lost; then inactive. A weir_close of the application or of a drain begins the closing
 * handshake, with code 1000 or 1001, behind the messages that were written before.
 */
#ifndef WEIR_WEBSOCKET_H
#define WEIR_WEBSOCKET_H

#include <weir/buf.h>
#include <weir/handler.h>
#include <weir/http_client.h>
#include <weir/http_server.h>
#include <weir/msg.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- messages --------------------------------------------------------------------------------- */

/* By their number in a frame. */
enum weir_ws_type {
    WEIR_WS_TEXT = 1,
    WEIR_WS_BINARY = 2,
    WEIR_WS_PING = 9,
    WEIR_WS_PONG = 10,
};

/*
 * A message, or a part of one if `stream` is set. Text that was received is valid UTF-8; text that
 * is written is not checked. A message may be written to several channels: retain it for each.
 */
typedef struct weir_ws_message weir_ws_message;

/*
 * Creates a message: of a buffer; of a copy of bytes. `payload` NULL is empty.
 * Thread: any.  Takes: payload, also if it fails.  Gives: message.  Fails: -ENOMEM, -EINVAL (an
 * unknown type, a ping or pong of more than 125 bytes).
 */
WEIR_API WEIR_MUST_USE int weir_ws_message_create(enum weir_ws_type type, weir_buf *payload,
                                                  weir_ws_message **ret_message);
WEIR_API WEIR_MUST_USE int weir_ws_message_create_from(enum weir_ws_type type, const void *bytes,
                                                       size_t length,
                                                       weir_ws_message **ret_message);

/*
 * The message as a weir_msg, and back: NULL if it is another type of message.
 * Thread: any.
 */
WEIR_API weir_msg *weir_ws_message_msg(weir_ws_message *message);
WEIR_API weir_ws_message *weir_ws_message_of(const weir_msg *msg);

/*
 * Type, and content: borrowed; one piece of memory.
 * Thread: any.
 */
WEIR_API enum weir_ws_type weir_ws_message_type(const weir_ws_message *message);
WEIR_API weir_buf *weir_ws_message_payload(const weir_ws_message *message);
WEIR_API weir_span weir_ws_message_bytes(const weir_ws_message *message);

/*
 * Parts of streamed messages: the first part, and the last one; both of a whole message. A part
 * that is written without being the last leaves the message open: only its next parts, pings and
 * pongs may follow. If the channel refuses a part (WEIR_EFULL, -ENOMEM), it is aborted: the peer
 * would not notice the gap. The same holds for compressed messages, as later ones refer to them.
 * Thread: any; set: before it is written.
 */
WEIR_API bool weir_ws_message_is_first(const weir_ws_message *message);
WEIR_API bool weir_ws_message_is_last(const weir_ws_message *message);
WEIR_API void weir_ws_message_set_part(weir_ws_message *message, bool is_first, bool is_last);

/*
 * Write and flush a copy of a text, or of bytes: from a handler; from any thread.
 * Thread: the handler's; any.  Keeps: done.
 */
WEIR_API void weir_ws_write_text(weir_ctx *ctx, const char *text, weir_promise *done);
WEIR_API void weir_ws_write_binary(weir_ctx *ctx, const void *bytes, size_t length,
                                   weir_promise *done);
WEIR_API void weir_ws_send_text(weir_channel *channel, const char *text, weir_promise *done);
WEIR_API void weir_ws_send_binary(weir_channel *channel, const void *bytes, size_t length,
                                  weir_promise *done);

/* --- opening and closing ---------------------------------------------------------------------- */

/* Close codes of RFC 6455, 7.4.1. Applications have 3000 to 4999. */
enum weir_ws_code {
    WEIR_WS_NORMAL = 1000,
    WEIR_WS_GOING_AWAY = 1001,
    WEIR_WS_PROTOCOL_ERROR = 1002,
    WEIR_WS_UNSUPPORTED = 1003,
    WEIR_WS_NO_CODE = 1005, /* only received: the peer sent none */
    WEIR_WS_LOST = 1006,    /* only received: the connection ended without a closing handshake */
    WEIR_WS_NOT_UTF8 = 1007,
    WEIR_WS_POLICY = 1008,
    WEIR_WS_TOO_LARGE = 1009,
    WEIR_WS_NO_EXTENSION = 1010,
    WEIR_WS_INTERNAL_ERROR = 1011,
};

/*
 * Begins the closing handshake behind the messages written before: sends the code and a reason of
 * at most 123 bytes (NULL = none), waits for the peer's answer and for the end of the connection,
 * at most for close_timeout_ns in all, and longer only while the peer receives what was written
 * before. Then the channel is closed. Messages that are received meanwhile are still passed on.
 * `done` completes as that of weir_channel_close.
 * Thread: any.  Keeps: done.  Fails: -EINVAL (a code that must not be sent, a long reason; a
 * channel that is not a WebSocket: from other threads `done` fails, or a warning is logged),
 * -ENOMEM, WEIR_ECLOSED.
 */
WEIR_API int weir_ws_close(weir_channel *channel, unsigned code, const char *reason,
                           weir_promise *done);

/* The first event. Valid during the event; the response is NULL on a server. */
typedef struct weir_ws_opened {
    weir_msg base;
    const weir_http_request *request;
    const weir_http_response *response;
    const char *protocol; /* the subprotocol; "" = none */
    bool has_deflate;     /* permessage-deflate was agreed on */
} weir_ws_opened;

/* The last event. */
typedef struct weir_ws_closed {
    weir_msg base;
    unsigned code;    /* that was received; WEIR_WS_LOST if none was */
    bool is_clean;    /* both sides have sent a close frame */
    size_t length;    /* of the reason */
    char reason[124]; /* valid UTF-8, and a NUL */
} weir_ws_closed;

/*
 * The event as its type; NULL if it is another one.
 * Thread: any.
 */
WEIR_API const weir_ws_opened *weir_ws_opened_of(const weir_msg *event);
WEIR_API const weir_ws_closed *weir_ws_closed_of(const weir_msg *event);

/* --- connections ------------------------------------------------------------------------------ */

/* Zero means default. Build with WEIR_WS_OPTIONS(.init = ...). A timeout that is WEIR_OFF never
 * expires. */
typedef struct weir_ws_options {
    size_t size;
    weir_init_fn *init;           /* adds the application's handlers, on the loop; required */
    void *user_data;              /* for it */
    const char *const *protocols; /* subprotocols, best first, NULL-terminated; a server selects its
                                     first one that the client offers */
    const char *const *origins;   /* of a server: that browsers may come from, NULL-terminated:
                                     "https://example.org", "*" = any; default: the host that was
                                     asked for; requests without Origin are always accepted */
    uint64_t max_message;         /* bytes, decompressed; more closes with 1009; default 16 MiB */
    bool stream;         /* messages are passed on in parts as they arrive; default: whole */
    bool control_frames; /* pings and pongs are passed on, too; pings are answered either way */
    int64_t ping_interval_ns; /* pings a peer that has been silent for this long, and closes if it
                                 stays so; default 30 s; at most a quarter later */
    int64_t close_timeout_ns; /* for the peer's answer to a close, and its end; default 5 s */

    /* permessage-deflate */
    bool deflate;            /* offered by a client, accepted by a server */
    int deflate_level;       /* 1 to 9; default 6 */
    int deflate_window_bits; /* of our compressor, 9 to 15; default 12: with it, a connection that
                                has compressed holds 54 KiB; with 15, 262 KiB */
    int inflate_window_bits; /* that we ask the peer for, 9 to 15; default 15: a connection that has
                                received holds 39 KiB */
    bool no_context_takeover; /* compresses each message by itself: no memory between messages */
    size_t deflate_min;       /* shorter messages are not compressed; default 64 */
    size_t deflate_max; /* nor are longer ones, because a MiB takes the loop 35 ms; default 1 MiB;
                           parts of streamed messages are */
} weir_ws_options;

#define WEIR_WS_OPTIONS(...) WEIR_OPTIONS(weir_ws_options, __VA_ARGS__)

/*
 * Answers a request for a WebSocket: 101, and the connection becomes one; or the status that says
 * what is wrong: 400, 403 (the origin), 426 (an unknown version, or not an upgrade). The
 * handshake's response has the headers of the exchange. To be called by a route for GET, within its
 * handler or later.
 * Thread: any.  Lends until it returns: options.  Fails: WEIR_EMALFORMED (it answered with an
 * error), -EINVAL (options), and as weir_http_respond.
 */
WEIR_API int weir_ws_accept(weir_http_exchange *exchange, const weir_ws_options *options);

/* Zero means default. Build with WEIR_WS_CLIENT_OPTIONS(.url = "wss://example.org/chat", ...). */
typedef struct weir_ws_client_options {
    size_t size;
    const char *url;           /* "ws://host:port/path?query", "wss://..."; "user:password@" before
                                  the host becomes an Authorization field */
    const weir_ws_options *ws; /* required: its init */
    weir_group *group;         /* event loops; required, or loop */
    weir_tls_context *tls;     /* a client's; required for wss; must outlive the connection */
    weir_http_client_tls_fn *add_tls;            /* weir_tls_add_client */
    const weir_http_headers *headers;            /* more headers of the request; copied */
    int64_t connect_timeout_ns;                  /* up to the response; default 10 s */
    const weir_channel_options *channel_options; /* copied */
    weir_resolver *resolver;                     /* default weir_resolver_default() */
    weir_executor *loop;           /* instead of a group, such as the loop of another channel */
    weir_init_fn *init_connection; /* adds handlers behind the codec of the handshake: they stay
                                      when that is removed, before those of the WebSocket */
    void *user_data;               /* for it; must live until it was called */
} weir_ws_client_options;

#define WEIR_WS_CLIENT_OPTIONS(...) WEIR_OPTIONS(weir_ws_client_options, __VA_ARGS__)

/*
 * Connects and does the opening handshake. The value of `done` is the channel, owned by the
 * promise, after weir_ws_opened; it fails with the error and a detail: "ws://host/: the server
 * answered 404, expected 101". Redirections are not followed. Cancelling `done` aborts the attempt.
 *
 * Its errors are those of weir_client_connect and TLS; -EACCES (status 401 or 403), -ECONNREFUSED
 * (another status), -EPROTONOSUPPORT (.tls has other protocols than http/1.1), WEIR_EMALFORMED (the
 * response is not that of RFC 6455, or selects what was not offered), WEIR_ETOOLONG (its headers),
 * WEIR_ECLOSED and WEIR_ECUTOFF (the connection ended), -ETIMEDOUT, WEIR_ECANCELED, and that of
 * `init`.
 * Thread: any.  Lends until it returns: options.  Keeps: done, and group, loop and resolver until
 * it is open.  Fails: -EINVAL (the log says why), -ENOMEM, -ENOTSUP (a group without event loops,
 * or with a thread per channel), WEIR_EREJECTED (the group has shut down).
 */
WEIR_API WEIR_MUST_USE int weir_ws_connect(const weir_ws_client_options *options,
                                           weir_promise *done);

#ifdef __cplusplus
}
#endif

#endif
