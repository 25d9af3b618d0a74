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
#include "tls/openssl/session.h"

#define LARGE (1 << 20)

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

static void end_one(struct talker *talker)
{
    talker->session->engine->end(talker->session, &talker->io);
}

static void chat(struct talk *talk)
{
    assert_int_equal(talk_seal(&talk->client, "hello", 5), 0);
    talk_expect(&talk->server, "hello", 5);
    assert_int_equal(talk_seal(&talk->server, "hello yourself", 14), 0);
    talk_expect(&talk->client, "hello yourself", 14);
}

/* ---- the handshake ---- */

TEST(openssl, two_sessions_talk)
{
    static const char *const names[] = {"TLSv1.2", "TLSv1.3"};
    weir__tls_facts facts;
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        talk_begin_over(&talk, versions[i]);
        talk.client.session->engine->facts(talk.client.session, &facts);
        assert_string_equal(facts.version, names[i]);
        assert_non_null(strstr(facts.cipher, "AES"));
        assert_string_equal(facts.alpn, "");
        assert_string_equal(facts.server_name, "example.test");
        assert_false(facts.is_resumed);
        assert_false(facts.is_stapled);
        talk.server.session->engine->facts(talk.server.session, &facts);
        assert_string_equal(facts.version, names[i]);
        assert_string_equal(facts.server_name, "example.test");
        chat(&talk);
        talk_end(&talk);
    }
}

TEST(openssl, a_key_may_be_rsa)
{
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        talk_begin(&talk, talk_client(versions[i]),
                   talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki_rsa()->certificate,
                                                          .key_pem = pki_rsa()->key),
                                 true),
                   "localhost");
        assert_true(talk_handshake(&talk));
        chat(&talk);
        talk_end(&talk);
    }
}

TEST(openssl, bytes_may_come_in_any_pieces)
{
    static const size_t pieces[] = {1, 2, 3, 5, 6, 7, 61, 512, 4095};
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
            talk_begin_plainly(&talk, versions[i]);
            talk_set_piece(&talk, pieces[j]);
            assert_true(talk_handshake(&talk));
            chat(&talk);
            end_one(&talk.client);
            assert_int_equal(talk_hear(&talk.server), WEIR__TLS_ENDED);
            talk_end(&talk);
        }
    }
}

/* The client is through first with 1.3, and its data stands right behind its last message. */
TEST(openssl, bytes_behind_the_handshake_stay_where_they_are)
{
    struct talk talk;

    talk_begin_plainly(&talk, WEIR_TLS_VERSION_1_3);
    while (talk.client.status != WEIR__TLS_DONE) {
        assert_int_equal(talk_step(&talk.client), 0);
        if (talk.client.status == WEIR__TLS_DONE)
            break;
        assert_int_equal(talk_step(&talk.server), 0);
    }
    assert_int_equal(talk_seal(&talk.client, "early", 5), 0);
    assert_int_equal(talk_step(&talk.server), 0);
    assert_int_equal(talk.server.status, WEIR__TLS_DONE);
    assert_int_equal(weir_buf_readable(talk.server.io.in), 5 + 5 + 1 + 16);
    talk_expect(&talk.server, "early", 5);
    talk_end(&talk);
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
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        talk_begin_over(&talk, versions[i]);
        talk_set_piece(&talk, 10007);
        assert_int_equal(talk_seal(&talk.client, bytes, LARGE), 0);
        talk_expect(&talk.server, bytes, LARGE);
        assert_int_equal(talk_seal(&talk.server, bytes, LARGE), 0);
        talk_expect(&talk.client, bytes, LARGE);
        talk_end(&talk);
    }
    free(bytes);
}

static size_t sealed_length(struct talker *talker, const uint8_t *bytes, size_t length)
{
    size_t before = talker->io.out != NULL ? weir_buf_readable(talker->io.out) : 0;

    assert_int_equal(talk_seal(talker, bytes, length), 0);
    return weir_buf_readable(talker->io.out) - before;
}

TEST(openssl, a_seal_is_one_record_of_a_known_size)
{
    static const size_t lengths[] = {
        1, 2, 100, 4096, WEIR__TLS_RECORD_MAX - 1, WEIR__TLS_RECORD_MAX};
    uint8_t *bytes = some_bytes(WEIR__TLS_RECORD_MAX);
    const uint8_t *record;
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        talk_begin_over(&talk, versions[i]);
        for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
            size_t length = sealed_length(&talk.client, bytes, lengths[j]);

            assert_in_range(length, lengths[j] + 5, lengths[j] + WEIR__TLS_RECORD_EXTRA);
            record = weir_buf_space(talk.client.io.out) - length;
            assert_int_equal(record[0], 23);
            assert_int_equal((size_t)record[3] << 8 | record[4], length - 5);
        }
        talk_end(&talk);
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
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        talk_begin_over(&talk, versions[i]);
        size_t sealed = sealed_length(&talk.client, bytes, length + 100);

        assert_int_equal(count_records(weir_buf_space(talk.client.io.out) - sealed, sealed, &last),
                         8);
        assert_in_range(last, 100 + SSL3_RT_HEADER_LENGTH, 100 + WEIR__TLS_RECORD_EXTRA);
        talk_expect(&talk.server, bytes, length + 100);
        talk_end(&talk);
    }
    free(bytes);
}

/* OpenSSL has a way of its own for long writes with some ciphers that authenticate by HMAC. */
TEST(openssl, much_passes_with_a_cipher_of_several_blocks_at_a_time)
{
    uint8_t *bytes = some_bytes(LARGE);
    struct talk talk;

    talk_begin(&talk,
               talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                                      .max_version = WEIR_TLS_VERSION_1_2,
                                                      .ciphers = "ECDHE-ECDSA-AES128-SHA256"),
                             false),
               talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                      .key_pem = pki()->server.key,
                                                      .ciphers = "ECDHE-ECDSA-AES128-SHA256"),
                             true),
               "example.test");
    assert_true(talk_handshake(&talk));
    assert_int_equal(talk_seal(&talk.client, bytes, LARGE), 0);
    talk_expect(&talk.server, bytes, LARGE);
    assert_int_equal(talk_seal(&talk.server, bytes, LARGE), 0);
    talk_expect(&talk.client, bytes, LARGE);
    talk_end(&talk);
    free(bytes);
}

TEST(openssl, what_finds_no_room_comes_with_the_next_call)
{
    uint8_t *bytes = some_bytes(3000);
    weir_buf *plain;
    struct talk talk;
    size_t heard = 0;

    talk_begin_over(&talk, WEIR_TLS_VERSION_1_3);
    assert_int_equal(talk_seal(&talk.client, bytes, 1000), 0);
    assert_int_equal(talk_seal(&talk.client, bytes + 1000, 2000), 0);
    talk_fetch(&talk.server);
    for (;;) {
        int status;

        assert_int_equal(weir_buf_create(64, 64, &plain), 0);
        status = talk.server.session->engine->open(talk.server.session, &talk.server.io, plain);
        assert_memory_equal(weir_buf_bytes(plain), bytes + heard, weir_buf_readable(plain));
        heard += weir_buf_readable(plain);
        weir_buf_release(plain);
        if (status != WEIR__TLS_DONE) {
            assert_int_equal(status, WEIR__TLS_MORE);
            break;
        }
    }
    assert_int_equal(heard, 3000);
    talk_end(&talk);
    free(bytes);
}

TEST(openssl, keys_may_change)
{
    struct talk talk;

    talk_begin_over(&talk, WEIR_TLS_VERSION_1_3);
    chat(&talk);
    assert_int_equal(SSL_key_update(((weir__openssl_session *)(void *)talk.client.session)->ssl,
                                    SSL_KEY_UPDATE_REQUESTED),
                     1);
    assert_int_equal(talk_seal(&talk.client, "with a new key", 14), 0);
    talk_expect(&talk.server, "with a new key", 14);
    chat(&talk);
    talk_end(&talk);
}

/* ---- the end ---- */

TEST(openssl, an_end_is_told_and_the_other_direction_goes_on)
{
    struct talk talk;

    for (size_t i = 0; i < 2; i++) {
        talk_begin_over(&talk, versions[i]);
        assert_int_equal(talk_seal(&talk.client, "the last", 8), 0);
        end_one(&talk.client);
        end_one(&talk.client); /* once is enough */
        talk_expect(&talk.server, "the last", 8);
        assert_int_equal(talk.server.heard_status, WEIR__TLS_ENDED);
        assert_int_equal(talk_hear(&talk.server), WEIR__TLS_ENDED);
        assert_int_equal(talk_seal(&talk.server, "still here", 10), 0);
        end_one(&talk.server);
        talk_expect(&talk.client, "still here", 10);
        assert_int_equal(talk.client.heard_status, WEIR__TLS_ENDED);
        talk_end(&talk);
    }
}

TEST(openssl, what_is_behind_the_end_stays)
{
    struct talk talk;

    talk_begin_over(&talk, WEIR_TLS_VERSION_1_3);
    end_one(&talk.client);
    assert_int_equal(weir_buf_write_bytes(talk.client.io.out, "in clear", 8), 0);
    assert_int_equal(talk_hear(&talk.server), WEIR__TLS_ENDED);
    assert_int_equal(weir_buf_readable(talk.server.io.in), 8);
    assert_memory_equal(weir_buf_bytes(talk.server.io.in), "in clear", 8);
    talk_end(&talk);
}

TEST(openssl, an_end_before_the_handshake_is_over_says_nothing)
{
    struct talk talk;

    talk_begin_plainly(&talk, WEIR_TLS_VERSION_1_3);
    end_one(&talk.client);
    assert_null(talk.client.io.out);
    assert_int_equal(talk_step(&talk.client), 0);
    end_one(&talk.client);
    assert_true(talk_handshake(&talk));
    talk_end(&talk);
}

/* ---- memory ---- */

/* What they are today and a bit more; a buffer for records would be 16 KiB besides. A client has
 * the certificates of the server. */
#define IDLE_SERVER_MAX 16000
#define IDLE_CLIENT_MAX 26000

static size_t idle_bytes(enum weir_tls_version version, bool of_server)
{
    static const uint8_t bytes[3 * WEIR__TLS_RECORD_MAX];
    weir__tls_settings *client = talk_client(version), *server = talk_server(version);
    struct talk talk;
    size_t before, after;

    talk_begin(&talk, weir__tls_openssl.settings_retain(client),
               weir__tls_openssl.settings_retain(server), "example.test");
    assert_true(talk_handshake(&talk));
    chat(&talk);
    assert_int_equal(talk_seal(&talk.client, bytes, sizeof(bytes)), 0);
    talk_expect(&talk.server, bytes, sizeof(bytes));
    assert_int_equal(talk_seal(&talk.server, bytes, sizeof(bytes)), 0);
    talk_expect(&talk.client, bytes, sizeof(bytes));
    before = test_openssl_bytes();
    talk_end_one(of_server ? &talk.server : &talk.client);
    after = test_openssl_bytes();
    talk_end_one(of_server ? &talk.client : &talk.server);
    weir__tls_openssl.settings_release(client);
    weir__tls_openssl.settings_release(server);
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

/* What several threads share: both settings. Nothing is asserted there. */
struct crowd {
    weir__tls_settings *client;
    weir__tls_settings *server;
    _Atomic unsigned talks;
};

static bool is_over(struct talk *talk)
{
    int client, server;

    do {
        client = talk->client.session->engine->handshake(talk->client.session, &talk->client.io);
        weir_buf_release(talk->server.io.in);
        talk->server.io.in = talk->client.io.out;
        talk->client.io.out = NULL;
        server = talk->server.session->engine->handshake(talk->server.session, &talk->server.io);
        weir_buf_release(talk->client.io.in);
        talk->client.io.in = talk->server.io.out;
        talk->server.io.out = NULL;
    } while (client == WEIR__TLS_MORE && server == WEIR__TLS_MORE);
    return client == WEIR__TLS_DONE || server == WEIR__TLS_DONE;
}

static void talk_on_thread(void *arg)
{
    struct crowd *crowd = arg;

    for (size_t i = 0; i < TALKS; i++) {
        weir__tls_peer client = {.server_name = "example.test"}, server = {.asks = false};
        struct talk talk = {0};

        if (weir__tls_openssl.session_create(crowd->client, &client, &talk.client.session) == 0) {
            if (weir__tls_openssl.session_create(crowd->server, &server, &talk.server.session) ==
                0) {
                crowd->talks += is_over(&talk);
                talk_end_one(&talk.server);
            }
            talk_end_one(&talk.client);
        }
    }
}

static void run_crowd(struct crowd *crowd)
{
    weir__thread threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("crowd", talk_on_thread, crowd, &threads[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
}

TEST(openssl, threads_share_settings_and_leave_nothing_behind)
{
    struct crowd crowd = {.client = talk_client(0), .server = talk_server(0)};
    size_t before;

    run_crowd(&crowd);
    before = test_openssl_live();
    run_crowd(&crowd);
    assert_int_equal(crowd.talks, 2 * THREADS * TALKS);
    assert_true(test_openssl_live() <= before);
    weir__tls_openssl.settings_release(crowd.client);
    weir__tls_openssl.settings_release(crowd.server);
}
