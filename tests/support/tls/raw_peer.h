/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's own peer of one that plays alone: it does what ours never would. What it sends may be
 * changed, or cut off, on its way.
 *
 *     struct raw_peer raw;
 *     raw_peer_open(&raw, &(const struct raw_peer_options){.is_server = true});
 *     raw.flip_at = 17;
 *     raw_peer_run(&raw);
 *     raw_peer_end_stream(&raw);                   the end of its stream
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
    const char *text;                     /* says this when the handshake is over, */
    bool ends;                            /* and ends TLS */
};

struct raw_peer {
    struct tls_side ours;
    weir_tls_context *context;
    SSL *ssl;
    const char *text;
    bool ends;

    size_t piece;     /* bytes that are received at once; 0 = all */
    size_t delivered; /* bytes that have come to ours */
    size_t flip_at;   /* of these, one that is changed, by these bits; SIZE_MAX: none */
    uint8_t flip_mask;
    size_t cut_at;      /* nothing comes from there on; SIZE_MAX: all */
    bool stops_reading; /* does not take what ours sends */
};

/* A context for ours, which takes up no session again. */
weir_tls_context *raw_peer_context(const struct raw_peer_options *options);

/* Ours has begun, and nothing has been brought to either. */
void raw_peer_open(struct raw_peer *raw, const struct raw_peer_options *options);
void raw_peer_close(struct raw_peer *raw);

/* Each hears what the other says, until neither says anything. */
void raw_peer_run(struct raw_peer *raw);

/* Only to ours: what OpenSSL has to say; or these bytes. */
void raw_peer_transfer(struct raw_peer *raw);
void raw_peer_inject(struct raw_peer *raw, const void *bytes, size_t length);

/* Says something, after the handshake. */
void raw_peer_send_text(struct raw_peer *raw, const char *text);

/* Ends its stream, and lets the longest time pass. */
void raw_peer_end_stream(struct raw_peer *raw);

#endif
