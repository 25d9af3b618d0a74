/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's own peer of one that plays alone: it does what ours never would. What it sends may be
 * changed, or cut off, on its way.
 *
 *     struct opponent opponent;
 *     opponent_meet(&opponent, &(const struct opponent_options){.is_server = true});
 *     opponent.flip_at = 17;
 *     opponent_play(&opponent);
 *     opponent_leave(&opponent);                   the end of its stream
 *     assert_events(&opponent.ours.events, "shaken(WEIR_ETLS) error(WEIR_ETLS) inactive");
 *     opponent_part(&opponent);
 */
#ifndef WEIR_TEST_RAW_PEER_H
#define WEIR_TEST_RAW_PEER_H

#include <openssl/ssl.h>

#include "support/tls/tls_pair.h"

struct opponent_options {
    bool is_server; /* then ours is the client */
    enum weir_tls_version max_version;
    weir_tls_context *context;            /* of ours; NULL: one that opponent_context makes */
    const weir_embedded_options *channel; /* of ours */
    const char *text;                     /* says this when the handshake is over, */
    bool ends;                            /* and ends TLS */
};

struct opponent {
    struct duettist ours;
    weir_tls_context *context;
    SSL *ssl;
    const char *text;
    bool ends;

    size_t piece;   /* bytes that are received at once; 0 = all */
    size_t brought; /* bytes that have come to ours */
    size_t flip_at; /* of these, one that is changed, by these bits; SIZE_MAX: none */
    uint8_t flip_mask;
    size_t cut_at; /* nothing comes from there on; SIZE_MAX: all */
    bool is_deaf;  /* does not take what ours sends */
};

/* A context for ours, which takes up no session again. */
weir_tls_context *opponent_context(const struct opponent_options *options);

/* Ours has begun, and nothing has been brought to either. */
void opponent_meet(struct opponent *opponent, const struct opponent_options *options);
void opponent_part(struct opponent *opponent);

/* Each hears what the other says, until neither says anything. */
void opponent_play(struct opponent *opponent);

/* Only to ours: what OpenSSL has to say; or these bytes. */
void opponent_bring(struct opponent *opponent);
void opponent_throw(struct opponent *opponent, const void *bytes, size_t length);

/* Says something, after the handshake. */
void opponent_say(struct opponent *opponent, const char *text);

/* Ends its stream, and lets the longest time pass. */
void opponent_leave(struct opponent *opponent);

#endif
