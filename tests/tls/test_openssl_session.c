/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sessions on OpenSSL that talk in memory.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>

#include "os/thread.h"
#include "support/test.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"
#include "tls/openssl/internal.h"

#define LARGE (1 << 20)

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

static void end_one(struct session_side *side)
{
    weir__openssl_session_close(side->session, &side->io);
}

static void chat(struct session_pair *pair)
{
    assert_int_equal(session_side_seal(&pair->client, "hello", 5), 0);
    session_side_expect(&pair->server, "hello", 5);
    assert_int_equal(session_side_seal(&pair->server, "hello yourself", 14), 0);
    session_side_expect(&pair->client, "hello yourself", 14);
}

/* ---- the handshake ---- */

TEST(openssl, two_sessions_talk)
{
    static const char *const names[] = {"TLSv1.2", "TLSv1.3"};
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        weir__openssl_session_negotiated(pair.client.session, &negotiated);
        assert_string_equal(negotiated.version, names[i]);
        assert_non_null(strstr(negotiated.cipher, "AES"));
        assert_string_equal(negotiated.alpn, "");
        assert_string_equal(negotiated.server_name, "example.test");
        assert_false(negotiated.is_resumed);
        assert_false(negotiated.is_stapled);
        weir__openssl_session_negotiated(pair.server.session, &negotiated);
        assert_string_equal(negotiated.version, names[i]);
        assert_string_equal(negotiated.server_name, "example.test");
        chat(&pair);
        session_pair_close(&pair);
    }
}

TEST(openssl, a_key_may_be_rsa)
{
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open(
            &pair, session_pair_client_context(versions[i]),
            session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki_rsa()->certificate,
                                                          .key_pem = pki_rsa()->key),
                                 true),
            "localhost");
        assert_true(session_pair_handshake(&pair));
        chat(&pair);
        session_pair_close(&pair);
    }
}

TEST(openssl, bytes_may_come_in_any_pieces)
{
    static const size_t pieces[] = {1, 2, 3, 5, 6, 7, 61, 512, 4095};
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
            session_pair_open_default(&pair, versions[i]);
            session_pair_set_piece(&pair, pieces[j]);
            assert_true(session_pair_handshake(&pair));
            chat(&pair);
            end_one(&pair.client);
            assert_int_equal(session_side_receive(&pair.server), WEIR__OPENSSL_CLOSED);
            session_pair_close(&pair);
        }
    }
}

/* The client is through first with 1.3, and its data stands right behind its last message. */
TEST(openssl, bytes_behind_the_handshake_stay_where_they_are)
{
    struct session_pair pair;

    session_pair_open_default(&pair, WEIR_TLS_VERSION_1_3);
    while (pair.client.status != WEIR__OPENSSL_DONE) {
        assert_int_equal(session_side_step(&pair.client), 0);
        if (pair.client.status == WEIR__OPENSSL_DONE)
            break;
        assert_int_equal(session_side_step(&pair.server), 0);
    }
    assert_int_equal(session_side_seal(&pair.client, "early", 5), 0);
    assert_int_equal(session_side_step(&pair.server), 0);
    assert_int_equal(pair.server.status, WEIR__OPENSSL_DONE);
    assert_int_equal(weir_buf_readable(pair.server.io.in), 5 + 5 + 1 + 16);
    session_side_expect(&pair.server, "early", 5);
    session_pair_close(&pair);
}

/* ---- bytes ---- */

static uint8_t *some_bytes(size_t length)
{
    uint8_t *bytes = malloc(length);
    uint32_t state = 1;

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(state >> 24);
    }
    return bytes;
}

TEST(openssl, much_passes_as_it_was)
{
    uint8_t *bytes = some_bytes(LARGE);
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        session_pair_set_piece(&pair, 10007);
        assert_int_equal(session_side_seal(&pair.client, bytes, LARGE), 0);
        session_side_expect(&pair.server, bytes, LARGE);
        assert_int_equal(session_side_seal(&pair.server, bytes, LARGE), 0);
        session_side_expect(&pair.client, bytes, LARGE);
        session_pair_close(&pair);
    }
    free(bytes);
}

static size_t sealed_length(struct session_side *side, const uint8_t *bytes, size_t length)
{
    size_t before = side->io.out != NULL ? weir_buf_readable(side->io.out) : 0;

    assert_int_equal(session_side_seal(side, bytes, length), 0);
    return weir_buf_readable(side->io.out) - before;
}

TEST(openssl, a_seal_is_one_record_of_a_known_size)
{
    static const size_t lengths[] = {
        1, 2, 100, 4096, WEIR__TLS_RECORD_MAX - 1, WEIR__TLS_RECORD_MAX};
    uint8_t *bytes = some_bytes(WEIR__TLS_RECORD_MAX);
    const uint8_t *record;
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
            size_t length = sealed_length(&pair.client, bytes, lengths[j]);

            assert_in_range(length, lengths[j] + 5, lengths[j] + WEIR__TLS_RECORD_EXTRA);
            record = weir_buf_space(pair.client.io.out) - length;
            assert_int_equal(record[0], 23);
            assert_int_equal((size_t)record[3] << 8 | record[4], length - 5);
        }
        session_pair_close(&pair);
    }
    free(bytes);
}

/* Of records: how many they are, and how many bytes the last one has, with its header. */
static size_t count_records(const uint8_t *records, size_t length, size_t *ret_last)
{
    size_t count = 0;

    for (size_t at = 0; at < length; at += *ret_last, count++) {
        *ret_last =
            (size_t)SSL3_RT_HEADER_LENGTH + ((size_t)records[at + 3] << 8 | records[at + 4]);
        assert_int_equal(records[at], SSL3_RT_APPLICATION_DATA);
        assert_true(at + *ret_last <= length);
    }
    return count;
}

TEST(openssl, a_long_seal_is_full_records_and_one_of_the_rest)
{
    size_t length = 7 * (size_t)WEIR__TLS_RECORD_MAX, last = 0;
    uint8_t *bytes = some_bytes(length + 100);
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        size_t sealed = sealed_length(&pair.client, bytes, length + 100);

        assert_int_equal(count_records(weir_buf_space(pair.client.io.out) - sealed, sealed, &last),
                         8);
        assert_in_range(last, 100 + SSL3_RT_HEADER_LENGTH, 100 + WEIR__TLS_RECORD_EXTRA);
        session_side_expect(&pair.server, bytes, length + 100);
        session_pair_close(&pair);
    }
    free(bytes);
}

/* OpenSSL has a way of its own for long writes with some ciphers that authenticate by HMAC. */
TEST(openssl, much_passes_with_a_cipher_of_several_blocks_at_a_time)
{
    uint8_t *bytes = some_bytes(LARGE);
    struct session_pair pair;

    session_pair_open(
        &pair,
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                                      .max_version = WEIR_TLS_VERSION_1_2,
                                                      .ciphers = "ECDHE-ECDSA-AES128-SHA256"),
                             false),
        session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                      .key_pem = pki()->server.key,
                                                      .ciphers = "ECDHE-ECDSA-AES128-SHA256"),
                             true),
        "example.test");
    assert_true(session_pair_handshake(&pair));
    assert_int_equal(session_side_seal(&pair.client, bytes, LARGE), 0);
    session_side_expect(&pair.server, bytes, LARGE);
    assert_int_equal(session_side_seal(&pair.server, bytes, LARGE), 0);
    session_side_expect(&pair.client, bytes, LARGE);
    session_pair_close(&pair);
    free(bytes);
}

TEST(openssl, what_finds_no_room_comes_with_the_next_call)
{
    uint8_t *bytes = some_bytes(3000);
    weir_buf *plain;
    struct session_pair pair;
    size_t received = 0;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_3);
    assert_int_equal(session_side_seal(&pair.client, bytes, 1000), 0);
    assert_int_equal(session_side_seal(&pair.client, bytes + 1000, 2000), 0);
    session_side_fetch(&pair.server);
    for (;;) {
        int status;

        assert_int_equal(weir_buf_create(64, 64, &plain), 0);
        status = weir__openssl_session_open(pair.server.session, &pair.server.io, plain);
        assert_memory_equal(weir_buf_bytes(plain), bytes + received, weir_buf_readable(plain));
        received += weir_buf_readable(plain);
        weir_buf_release(plain);
        if (status != WEIR__OPENSSL_DONE) {
            assert_int_equal(status, WEIR__OPENSSL_WANT_READ);
            break;
        }
    }
    assert_int_equal(received, 3000);
    session_pair_close(&pair);
    free(bytes);
}

TEST(openssl, keys_may_change)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_3);
    chat(&pair);
    assert_int_equal(SSL_key_update(pair.client.session->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(session_side_seal(&pair.client, "with a new key", 14), 0);
    session_side_expect(&pair.server, "with a new key", 14);
    chat(&pair);
    session_pair_close(&pair);
}

/* ---- the end ---- */

TEST(openssl, an_end_is_told_and_the_other_direction_goes_on)
{
    struct session_pair pair;

    for (size_t i = 0; i < 2; i++) {
        session_pair_open_connected(&pair, versions[i]);
        assert_int_equal(session_side_seal(&pair.client, "the last", 8), 0);
        end_one(&pair.client);
        end_one(&pair.client); /* once is enough */
        session_side_expect(&pair.server, "the last", 8);
        assert_int_equal(pair.server.received_status, WEIR__OPENSSL_CLOSED);
        assert_int_equal(session_side_receive(&pair.server), WEIR__OPENSSL_CLOSED);
        assert_int_equal(session_side_seal(&pair.server, "still here", 10), 0);
        end_one(&pair.server);
        session_side_expect(&pair.client, "still here", 10);
        assert_int_equal(pair.client.received_status, WEIR__OPENSSL_CLOSED);
        session_pair_close(&pair);
    }
}

TEST(openssl, what_is_behind_the_end_stays)
{
    struct session_pair pair;

    session_pair_open_connected(&pair, WEIR_TLS_VERSION_1_3);
    end_one(&pair.client);
    assert_int_equal(weir_buf_write_bytes(pair.client.io.out, "in clear", 8), 0);
    assert_int_equal(session_side_receive(&pair.server), WEIR__OPENSSL_CLOSED);
    assert_int_equal(weir_buf_readable(pair.server.io.in), 8);
    assert_memory_equal(weir_buf_bytes(pair.server.io.in), "in clear", 8);
    session_pair_close(&pair);
}

TEST(openssl, an_end_before_the_handshake_is_over_says_nothing)
{
    struct session_pair pair;

    session_pair_open_default(&pair, WEIR_TLS_VERSION_1_3);
    end_one(&pair.client);
    assert_null(pair.client.io.out);
    assert_int_equal(session_side_step(&pair.client), 0);
    end_one(&pair.client);
    assert_true(session_pair_handshake(&pair));
    session_pair_close(&pair);
}

/* ---- memory ---- */

/* What they are today and a bit more; a buffer for records would be 16 KiB besides. A client has
 * the certificates of the server. OpenSSL 3.5 keeps more. */
#define IDLE_MORE (OPENSSL_VERSION_NUMBER < 0x30500000L ? 0 : 14000)
#define IDLE_SERVER_MAX (16000 + IDLE_MORE)
#define IDLE_CLIENT_MAX (26000 + IDLE_MORE)

static size_t idle_bytes(enum weir_tls_version version, bool of_server)
{
    static const uint8_t bytes[3 * WEIR__TLS_RECORD_MAX];
    weir__openssl_context *client = session_pair_client_context(version),
                          *server = session_pair_server_context(version);
    struct session_pair pair;
    size_t before, after;

    session_pair_open(&pair, weir__openssl_context_retain(client),
                      weir__openssl_context_retain(server), "example.test");
    assert_true(session_pair_handshake(&pair));
    chat(&pair);
    assert_int_equal(session_side_seal(&pair.client, bytes, sizeof(bytes)), 0);
    session_side_expect(&pair.server, bytes, sizeof(bytes));
    assert_int_equal(session_side_seal(&pair.server, bytes, sizeof(bytes)), 0);
    session_side_expect(&pair.client, bytes, sizeof(bytes));
    before = test_openssl_bytes();
    session_side_close(of_server ? &pair.server : &pair.client);
    after = test_openssl_bytes();
    session_side_close(of_server ? &pair.client : &pair.server);
    weir__openssl_context_release(client);
    weir__openssl_context_release(server);
    return before - after;
}

TEST(openssl, an_idle_session_is_small)
{
    for (size_t i = 0; i < 2; i++) {
        for (int of_server = 0; of_server < 2; of_server++) {
            size_t bytes = idle_bytes(versions[i], of_server != 0);

            print_message("an idle %s of TLS 1.%zu: %zu bytes of OpenSSL's, %zu of ours\n",
                          of_server ? "server" : "client", i + 2, bytes,
                          sizeof(weir__openssl_session));
            assert_in_range(bytes, 1, of_server ? IDLE_SERVER_MAX : IDLE_CLIENT_MAX);
        }
    }
}

/* ---- threads ---- */

#define THREADS 4
#define TALKS 10

/* What several threads share: both context. Nothing is asserted there. */
struct crowd {
    weir__openssl_context *client;
    weir__openssl_context *server;
    _Atomic unsigned pairs;
};

static bool is_over(struct session_pair *pair)
{
    int client, server;

    do {
        client = weir__openssl_session_handshake(pair->client.session, &pair->client.io);
        weir_buf_release(pair->server.io.in);
        pair->server.io.in = pair->client.io.out;
        pair->client.io.out = NULL;
        server = weir__openssl_session_handshake(pair->server.session, &pair->server.io);
        weir_buf_release(pair->client.io.in);
        pair->client.io.in = pair->server.io.out;
        pair->server.io.out = NULL;
    } while (client == WEIR__OPENSSL_WANT_READ && server == WEIR__OPENSSL_WANT_READ);
    return client == WEIR__OPENSSL_DONE || server == WEIR__OPENSSL_DONE;
}

static void run_pairs(void *arg)
{
    struct crowd *crowd = arg;

    for (size_t i = 0; i < TALKS; i++) {
        weir__openssl_session_options client = {.server_name = "example.test"},
                                      server = {.pause_at_hello = false};
        struct session_pair pair = {0};

        if (weir__openssl_session_create(crowd->client, &client, &pair.client.session) == 0) {
            if (weir__openssl_session_create(crowd->server, &server, &pair.server.session) == 0) {
                crowd->pairs += is_over(&pair);
                session_side_close(&pair.server);
            }
            session_side_close(&pair.client);
        }
    }
}

static void run_crowd(struct crowd *crowd)
{
    weir__thread threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("crowd", run_pairs, crowd, &threads[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
}

TEST(openssl, threads_share_contexts_without_leaks)
{
    struct crowd crowd = {.client = session_pair_client_context(0),
                          .server = session_pair_server_context(0)};
    size_t before;

    run_crowd(&crowd);
    before = test_openssl_live();
    run_crowd(&crowd);
    assert_int_equal(crowd.pairs, 2 * THREADS * TALKS);
    assert_true(test_openssl_live() <= before);
    weir__openssl_context_release(crowd.client);
    weir__openssl_context_release(crowd.server);
}
