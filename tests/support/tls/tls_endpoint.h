/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our side of TLS connections whose other side is a program: a server, or a client that connects
 * as often as it likes.
 *
 *     struct tls_endpoint *endpoint = tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(...));
 *     ... a program comes to endpoint->port, and leaves ...
 *     assert_endpoint(endpoint, "handshake(OK) ended inactive");
 *     assert_string_equal(tls_endpoint_handshake(endpoint).alpn, "h2");
 *     tls_endpoint_close(endpoint);
 *
 * Its handler takes notes: "handshake(RESULT)", "ended" if the peer has ended TLS, "error(NAME)",
 * "inactive"; what has come is kept. A server sends it back, unless it has other manners. Handlers
 * run on the loop: they do not assert.
 */
#ifndef WEIR_TEST_TLS_ENDPOINT_H
#define WEIR_TEST_TLS_ENDPOINT_H

#include <weir/channel.h>
#include <weir/tls.h>

#include "support/channel/event_wait.h"
#include "support/loop/host.h"

#define TLS_ENDPOINT_DETAIL_SIZE 512

struct tls_endpoint;

/* How a handshake went, which may be the last of several. */
struct tls_endpoint_handshake {
    int result;
    bool is_resumed;
    bool is_stapled;
    char version[32];
    char cipher[64];
    char alpn[64];
    char server_name[256];
    char peer[256]; /* the subject of its certificate, "" if it has shown none */
    char detail[TLS_ENDPOINT_DETAIL_SIZE];
};

/* What is done with bytes that have come, besides being kept; takes msg. */
typedef void tls_endpoint_read_fn(weir_ctx *ctx, weir_msg *msg);

/* Gives a connection its handlers. */
typedef int tls_endpoint_init_fn(struct tls_endpoint *endpoint, weir_pipeline *pipeline);

struct tls_endpoint {
    struct host *host;
    weir_tls_context *tls;
    weir_channel *listener;
    weir_channel *client; /* the last that has connected */
    unsigned port;        /* where the server is */

    /* May be changed before somebody comes. */
    weir_tls_options options; /* of each connection's handler */
    tls_endpoint_read_fn *_Atomic on_msg;
    tls_endpoint_init_fn *_Atomic init;

    struct event_log events;
    struct call_counter notes;
    weir__mutex lock; /* guards all below */
    struct tls_endpoint_handshake facts;
    char words[TLS_ENDPOINT_DETAIL_SIZE]; /* of the last error */
    char *received;                       /* what has come, with a 0 behind it; NULL: nothing */
    size_t received_length;
};

/* Makes one that listens at a port of its own; or one that may connect. */
struct tls_endpoint *tls_endpoint_listen(struct host *host,
                                         const weir_tls_context_options *options);
struct tls_endpoint *tls_endpoint_create_client(struct host *host,
                                                const weir_tls_context_options *options);

/* The usual: a server that is "localhost" by our PKI, and a client that believes it. */
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

/* Gives a connection its handlers: TLS if there is a context, and the one that takes notes. */
int tls_endpoint_init(struct tls_endpoint *endpoint, weir_pipeline *pipeline);
int tls_endpoint_add_recorder(struct tls_endpoint *endpoint, weir_pipeline *pipeline);

/* The endpoint of the handler that takes notes. */
struct tls_endpoint *tls_endpoint_of(weir_ctx *ctx);

/* Manners: sends it back; or nothing. */
void tls_endpoint_echo(weir_ctx *ctx, weir_msg *msg);
void tls_endpoint_collect(weir_ctx *ctx, weir_msg *msg);

/* Writes a text on behalf of a handler. */
void tls_endpoint_write(weir_ctx *ctx, const char *text);

/* Waits for bytes that have this among them; or for so many. A client that connects has forgotten
 * what came before. */
void tls_endpoint_await_text(struct tls_endpoint *endpoint, const char *text);
void tls_endpoint_await_length(struct tls_endpoint *endpoint, size_t length);

void tls_endpoint_clear(struct tls_endpoint *endpoint);

/* Whether this is among the bytes that have come; or is all of them. */
bool tls_endpoint_has_received(struct tls_endpoint *endpoint, const char *text);
bool tls_endpoint_has_received_only(struct tls_endpoint *endpoint, const void *bytes,
                                    size_t length);

/* Waits for a note that begins with this word. */
void tls_endpoint_await(struct tls_endpoint *endpoint, const char *word);

/* As of the last handshake; the words of the last error. */
struct tls_endpoint_handshake tls_endpoint_handshake(struct tls_endpoint *endpoint);

/* Waits for the last of these notes; then they are all, and are forgotten. */
#define assert_endpoint(endpoint, notes_)                                                      \
    do {                                                                                       \
        char said_[EVENT_LOG_SIZE];                                                            \
        assert_string_equal(                                                                   \
            events_await_all(&(endpoint)->events, &(endpoint)->notes, notes_, said_), notes_); \
    } while (0)

/* The last error, or the handshake's, has these among its words. */
#define assert_detail(endpoint, words_) \
    tls_endpoint_check_detail(endpoint, words_, __FILE__, __LINE__)

void tls_endpoint_check_detail(struct tls_endpoint *endpoint, const char *words, const char *file,
                               int line);

#endif
