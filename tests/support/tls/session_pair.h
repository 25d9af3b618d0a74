/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sessions of an engine that talk to each other in memory. What one has left to be sent the
 * other gets in pieces of at most `piece` bytes.
 *
 *      struct talk talk;
 *
 *      talk_begin(&talk, client_settings, server_settings, "example.test");
 *      assert_int_equal(talk_handshake(&talk), 0);
 *      talk_send(&talk.client, "hello", 5);
 *      talk_expect(&talk.server, "hello", 5);
 *      talk_end(&talk);
 */
#ifndef WEIR_TEST_TLS_SESSION_PAIR_H
#define WEIR_TEST_TLS_SESSION_PAIR_H

#include "support/test.h"
#include "tls/engine.h"

struct talker {
    weir__tls_session *session;
    weir__tls_io io;
    struct talker *other;
    size_t piece;
    size_t fetched;   /* bytes that have come */
    size_t flip_at;   /* of these, the one whose lowest bit is turned over; SIZE_MAX: none */
    size_t cut_at;    /* nothing comes from there on; SIZE_MAX: all */
    int status;       /* of the handshake: MORE, DONE, CHOOSE or an error */
    weir_buf *heard;  /* plain bytes */
    int heard_status; /* what `open` said at last */
};

struct talk {
    struct talker client;
    struct talker server;
};

/* Settings of options, which are good. */
weir__tls_settings *talk_settings(const weir_tls_context_options *options, bool is_server);

/* A server that is example.test, and a client that believes it, of TLS 1.3 or at most `version`. */
weir__tls_settings *talk_server(enum weir_tls_version version);
weir__tls_settings *talk_client(enum weir_tls_version version);

/* Releases both settings, which the sessions keep. */
void talk_begin(struct talk *talk, weir__tls_settings *client, weir__tls_settings *server,
                const char *server_name);
/* The same with a server that asks whom the client wants: CHOOSE. */
void talk_begin_asking(struct talk *talk, weir__tls_settings *client, weir__tls_settings *server,
                       const char *server_name);
/* The first with talk_client and talk_server; and until the handshake is over. */
void talk_begin_plainly(struct talk *talk, enum weir_tls_version version);
void talk_begin_over(struct talk *talk, enum weir_tls_version version);
/* Either of both, with all that a client can say of whom it wants. */
void talk_begin_as(struct talk *talk, weir__tls_settings *client, weir__tls_settings *server,
                   const weir__tls_peer *client_peer, bool asks);
void talk_end(struct talk *talk);
void talk_end_one(struct talker *talker);

/* Both in pieces of so many bytes. */
void talk_set_piece(struct talk *talk, size_t piece);

/* Gets the next piece, if there is one: whether there was. */
bool talk_fetch(struct talker *talker);

/* One step of the handshake, with the next piece if there is one: 0 or the error. */
int talk_step(struct talker *talker);

/* After CHOOSE: the server's settings, which are released, or NULL. */
void talk_choose(struct talk *talk, weir__tls_settings *settings);

/* As far as it gets: true if it is over for both. */
bool talk_handshake(struct talk *talk);

/* Writes records. Returns 0 or the error. */
int talk_seal(struct talker *talker, const void *bytes, size_t length);

/* What the other has sent, to `heard`; what the last `open` said. */
int talk_hear(struct talker *talker);

/* That this has come, all of it, and nothing else. */
void talk_expect(struct talker *talker, const void *bytes, size_t length);

#endif
