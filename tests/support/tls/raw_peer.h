/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bare OpenSSL peer of one of our sides: it can do what ours never does. What it sends may be
 * damaged or truncated on the way.
 *
 *     struct raw_peer raw;
 *     raw_peer_open(&raw, &(const struct raw_peer_options){.is_server = true});
 *     raw.flip_at = 17;
 *     raw_peer_run(&raw);
 *     raw_peer_end_stream(&raw);
 *     assert_events(&raw.ours.events, "handshake(WEIR_ETLS) error(WEIR_ETLS) inactive");
 *     raw_peer_close(&raw);
 */
#ifndef WEIR_TEST_RAW_PEER_H
#define WEIR_TEST_RAW_PEER_H

#include <openssl/ssl.h>

#include "support/tls/tls_pair.h"

struct raw_peer_options {
    bool is_server; /* then ours is the client */
    enum weir_tls_version max_version;
    weir_tls_context *context;            /* of ours; NULL: one that raw_peer_context makes */
    const weir_embedded_options *channel; /* of ours */
    const char *text;                     /* sent after the handshake, */
    bool ends;                            /* followed by close_notify */
};

struct raw_peer {
    struct tls_side ours;
    weir_tls_context *context;
    SSL *ssl;
    const char *text;
    bool ends;

    size_t piece;     /* bytes received at once; 0 = all */
    size_t delivered; /* bytes received by ours */
    size_t flip_at;   /* of these, one that is changed, by flip_mask; SIZE_MAX = none */
    uint8_t flip_mask;
    size_t cut_at;      /* nothing arrives from there on; SIZE_MAX = all arrives */
    bool stops_reading; /* does not read what ours sends */
};

/* A context for ours, without resumption. */
weir_tls_context *raw_peer_context(const struct raw_peer_options *options);

/* Ours has started its handshake, and nothing has been transferred yet. */
void raw_peer_open(struct raw_peer *raw, const struct raw_peer_options *options);
void raw_peer_close(struct raw_peer *raw);

/* Transfers in both directions, until neither sends anything. */
void raw_peer_run(struct raw_peer *raw);

/* Transfers to ours only: what OpenSSL has sent; or these bytes. */
void raw_peer_transfer(struct raw_peer *raw);
void raw_peer_inject(struct raw_peer *raw, const void *bytes, size_t length);

/* Sends a text, after the handshake. */
void raw_peer_send_text(struct raw_peer *raw, const char *text);

/* Ends its stream, and advances the clock beyond all timeouts. */
void raw_peer_end_stream(struct raw_peer *raw);

#endif
