/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS client and a TLS server without a network: two embedded channels, each of which receives
 * what the other sends. The clock is manual.
 *
 *     struct tls_pair pair;
 *     tls_pair_open(&pair, NULL);
 *     assert_events(&pair.server.events, "handshake(ok)");
 *     tls_side_send_text(&pair.client, "hello");
 *     tls_pair_run(&pair);
 *     assert_events(&pair.server.events, "read(hello)");
 *     tls_pair_close(&pair);
 */
#ifndef WEIR_TEST_TLS_PAIR_H
#define WEIR_TEST_TLS_PAIR_H

#include <weir/embedded.h>
#include <weir/tls.h>

#include "support/channel/event_log.h"

/*
 * One side. The last handler of its pipeline records events: "handshake(ok)" or the error's name,
 * "read(text)" (or its length, if it is long), "ended" for the peer's close_notify,
 * "error(NAME)", "inactive", "writable(no)".
 */
struct tls_side {
    weir_embedded *embedded;
    weir_channel *channel;
    weir_pipeline *pipeline;
    struct event_log events;
    char detail[256];  /* of the last error, or failed handshake */
    uint64_t received; /* plain bytes */
    uint64_t sent;     /* bytes on the wire */
    bool is_long;      /* reads are only counted */

    /* Called instead of, or besides, recording. */
    void (*on_handshake)(weir_ctx *ctx, const weir_tls_handshake *handshake);
    void (*on_read)(weir_ctx *ctx, weir_msg *msg); /* takes msg */
    void (*on_read_complete)(weir_ctx *ctx);
    void (*on_ended)(weir_ctx *ctx);
    void (*on_event)(weir_ctx *ctx, const weir_msg *event); /* any, before it is recorded */
    void (*on_error)(weir_ctx *ctx, int err);
    void (*on_writability)(weir_ctx *ctx);
};

struct tls_pair_options {
    const weir_tls_context_options *server_context; /* default: pki()->server */
    const weir_tls_context_options *client_context; /* default: trusts pki()->ca */
    const weir_tls_options *server;
    const weir_tls_options *client; /* default: asks for "localhost" */
    const weir_embedded_options *server_channel;
    const weir_embedded_options *client_channel;
};

struct tls_pair {
    struct tls_side server;
    struct tls_side client;
    weir_tls_context *server_context;
    weir_tls_context *client_context;
    size_t piece;   /* bytes received at once; 0 = as they were sent */
    bool is_joined; /* everything sent is received at once */
};

/* Creates one side alone, before its handshake: for another peer. */
void tls_side_prepare(struct tls_side *side, weir_tls_context *context,
                      const weir_tls_options *options, const weir_embedded_options *channel);
void tls_side_close(struct tls_side *side);

/* Creates both sides; starts the handshake; or both, and completes it. */
void tls_pair_prepare(struct tls_pair *pair, const struct tls_pair_options *options);
void tls_pair_begin(struct tls_pair *pair);
void tls_pair_open(struct tls_pair *pair, const struct tls_pair_options *options);
void tls_pair_close(struct tls_pair *pair);

/* Transfers what each side has sent, until neither sends anything; also the end of a stream. */
void tls_pair_run(struct tls_pair *pair);

/* The same in one direction, once. False if there was nothing. */
bool tls_pair_transfer(struct tls_pair *pair, struct tls_side *from, struct tls_side *to);

/* Advances the clock of both. */
void tls_pair_advance(struct tls_pair *pair, int64_t duration_ns);

/* Writes and flushes a text; returns `length` bytes that depend on their position. */
void tls_side_send_text(struct tls_side *side, const char *text);
weir_msg *tls_pair_bytes(size_t length);

/* A promise whose result is recorded: "name=ok" or the error's name. Owned by the side. */
weir_promise *tls_side_promise(struct tls_side *side, const char *name);

/* Writes a message with such a promise, and does not flush. Takes: msg. */
void tls_side_write(struct tls_side *side, weir_msg *msg, const char *name);

/* The side whose last handler this is. */
struct tls_side *tls_side_of(weir_ctx *ctx);

/* The state of its TLS handler. */
struct weir__tls *tls_side_state(struct tls_side *side);

#endif
