/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals records in the name of an OpenSSL peer, of any type and with anything in them: what OpenSSL
 * itself would never send.
 *
 *     struct forger forger;
 *     forger_prepare(&forger, ssl);                        before the handshake
 *     ...
 *     forger_begin(&forger);                               it is over, and the peer itself writes
 *                                                          no more
 *     length = forger_seal(&forger, SSL3_RT_ALERT, warning, 2, record);
 *     forger_end(&forger);
 *
 * It knows one cipher, AES-128-GCM with SHA-256, which the peer is told to insist on.
 */
#ifndef WEIR_TEST_FORGER_H
#define WEIR_TEST_FORGER_H

#include <openssl/ssl.h>

#include "support/test.h"

#define FORGER_KEY 16
#define FORGER_NONCE 12
#define FORGER_SECRET 32
#define FORGER_EXTRA 32 /* a record is longer than what is in it, by as many bytes at the most */

struct forger {
    SSL *ssl;
    EVP_CIPHER_CTX *cipher;
    bool is_1_3;
    uint64_t sealed;               /* records, with these keys */
    uint8_t secret[FORGER_SECRET]; /* that the keys come from; of TLS 1.3 */
    uint8_t nonce[FORGER_NONCE];   /* what stays the same in it; of TLS 1.2 the first 4 bytes */
};

void forger_prepare(struct forger *forger, SSL *ssl);
void forger_begin(struct forger *forger);
void forger_end(struct forger *forger);

/* Makes a record; returns how long it is. */
size_t forger_seal(struct forger *forger, uint8_t type, const void *bytes, size_t length,
                   uint8_t *ret_record);

/* Of TLS 1.3: goes on with new keys, as who has sent a KeyUpdate has to. */
void forger_renew(struct forger *forger);

#endif
