/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys, and records with them, as RFC 5246, 5288 (TLS 1.2) and 8446 (TLS 1.3) have it.
 */
#include "support/tls/record_forger.h"

#include <stdio.h>
#include <string.h>

#include <openssl/hmac.h>

#define BLOCK 32 /* of SHA-256 */
#define HEADER SSL3_RT_HEADER_LENGTH
#define MARK 16    /* that identifies a forged record */
#define EXPLICIT 8 /* of TLS 1.2: the end of the nonce goes with the record */
#define SALT 4     /* of TLS 1.2: its beginning does not */
#define KEYS (2 * RECORD_FORGER_KEY + 2 * SALT)

static void digest(const uint8_t *key, size_t key_length, const uint8_t *bytes, size_t length,
                   uint8_t ret_block[BLOCK])
{
    assert_non_null(
        HMAC(EVP_sha256(), key, (int)key_length, bytes, length, ret_block, &(unsigned){0}));
}

/* ---- keys ---- */

/* A line is: what for, which connection, the secret; in hexadecimal digits. */
static void on_key_log(const SSL *ssl, const char *line)
{
    struct record_forger *forger = SSL_get_app_data(ssl);
    const char *ours = SSL_is_server(ssl) ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";
    const char *digits = strrchr(line, ' ') + 1;

    if (forger == NULL || strncmp(line, ours, strlen(ours)) != 0)
        return;
    assert_int_equal(strlen(digits), 2 * RECORD_FORGER_SECRET);
    for (size_t i = 0; i < RECORD_FORGER_SECRET; i++)
        assert_int_equal(sscanf(digits + 2 * i, "%2hhx", &forger->secret[i]), 1);
}

/* HKDF-Expand-Label; one block is enough for all that we need. */
static void expand(const uint8_t secret[RECORD_FORGER_SECRET], const char *label,
                   uint8_t *ret_bytes, size_t length)
{
    uint8_t info[64], block[BLOCK];
    int size = snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label);

    assert_true(length <= BLOCK);
    info[0] = 0;
    info[1] = (uint8_t)length;
    info[2] = (uint8_t)size;
    info[3 + size] = 0; /* no context */
    info[4 + size] = 1; /* the first block */
    digest(secret, RECORD_FORGER_SECRET, info, (size_t)size + 5, block);
    memcpy(ret_bytes, block, length);
}

static void set_key(struct record_forger *forger, const uint8_t *key)
{
    assert_int_equal(EVP_EncryptInit_ex(forger->cipher, EVP_aes_128_gcm(), NULL, key, NULL), 1);
}

static void derive(struct record_forger *forger)
{
    uint8_t key[RECORD_FORGER_KEY];

    expand(forger->secret, "key", key, sizeof(key));
    expand(forger->secret, "iv", forger->nonce, RECORD_FORGER_NONCE);
    set_key(forger, key);
    forger->sealed = 0;
}

/* P_SHA256 of TLS 1.2, of the master secret and both random numbers, as far as keys need it. */
static void derive_block(SSL *ssl, uint8_t ret_keys[2 * BLOCK])
{
    static const char label[] = "key expansion";
    uint8_t master[SSL_MAX_MASTER_KEY_LENGTH];
    uint8_t text[BLOCK + sizeof(label) - 1 + 2 * SSL3_RANDOM_SIZE]; /* A(i), label, randoms */
    uint8_t *seed = text + BLOCK;
    size_t seed_length = sizeof(text) - BLOCK;
    size_t length = SSL_SESSION_get_master_key(SSL_get_session(ssl), master, sizeof(master));

    memcpy(seed, label, sizeof(label) - 1);
    (void)SSL_get_server_random(ssl, seed + sizeof(label) - 1, SSL3_RANDOM_SIZE);
    (void)SSL_get_client_random(ssl, seed + sizeof(label) - 1 + SSL3_RANDOM_SIZE, SSL3_RANDOM_SIZE);
    digest(master, length, seed, seed_length, text);
    digest(master, length, text, sizeof(text), ret_keys);
    digest(master, length, text, BLOCK, text);
    digest(master, length, text, sizeof(text), ret_keys + BLOCK);
}

/* A client's key, a server's, a client's salt, a server's. The peer has sealed its Finished. */
static void derive_1_2(struct record_forger *forger)
{
    size_t side = SSL_is_server(forger->ssl) != 0;
    uint8_t keys[2 * BLOCK];

    assert_true(KEYS <= sizeof(keys));
    derive_block(forger->ssl, keys);
    set_key(forger, keys + side * RECORD_FORGER_KEY);
    memcpy(forger->nonce, keys + 2 * (size_t)RECORD_FORGER_KEY + side * SALT, SALT);
    forger->sealed = 1;
}

void record_forger_prepare(struct record_forger *forger, SSL *ssl)
{
    *forger = (struct record_forger){.ssl = ssl, .cipher = EVP_CIPHER_CTX_new()};
    assert_non_null(forger->cipher);
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(ssl), on_key_log);
    assert_int_equal(SSL_set_app_data(ssl, forger), 1);
    assert_int_equal(SSL_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256"), 1);
    assert_int_equal(SSL_set_cipher_list(ssl, "ECDHE+AES128+AESGCM"), 1);
    if (SSL_is_server(ssl))
        assert_int_equal(SSL_set_num_tickets(ssl, 0), 1); /* then it has sealed nothing so far */
}

void record_forger_begin(struct record_forger *forger)
{
    assert_true(SSL_is_init_finished(forger->ssl));
    forger->is_1_3 = SSL_version(forger->ssl) == TLS1_3_VERSION;
    (forger->is_1_3 ? derive : derive_1_2)(forger);
}

void record_forger_end(struct record_forger *forger)
{
    (void)SSL_set_app_data(forger->ssl, NULL);
    EVP_CIPHER_CTX_free(forger->cipher);
}

void record_forger_update_keys(struct record_forger *forger)
{
    assert_true(forger->is_1_3);
    expand(forger->secret, "traffic upd", forger->secret, RECORD_FORGER_SECRET);
    derive(forger);
}

/* ---- records ---- */

static void put_number(uint8_t *bytes, uint64_t number)
{
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
}

/* In place; the mark comes behind. */
static void encrypt(struct record_forger *forger, const uint8_t nonce[RECORD_FORGER_NONCE],
                    const uint8_t *around, size_t around_length, uint8_t *bytes, size_t length)
{
    int done;

    assert_int_equal(EVP_EncryptInit_ex(forger->cipher, NULL, NULL, NULL, nonce), 1);
    assert_int_equal(EVP_EncryptUpdate(forger->cipher, NULL, &done, around, (int)around_length), 1);
    if (length > 0)
        assert_int_equal(EVP_EncryptUpdate(forger->cipher, bytes, &done, bytes, (int)length), 1);
    assert_int_equal(EVP_EncryptFinal_ex(forger->cipher, bytes + length, &done), 1);
    assert_int_equal(
        EVP_CIPHER_CTX_ctrl(forger->cipher, EVP_CTRL_AEAD_GET_TAG, MARK, bytes + length), 1);
    forger->sealed++;
}

static void put_header(uint8_t *record, uint8_t type, size_t length)
{
    record[0] = type;
    record[1] = record[2] = 3;
    record[3] = (uint8_t)(length >> 8);
    record[4] = (uint8_t)length;
}

/* The type stands behind what is in it, and all look like data. */
static size_t seal_1_3(struct record_forger *forger, uint8_t type, const void *bytes, size_t length,
                       uint8_t *ret_record)
{
    uint8_t nonce[RECORD_FORGER_NONCE], number[8];

    put_header(ret_record, SSL3_RT_APPLICATION_DATA, length + 1 + MARK);
    memcpy(ret_record + HEADER, bytes, length);
    ret_record[HEADER + length] = type;
    memcpy(nonce, forger->nonce, sizeof(nonce));
    put_number(number, forger->sealed);
    for (size_t i = 0; i < sizeof(number); i++)
        nonce[RECORD_FORGER_NONCE - sizeof(number) + i] ^= number[i];
    encrypt(forger, nonce, ret_record, HEADER, ret_record + HEADER, length + 1);
    return HEADER + length + 1 + MARK;
}

static size_t seal_1_2(struct record_forger *forger, uint8_t type, const void *bytes, size_t length,
                       uint8_t *ret_record)
{
    uint8_t nonce[RECORD_FORGER_NONCE], around[8 + HEADER];

    put_number(around, forger->sealed);
    put_header(around + 8, type, length);
    memcpy(nonce, forger->nonce, SALT);
    memcpy(nonce + SALT, around, EXPLICIT);
    put_header(ret_record, type, EXPLICIT + length + MARK);
    memcpy(ret_record + HEADER, nonce + SALT, EXPLICIT);
    memcpy(ret_record + HEADER + EXPLICIT, bytes, length);
    encrypt(forger, nonce, around, sizeof(around), ret_record + HEADER + EXPLICIT, length);
    return HEADER + EXPLICIT + length + MARK;
}

size_t record_forger_seal(struct record_forger *forger, uint8_t type, const void *bytes,
                          size_t length, uint8_t *ret_record)
{
    return (forger->is_1_3 ? seal_1_3 : seal_1_2)(forger, type, bytes, length, ret_record);
}
