/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client and a server of TLS that talk to each other without a network: two embedded channels,
 * and what the one sends is what the other receives. Time stands still unless it is advanced.
 *
 *     struct duet duet;
 *     duet_open(&duet, NULL);
 *     assert_events(&duet.server.events, "shaken(ok)");
 *     duet_say(&duet.client, "hello");
 *     duet_play(&duet);
 *     assert_events(&duet.server.events, "read(hello)");
 *     duet_close(&duet);
 */
#ifndef WEIR_TEST_TLS_PAIR_H
#define WEIR_TEST_TLS_PAIR_H

#include <weir/embedded.h>
#include <weir/tls.h>

#include "support/channel/event_log.h"

/*
 * One of both. The last handler of its pipeline writes down what it hears: "shaken(ok)" or the
 * error's name, "read(text)" (a long one's length), "ended" for the peer's end of TLS,
 * "error(NAME)", "inactive", "writable(no)".
 */
struct duettist {
    weir_embedded *embedded;
    weir_channel *channel;
    weir_pipeline *pipeline;
    struct event_log events;
    char detail[256];  /* of the last error, or handshake that has failed */
    uint64_t received; /* plain bytes */
    uint64_t sent;     /* bytes on the wire */
    bool is_long;      /* what is read is only counted */

    /* Instead of, or besides, writing it down. */
    void (*on_shaken)(weir_ctx *ctx, const weir_tls_handshake *handshake);
    void (*on_read)(weir_ctx *ctx, weir_msg *msg); /* takes msg */
    void (*on_read_complete)(weir_ctx *ctx);
    void (*on_ended)(weir_ctx *ctx);
    void (*on_error)(weir_ctx *ctx, int err);
    void (*on_writability)(weir_ctx *ctx);
};

struct duet_options {
    const weir_tls_context_options *server_context; /* default: pki()->server */
    const weir_tls_context_options *client_context; /* default: trusts pki()->ca */
    const weir_tls_options *server;
    const weir_tls_options *client; /* default: asks for "localhost" */
    const weir_embedded_options *server_channel;
    const weir_embedded_options *client_channel;
};

struct duet {
    struct duettist server;
    struct duettist client;
    weir_tls_context *server_context;
    weir_tls_context *client_context;
    size_t piece;   /* bytes that are received at once; 0 = as they were sent */
    bool is_joined; /* all that was sent is received at once */
};

/* Makes one alone, the handshake not begun: for another peer. */
void duettist_prepare(struct duettist *duettist, weir_tls_context *context,
                      const weir_tls_options *options, const weir_embedded_options *channel);
void duettist_close(struct duettist *duettist);

/* Makes both, the handshake not begun; begins it; all of it, and plays until it is over. */
void duet_prepare(struct duet *duet, const struct duet_options *options);
void duet_begin(struct duet *duet);
void duet_open(struct duet *duet, const struct duet_options *options);
void duet_close(struct duet *duet);

/* Brings what each has sent to the other, until neither has anything to say; the end of a stream
 * too. */
void duet_play(struct duet *duet);

/* The same in one direction, once. False if there was nothing. */
bool duet_bring(struct duet *duet, struct duettist *from, struct duettist *to);

/* Lets time pass for both. */
void duet_advance(struct duet *duet, int64_t duration_ns);

/* Writes and flushes a text; so many bytes that depend on where they are. */
void duet_say(struct duettist *duettist, const char *text);
weir_msg *duet_bytes(size_t length);

/* A promise that is written down: "name=ok" or the error's name. The duettist's. */
weir_promise *duet_promise(struct duettist *duettist, const char *name);

/* Writes a message with such a promise, and does not flush. Takes: msg. */
void duet_write(struct duettist *duettist, weir_msg *msg, const char *name);

/* The one whose last handler this is. */
struct duettist *duettist_of(weir_ctx *ctx);

/* A handler's state, of the TLS handler of a pipeline. */
struct weir__tls *duet_tls(struct duettist *duettist);

#endif
