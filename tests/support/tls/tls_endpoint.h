/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our side of TLS connections to a program: a server, or a client that may connect several times.
 *
 *     struct tls_endpoint *endpoint = tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(...));
 *     ... a program connects to endpoint->port, and disconnects ...
 *     assert_endpoint(endpoint, "handshake(OK) ended inactive");
 *     assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "h2");
 *     tls_endpoint_close(endpoint);
 *
 * Its handler records events: "handshake(RESULT)", "ended" for the peer's close_notify,
 * "error(NAME)", "inactive"; received bytes are collected. A server echoes them, unless `on_msg` is
 * changed. Handlers run on the loop: they do not assert.
 */
#ifndef WEIR_TEST_TLS_ENDPOINT_H
#define WEIR_TEST_TLS_ENDPOINT_H

#include <weir/channel.h>
#include <weir/tls.h>

#include "support/channel/event_wait.h"
#include "support/loop/host.h"

#define TLS_ENDPOINT_DETAIL_SIZE 512

struct tls_endpoint;

/* The result of the last handshake. */
struct tls_endpoint_handshake {
    int result;
    bool is_resumed;
    bool is_stapled;
    char version[32];
    char cipher[64];
    char alpn[64];
    char server_name[256];
    char peer[256]; /* the subject of its certificate, "" if it sent none */
    char detail[TLS_ENDPOINT_DETAIL_SIZE];
};

/* Handles received bytes, besides collecting them; takes msg. */
typedef void tls_endpoint_read_fn(weir_ctx *ctx, weir_msg *msg);

/* Adds the handlers of a connection. */
typedef int tls_endpoint_init_fn(struct tls_endpoint *endpoint, weir_pipeline *pipeline);

struct tls_endpoint {
    struct host *host;
    weir_tls_context *tls;
    weir_channel *listener;
    weir_channel *client; /* the last connection */
    unsigned port;        /* where the server is */

    /* May be changed before the first connection. */
    weir_tls_options options; /* of each connection's handler */
    tls_endpoint_read_fn *_Atomic on_msg;
    tls_endpoint_init_fn *_Atomic init;

    struct event_log events;
    struct call_counter notes;
    weir__mutex lock; /* guards all below */
    struct tls_endpoint_handshake facts;
    char detail[TLS_ENDPOINT_DETAIL_SIZE]; /* of the last error */
    char *received;                        /* bytes, zero-terminated; NULL = none */
    size_t received_length;
};

/* Creates a server on a free port; or a client. */
struct tls_endpoint *tls_endpoint_listen(struct host *host,
                                         const weir_tls_context_options *options);
struct tls_endpoint *tls_endpoint_create_client(struct host *host,
                                                const weir_tls_context_options *options);

/* The default: a server for "localhost", and a client that trusts it. */
struct tls_endpoint *tls_endpoint_listen_localhost(struct host *host);
struct tls_endpoint *tls_endpoint_create_localhost_client(struct host *host);

/* A server without TLS. */
struct tls_endpoint *tls_endpoint_listen_plain(struct host *host);

/* Ends the loops of the host, and with them all connections. */
void tls_endpoint_close(struct tls_endpoint *endpoint);

/* Connects a client to a port; its handshake has begun. */
void tls_endpoint_connect(struct tls_endpoint *endpoint, unsigned port);

/* Ends the client's connection. */
void tls_endpoint_disconnect(struct tls_endpoint *endpoint);

/* Writes to the client's connection. */
void tls_endpoint_send_text(struct tls_endpoint *endpoint, const char *text);
void tls_endpoint_send(struct tls_endpoint *endpoint, const void *bytes, size_t length);

/* Adds TLS if there is a context, and the recording handler. */
int tls_endpoint_init(struct tls_endpoint *endpoint, weir_pipeline *pipeline);
int tls_endpoint_add_recorder(struct tls_endpoint *endpoint, weir_pipeline *pipeline);

/* The endpoint of the recording handler. */
struct tls_endpoint *tls_endpoint_of(weir_ctx *ctx);

/* For on_msg: echoes; or does nothing. */
void tls_endpoint_echo(weir_ctx *ctx, weir_msg *msg);
void tls_endpoint_collect(weir_ctx *ctx, weir_msg *msg);

/* Writes a text on behalf of a handler. */
void tls_endpoint_write(weir_ctx *ctx, const char *text);

/* Waits until the received bytes contain this text; or for `length` bytes. A connect clears them.
 */
void tls_endpoint_await_text(struct tls_endpoint *endpoint, const char *text);
void tls_endpoint_await_length(struct tls_endpoint *endpoint, size_t length);

void tls_endpoint_clear(struct tls_endpoint *endpoint);

/* True if the received bytes contain this; or are exactly this. */
bool tls_endpoint_has_received(struct tls_endpoint *endpoint, const char *text);
bool tls_endpoint_has_received_only(struct tls_endpoint *endpoint, const void *bytes,
                                    size_t length);

/* Waits for an event that begins with this word. */
void tls_endpoint_await(struct tls_endpoint *endpoint, const char *word);

/* The last handshake, with the detail of the last error. */
struct tls_endpoint_handshake tls_endpoint_handshake(struct tls_endpoint *endpoint);

/* Waits for these events, asserts that there are no others, and clears them. */
#define assert_endpoint(endpoint, notes_)                                                      \
    do {                                                                                       \
        char said_[EVENT_LOG_SIZE];                                                            \
        assert_string_equal(                                                                   \
            events_await_all(&(endpoint)->events, &(endpoint)->notes, notes_, said_), notes_); \
    } while (0)

/* Asserts that the detail of the last error, or handshake, contains this. */
#define assert_detail(endpoint, detail_) \
    tls_endpoint_check_detail(endpoint, detail_, __FILE__, __LINE__)

void tls_endpoint_check_detail(struct tls_endpoint *endpoint, const char *words, const char *file,
                               int line);

#endif
