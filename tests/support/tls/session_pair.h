/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sessions that are connected in memory. Each receives what the other sends in pieces of at
 * most `piece` bytes.
 *
 *      struct session_pair pair;
 *
 *      session_pair_open(&pair, client_context, server_context, "example.test");
 *      assert_true(session_pair_handshake(&pair));
 *      session_side_seal(&pair.client, "hello", 5);
 *      session_side_expect(&pair.server, "hello", 5);
 *      session_pair_close(&pair);
 */
#ifndef WEIR_TEST_TLS_SESSION_PAIR_H
#define WEIR_TEST_TLS_SESSION_PAIR_H

#include "support/test.h"
#include "tls/openssl/openssl.h"

struct session_side {
    weir__openssl_session *session;
    weir__openssl_io io;
    struct session_side *other;
    size_t piece;
    size_t fetched;      /* bytes that have come */
    size_t flip_at;      /* of these, the one whose lowest bit is flipped; SIZE_MAX = none */
    size_t cut_at;       /* nothing arrives from there on; SIZE_MAX = all arrives */
    int status;          /* result of the last handshake step */
    weir_buf *received;  /* plain bytes */
    int received_status; /* result of the last `open` */
};

struct session_pair {
    struct session_side client;
    struct session_side server;
};

/* A context of valid options. */
weir__openssl_context *session_pair_context(const weir_tls_context_options *options,
                                            bool is_server);

/* A server for example.test, and a client that trusts it; TLS 1.3 or at most `version`. */
weir__openssl_context *session_pair_server_context(enum weir_tls_version version);
weir__openssl_context *session_pair_client_context(enum weir_tls_version version);

/* Releases both contexts, which the sessions retain. */
void session_pair_open(struct session_pair *pair, weir__openssl_context *client,
                       weir__openssl_context *server, const char *server_name);
/* The same with a server that pauses at the hello: WANT_CONTEXT. */
void session_pair_open_pausing(struct session_pair *pair, weir__openssl_context *client,
                               weir__openssl_context *server, const char *server_name);
/* The first with the default contexts; and with a complete handshake. */
void session_pair_open_default(struct session_pair *pair, enum weir_tls_version version);
void session_pair_open_connected(struct session_pair *pair, enum weir_tls_version version);
/* The same with all options of a client. */
void session_pair_open_with(struct session_pair *pair, weir__openssl_context *client,
                            weir__openssl_context *server,
                            const weir__openssl_session_options *client_peer, bool pauses);
void session_pair_close(struct session_pair *pair);
void session_side_close(struct session_side *side);

/* Sets `piece` of both sides. */
void session_pair_set_piece(struct session_pair *pair, size_t piece);

/* Receives the next piece. False if there is none. */
bool session_side_fetch(struct session_side *side);

/* One step of the handshake, with the next piece if there is one: 0 or the error. */
int session_side_step(struct session_side *side);

/* After WANT_CONTEXT: sets the server's context, which is released; NULL = reject. */
void session_pair_set_context(struct session_pair *pair, weir__openssl_context *context);

/* Runs it as far as possible. True if it is complete on both sides. */
bool session_pair_handshake(struct session_pair *pair);

/* Writes records. Returns 0 or the error. */
int session_side_seal(struct session_side *side, const void *bytes, size_t length);

/* Opens what the other side has sent into `received`. Returns the last result. */
int session_side_receive(struct session_side *side);

/* Asserts that exactly this has been received. */
void session_side_expect(struct session_side *side, const void *bytes, size_t length);

#endif
