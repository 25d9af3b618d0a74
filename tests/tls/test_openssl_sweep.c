/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation fails in turn, ours and OpenSSL's, through the whole life of two sessions: the
 * call says that there is no memory, and nothing is left behind. OpenSSL makes thousands, most of
 * them in arithmetic: of these every 23rd fails, or all with WEIR_SWEEP=all in the environment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include <weir/buf.h>

#include "support/memory.h"
#include "support/test.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/pki.h"
#include "support/tls/session_pair.h"

/* Sessions of both sides, and what passes between them. None of it may assert: memory is out. */
struct life {
    weir__openssl_context *client_context;
    weir__openssl_context *server_context;
    weir__openssl_context *chosen; /* NULL: nobody is asked */
    weir__openssl_session *client;
    weir__openssl_session *server;
    weir__openssl_io client_io;
    weir__openssl_io server_io;
    int client_err;
    int server_err;
    bool is_whole;
};

static void release(struct life *life)
{
    if (life->client != NULL)
        weir__openssl_session_release(life->client);
    if (life->server != NULL)
        weir__openssl_session_release(life->server);
    weir_buf_release(life->client_io.in);
    weir_buf_release(life->client_io.out);
    weir_buf_release(life->server_io.in);
    weir_buf_release(life->server_io.out);
}

/* What one has said the other hears: the same buffer. */
static void hand_over(weir__openssl_io *from, weir__openssl_io *to)
{
    weir_buf_release(to->in);
    to->in = from->out;
    from->out = NULL;
}

static int step(struct life *life, weir__openssl_session *session, weir__openssl_io *io)
{
    int status = weir__openssl_session_handshake(session, io);

    if (status == WEIR__OPENSSL_WANT_CONTEXT) {
        weir__openssl_session_set_context(session, life->chosen);
        status = weir__openssl_session_handshake(session, io);
    }
    return status;
}

static bool complete_handshake(struct life *life)
{
    int client = 0, server = 0;

    for (size_t turn = 0;
         turn < 4 && (client != WEIR__OPENSSL_DONE || server != WEIR__OPENSSL_DONE); turn++) {
        if (client == WEIR__OPENSSL_WANT_READ)
            client = step(life, life->client, &life->client_io);
        hand_over(&life->client_io, &life->server_io);
        if (client >= 0 && server == WEIR__OPENSSL_WANT_READ)
            server = step(life, life->server, &life->server_io);
        if (client < 0 || server < 0)
            break;
        hand_over(&life->server_io, &life->client_io);
    }
    life->client_err = client < 0 ? client : 0;
    life->server_err = server < 0 ? server : 0;
    return client == WEIR__OPENSSL_DONE && server == WEIR__OPENSSL_DONE;
}

static int hear(weir__openssl_session *session, weir__openssl_io *io, const char *expected)
{
    weir_buf *plain;
    int err = weir_buf_create(64, 64, &plain), status;

    if (err < 0)
        return err;
    status = weir__openssl_session_open(session, io, plain);
    if (status >= 0 && (weir_buf_readable(plain) != strlen(expected) ||
                        memcmp(weir_buf_bytes(plain), expected, strlen(expected)) != 0))
        status = WEIR_EMALFORMED;
    weir_buf_release(plain);
    return status;
}

/* 0, or the error: whose it is does not matter. */
static int chat(struct life *life)
{
    int err;

    err = weir__openssl_session_seal(life->client, &life->client_io, (const uint8_t *)"ping", 4);
    if (err < 0)
        return err;
    hand_over(&life->client_io, &life->server_io);
    err = hear(life->server, &life->server_io, "ping");
    if (err < 0)
        return err;
    err = weir__openssl_session_seal(life->server, &life->server_io, (const uint8_t *)"pong", 4);
    if (err < 0)
        return err;
    weir__openssl_session_close(life->server, &life->server_io);
    hand_over(&life->server_io, &life->client_io);
    err = hear(life->client, &life->client_io, "pong");
    return err < 0 ? err : 0;
}

static void live(struct life *life)
{
    weir__openssl_session_options client = {
        .server_name = "other.test", .cache_key = "key", .protocols = "h2"};
    weir__openssl_session_options server = {.pause_at_hello = life->chosen != NULL};

    life->client_err = weir__openssl_session_create(life->client_context, &client, &life->client);
    if (life->client_err == 0)
        life->server_err =
            weir__openssl_session_create(life->server_context, &server, &life->server);
    if (life->client_err == 0 && life->server_err == 0 && complete_handshake(life)) {
        life->client_err = chat(life);
        life->is_whole = life->client_err == 0;
    }
    release(life);
}

/* All of it, or an error: nobody waits for ever. */
static void assert_survived(const struct life *life, unsigned n)
{
    if (!life->is_whole && life->client_err == 0 && life->server_err == 0)
        fail_msg("allocation %u: it is not over, and nobody says why", n);
}

static weir__openssl_context *server_of(const struct pki_leaf *leaf, enum weir_tls_version version)
{
    return session_pair_context(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate,
                                                         .key_pem = leaf->key, .ca_pem = pki()->ca,
                                                         .verify = WEIR_TLS_VERIFY_REQUIRED,
                                                         .max_version = version, .alpn = "h2"),
                                true);
}

static struct life new_life(enum weir_tls_version version, bool asks)
{
    return (struct life){
        .client_context = session_pair_context(
            WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca,
                                     .certificate_pem = pki()->client.certificate,
                                     .key_pem = pki()->client.key),
            false),
        .server_context = server_of(asks ? &pki()->server : &pki()->other, version),
        .chosen = asks ? server_of(&pki()->other, version) : NULL,
    };
}

static void end_life(struct life *life)
{
    weir__openssl_context_release(life->client_context);
    weir__openssl_context_release(life->server_context);
    if (life->chosen != NULL)
        weir__openssl_context_release(life->chosen);
}

static const struct {
    enum weir_tls_version version;
    bool asks;
} kinds[] = {
    {WEIR_TLS_VERSION_1_2, false},
    {WEIR_TLS_VERSION_1_3, false},
    {WEIR_TLS_VERSION_1_2, true},
    {WEIR_TLS_VERSION_1_3, true},
};

TEST(openssl_sweep, our_own_memory_may_fail)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct life life = new_life(kinds[i].version, kinds[i].asks);

        for (unsigned n = 1;; n++) {
            struct life one = life;

            test_memory_fail_at(n);
            live(&one);
            if (!test_memory_failed()) {
                assert_true(one.is_whole);
                break;
            }
            assert_survived(&one, n);
            assert_true(one.client_err == -ENOMEM || one.server_err == -ENOMEM);
        }
        test_memory_fail_at(0);
        end_life(&life);
    }
}

/* Everything runs on one thread, so under TSan a sample is enough. */
#if defined(__SANITIZE_THREAD__)
#define EACH_UP_TO 20
#define STRIDE 151
#elif defined(__SANITIZE_ADDRESS__)
#define EACH_UP_TO 60
#define STRIDE 71
#else
#define EACH_UP_TO 150
#define STRIDE 41
#endif

static unsigned next_after(unsigned n)
{
    const char *sweep = getenv("WEIR_SWEEP");
    bool is_all = sweep != NULL && strcmp(sweep, "all") == 0;

    return is_all || n < EACH_UP_TO ? n + 1 : n + STRIDE;
}

/*
 * OpenSSL does not always know that it was memory, but it has failed. It also keeps what it meets
 * first, so only what is left behind each time is lost.
 */
static bool survive(const struct life *life, unsigned n)
{
    size_t before[3];
    bool has_failed = false;

    for (size_t i = 0; i < 3; i++) {
        struct life one = *life;

        ERR_clear_error(); /* it has copies of names */
        before[i] = test_openssl_live();
        test_openssl_fail_at(n);
        live(&one);
        has_failed = test_openssl_failed();
        test_openssl_fail_at(0);
        assert_survived(&one, n);
        ERR_clear_error();
        if (test_openssl_live() <= before[i])
            return has_failed;
    }
    fail_msg("allocation %u: %zu blocks are left each time", n, test_openssl_live() - before[2]);
    return false;
}

static void warm_up(const struct life *life)
{
    struct life one = *life;

    live(&one);
    assert_true(one.is_whole);
}

TEST(openssl_sweep, openssl_s_memory_may_fail)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct life life = new_life(kinds[i].version, kinds[i].asks);
        unsigned n = 1;

        warm_up(&life);
        while (survive(&life, n))
            n = next_after(n);
        end_life(&life);
    }
}

/* A check that cannot be made is not passed. */
TEST(openssl_sweep, nobody_is_trusted_for_lack_of_memory)
{
    struct life life = new_life(WEIR_TLS_VERSION_1_3, false);

    weir__openssl_context_release(life.server_context);
    life.server_context = server_of(&pki()->wrong_host, WEIR_TLS_VERSION_1_3);
    for (unsigned n = 1;; n = next_after(n)) {
        struct life one = life;

        test_openssl_fail_at(n);
        live(&one);
        assert_true(one.client_err < 0 || one.server_err < 0);
        assert_false(one.is_whole);
        if (!test_openssl_failed())
            break;
    }
    test_openssl_fail_at(0);
    end_life(&life);
}
