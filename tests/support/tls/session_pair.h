/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sessions of an engine that are connected to each other in memory. What one has left to be
 * sent the other gets in pieces of at most `piece` bytes.
 *
 *      struct session_pair pair;
 *
 *      session_pair_open(&pair, client_settings, server_settings, "example.test");
 *      assert_int_equal(session_pair_handshake(&pair), 0);
 *      talk_send(&pair.client, "hello", 5);
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
    size_t flip_at;      /* of these, the one whose lowest bit is turned over; SIZE_MAX: none */
    size_t cut_at;       /* nothing comes from there on; SIZE_MAX: all */
    int status;          /* of the handshake: MORE, DONE, CHOOSE or an error */
    weir_buf *received;  /* plain bytes */
    int received_status; /* what `open` said at last */
};

struct session_pair {
    struct session_side client;
    struct session_side server;
};

/* Settings of options, which are good. */
weir__openssl_context *session_pair_context(const weir_tls_context_options *options,
                                            bool is_server);

/* A server that is example.test, and a client that believes it, of TLS 1.3 or at most `version`. */
weir__openssl_context *session_pair_server_context(enum weir_tls_version version);
weir__openssl_context *session_pair_client_context(enum weir_tls_version version);

/* Releases both settings, which the sessions keep. */
void session_pair_open(struct session_pair *pair, weir__openssl_context *client,
                       weir__openssl_context *server, const char *server_name);
/* The same with a server that asks whom the client wants: CHOOSE. */
void session_pair_open_pausing(struct session_pair *pair, weir__openssl_context *client,
                               weir__openssl_context *server, const char *server_name);
/* The first with session_pair_client_context and session_pair_server_context; and until the
 * handshake is over. */
void session_pair_open_default(struct session_pair *pair, enum weir_tls_version version);
void session_pair_open_connected(struct session_pair *pair, enum weir_tls_version version);
/* Either of both, with all that a client can say of whom it wants. */
void session_pair_open_with(struct session_pair *pair, weir__openssl_context *client,
                            weir__openssl_context *server,
                            const weir__openssl_session_options *client_peer, bool asks);
void session_pair_close(struct session_pair *pair);
void session_side_close(struct session_side *side);

/* Both in pieces of so many bytes. */
void session_pair_set_piece(struct session_pair *pair, size_t piece);

/* Gets the next piece, if there is one: whether there was. */
bool session_side_fetch(struct session_side *side);

/* One step of the handshake, with the next piece if there is one: 0 or the error. */
int session_side_step(struct session_side *side);

/* After CHOOSE: the server's settings, which are released, or NULL. */
void session_pair_set_context(struct session_pair *pair, weir__openssl_context *settings);

/* As far as it gets: true if it is over for both. */
bool session_pair_handshake(struct session_pair *pair);

/* Writes records. Returns 0 or the error. */
int session_side_seal(struct session_side *side, const void *bytes, size_t length);

/* What the other has sent, to `heard`; what the last `open` said. */
int session_side_receive(struct session_side *side);

/* That this has come, all of it, and nothing else. */
void session_side_expect(struct session_side *side, const void *bytes, size_t length);

#endif
