/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals records of any type and content with the keys of an OpenSSL peer: records that OpenSSL
 * itself would never send.
 *
 *     struct record_forger forger;
 *     record_forger_prepare(&forger, ssl);          before the handshake
 *     ...
 *     record_forger_begin(&forger);                 after it; the peer itself writes no more
 *     length = record_forger_seal(&forger, SSL3_RT_ALERT, warning, 2, record);
 *     record_forger_end(&forger);
 *
 * It supports one cipher, AES-128-GCM with SHA-256, which the peer is configured to use.
 */
#ifndef WEIR_TEST_RECORD_FORGER_H
#define WEIR_TEST_RECORD_FORGER_H

#include <openssl/ssl.h>

#include "support/test.h"

#define RECORD_FORGER_KEY 16
#define RECORD_FORGER_NONCE 12
#define RECORD_FORGER_SECRET 32
#define RECORD_FORGER_EXTRA \
    32 /* a record is longer than what is in it, by as many bytes at the most */

struct record_forger {
    SSL *ssl;
    EVP_CIPHER_CTX *cipher;
    bool is_1_3;
    uint64_t sealed;                      /* records, with these keys */
    uint8_t secret[RECORD_FORGER_SECRET]; /* that the keys come from; of TLS 1.3 */
    uint8_t
        nonce[RECORD_FORGER_NONCE]; /* what stays the same in it; of TLS 1.2 the first 4 bytes */
};

void record_forger_prepare(struct record_forger *forger, SSL *ssl);
void record_forger_begin(struct record_forger *forger);
void record_forger_end(struct record_forger *forger);

/* Makes a record; returns how long it is. */
size_t record_forger_seal(struct record_forger *forger, uint8_t type, const void *bytes,
                          size_t length, uint8_t *ret_record);

/* TLS 1.3: switches to new keys, as after sending a KeyUpdate. */
void record_forger_update_keys(struct record_forger *forger);

#endif
