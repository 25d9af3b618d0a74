/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our side of TLS connections whose other side is a program: a server, or a client that connects
 * as often as it likes.
 *
 *     struct party *party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(...));
 *     ... a program comes to party->port, and leaves ...
 *     assert_party(party, "handshake(OK) ended inactive");
 *     assert_string_equal(party_facts(party).alpn, "h2");
 *     party_end(party);
 *
 * Its handler takes notes: "handshake(RESULT)", "ended" if the peer has ended TLS, "error(NAME)",
 * "inactive"; what has come is kept. A server sends it back, unless it has other manners. Handlers
 * run on the loop: they do not assert.
 */
#ifndef WEIR_TEST_TLS_PARTY_H
#define WEIR_TEST_TLS_PARTY_H

#include <weir/channel.h>
#include <weir/tls.h>

#include "support/channel/event_wait.h"
#include "support/loop/host.h"

#define PARTY_WORDS_SIZE 512

struct party;

/* How a handshake went, which may be the last of several. */
struct party_facts {
    int result;
    bool is_resumed;
    bool is_stapled;
    char version[32];
    char cipher[64];
    char alpn[64];
    char server_name[256];
    char peer[256]; /* the subject of its certificate, "" if it has shown none */
    char detail[PARTY_WORDS_SIZE];
};

/* What is done with bytes that have come, besides being kept; takes msg. */
typedef void party_manner(weir_ctx *ctx, weir_msg *msg);

/* Gives a connection its handlers. */
typedef int party_init_fn(struct party *party, weir_pipeline *pipeline);

struct party {
    struct host *host;
    weir_tls_context *tls;
    weir_channel *listener;
    weir_channel *client; /* the last that has connected */
    unsigned port;        /* where the server is */

    /* May be changed before somebody comes. */
    weir_tls_options options; /* of each connection's handler */
    party_manner *_Atomic manner;
    party_init_fn *_Atomic init;

    struct event_log events;
    struct call_counter notes;
    weir__mutex lock; /* guards all below */
    struct party_facts facts;
    char words[PARTY_WORDS_SIZE]; /* of the last error */
    char *heard;                  /* what has come, with a 0 behind it; NULL: nothing */
    size_t heard_length;
};

/* Makes one that listens at a port of its own; or one that may connect. */
struct party *party_listen(struct host *host, const weir_tls_context_options *options);
struct party *party_visit(struct host *host, const weir_tls_context_options *options);

/* The usual: a server that is "localhost" by our PKI, and a client that believes it. */
struct party *party_listen_as_localhost(struct host *host);
struct party *party_visit_localhost(struct host *host);

/* A server without TLS. */
struct party *party_listen_plainly(struct host *host);

/* Ends the loops of the host, and with them all connections. */
void party_end(struct party *party);

/* Connects a client to a port; its handshake has begun. */
void party_connect(struct party *party, unsigned port);

/* Ends the client's connection. */
void party_leave(struct party *party);

/* Writes to the client's connection. */
void party_say(struct party *party, const char *text);
void party_send(struct party *party, const void *bytes, size_t length);

/* Gives a connection its handlers: TLS if there is a context, and the one that takes notes. */
int party_init(struct party *party, weir_pipeline *pipeline);
int party_add_notes(struct party *party, weir_pipeline *pipeline);

/* The party of the handler that takes notes. */
struct party *party_of(weir_ctx *ctx);

/* Manners: sends it back; or nothing. */
void party_echo(weir_ctx *ctx, weir_msg *msg);
void party_keep(weir_ctx *ctx, weir_msg *msg);

/* Writes a text on behalf of a handler. */
void party_write(weir_ctx *ctx, const char *text);

/* Waits for bytes that have this among them; or for so many. A client that connects has forgotten
 * what came before. */
void party_await_heard(struct party *party, const char *text);
void party_await_length(struct party *party, size_t length);

void party_forget(struct party *party);

/* Whether this is among the bytes that have come; or is all of them. */
bool party_has_heard(struct party *party, const char *text);
bool party_has_heard_only(struct party *party, const void *bytes, size_t length);

/* Waits for a note that begins with this word. */
void party_await(struct party *party, const char *word);

/* As of the last handshake; the words of the last error. */
struct party_facts party_facts(struct party *party);

/* Waits for the last of these notes; then they are all, and are forgotten. */
#define assert_party(party, notes_)                                                             \
    do {                                                                                        \
        char said_[EVENT_LOG_SIZE];                                                             \
        assert_string_equal(events_await_all(&(party)->events, &(party)->notes, notes_, said_), \
                            notes_);                                                            \
    } while (0)

/* The last error, or the handshake's, has these among its words. */
#define assert_words(party, words_) party_check_words(party, words_, __FILE__, __LINE__)

void party_check_words(struct party *party, const char *words, const char *file, int line);

#endif
