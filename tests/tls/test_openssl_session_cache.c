/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client remembers, by itself: sessions that are made by hand.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/memory.h"
#include "support/test.h"
#include "tls/openssl/internal.h"

#define LIFETIME_S 100L

/* Created `age_s` seconds ago. */
static SSL_SESSION *session_of(int version, int64_t age_s)
{
    SSL_SESSION *session = SSL_SESSION_new();
    int64_t created_s = weir_time_of_day() / 1000000000 - age_s;

    assert_non_null(session);
    assert_int_equal(SSL_SESSION_set_protocol_version(session, version), 1);
    (void)SSL_SESSION_set_timeout(session, LIFETIME_S);
#if OPENSSL_VERSION_NUMBER < 0x30300000L
    (void)SSL_SESSION_set_time(session, (long)created_s);
#else
    (void)SSL_SESSION_set_time_ex(session, created_s);
#endif
    return session;
}

static SSL_SESSION *add(weir__openssl_session_cache *sessions, const char *key, int version,
                        int64_t age_s)
{
    SSL_SESSION *session = session_of(version, age_s);

    assert_true(weir__openssl_session_cache_add(sessions, key, session));
    return session;
}

static void assert_takes(weir__openssl_session_cache *sessions, const char *key,
                         const SSL_SESSION *expected)
{
    SSL_SESSION *session = weir__openssl_session_cache_take(sessions, key);

    assert_ptr_equal(session, expected);
    SSL_SESSION_free(session);
}

TEST(openssl_sessions, one_of_tls_1_2_is_used_again_and_again)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(4);
    SSL_SESSION *session = add(sessions, "a", TLS1_2_VERSION, 0);

    for (int i = 0; i < 3; i++)
        assert_takes(sessions, "a", session);
    assert_takes(sessions, "b", NULL);
    session = add(sessions, "a", TLS1_2_VERSION, 0);
    assert_takes(sessions, "a", session);
    weir__openssl_session_cache_release(sessions);
}

TEST(openssl_sessions, one_of_tls_1_3_is_used_once_and_the_newest_first)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(16);
    SSL_SESSION *made[6];

    for (int i = 0; i < 6; i++)
        made[i] = add(sessions, "a", TLS1_3_VERSION, 0);
    for (int i = 5; i >= 2; i--) /* four of a key are kept */
        assert_takes(sessions, "a", made[i]);
    assert_takes(sessions, "a", NULL);
    weir__openssl_session_cache_release(sessions);
}

TEST(openssl_sessions, an_expired_one_is_dropped)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(16);
    SSL_SESSION *good;

    (void)add(sessions, "a", TLS1_3_VERSION, LIFETIME_S);
    assert_takes(sessions, "a", NULL);
    good = add(sessions, "a", TLS1_3_VERSION, LIFETIME_S - 10);
    (void)add(sessions, "a", TLS1_3_VERSION, LIFETIME_S + 10);
    assert_takes(sessions, "a", good);
    assert_takes(sessions, "a", NULL);
    weir__openssl_session_cache_release(sessions);
}

/* A new ticket is as old as what it was got with. */
TEST(openssl_sessions, one_whose_peer_was_verified_too_long_ago_is_dropped)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(16);
    int64_t then_s = weir_time_of_day() / 1000000000 - LIFETIME_S;
    SSL_SESSION *session = session_of(TLS1_3_VERSION, 0);

    assert_int_equal(SSL_SESSION_set1_ticket_appdata(session, &then_s, sizeof(then_s)), 1);
    assert_true(weir__openssl_session_cache_add(sessions, "a", session));
    assert_takes(sessions, "a", NULL);
    weir__openssl_session_cache_release(sessions);
}

TEST(openssl_sessions, the_least_used_goes_when_there_are_too_many)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(3);
    SSL_SESSION *a = add(sessions, "a", TLS1_2_VERSION, 0);
    SSL_SESSION *b = add(sessions, "b", TLS1_2_VERSION, 0);
    SSL_SESSION *c = add(sessions, "c", TLS1_2_VERSION, 0);
    SSL_SESSION *d;

    (void)b;
    assert_takes(sessions, "a", a);
    d = add(sessions, "d", TLS1_2_VERSION, 0);
    assert_takes(sessions, "b", NULL);
    assert_takes(sessions, "a", a);
    assert_takes(sessions, "c", c);
    assert_takes(sessions, "d", d);
    weir__openssl_session_cache_release(sessions);
}

TEST(openssl_sessions, many_keys_are_bounded)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(100);
    size_t live = test_memory_live();
    unsigned found = 0;
    char key[16];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "%d", i);
        (void)add(sessions, key, TLS1_3_VERSION, 0);
    }
    assert_int_equal(test_memory_live(), live + 100);
    for (int i = 0; i < 1000; i++) {
        SSL_SESSION *session;

        (void)snprintf(key, sizeof(key), "%d", i);
        session = weir__openssl_session_cache_take(sessions, key);
        found += session != NULL;
        SSL_SESSION_free(session);
    }
    assert_int_equal(found, 100);
    weir__openssl_session_cache_release(sessions);
}

TEST(openssl_sessions, one_that_finds_no_memory_stays_its_owners)
{
    weir__openssl_session_cache *sessions = weir__openssl_session_cache_create(1);
    SSL_SESSION *session = session_of(TLS1_2_VERSION, 0);

    test_memory_fail_at(1);
    assert_false(weir__openssl_session_cache_add(sessions, "a", session));
    test_memory_fail_at(0);
    SSL_SESSION_free(session);
    weir__openssl_session_cache_release(sessions);
    weir__openssl_session_cache_release(NULL);
}

/* ---- threads ---- */

#define THREADS 3
#define ROUNDS 2000

struct shared {
    weir__openssl_session_cache *sessions;
    SSL_SESSION *session; /* of TLS 1.2, which all of them may use */
    atomic_uint taken;
};

static void add_and_take(void *arg)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    struct shared *shared = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        SSL_SESSION *session;

        if (SSL_SESSION_up_ref(shared->session) == 1 &&
            !weir__openssl_session_cache_add(shared->sessions, keys[i % 5], shared->session))
            SSL_SESSION_free(shared->session);
        session = weir__openssl_session_cache_take(shared->sessions, keys[i * 3 % 5]);
        atomic_fetch_add(&shared->taken, session != NULL);
        SSL_SESSION_free(session);
    }
}

TEST(openssl_sessions, threads_share_them)
{
    struct shared shared = {.sessions = weir__openssl_session_cache_create(3),
                            .session = session_of(TLS1_2_VERSION, 0)};
    weir__thread threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("sharer", add_and_take, &shared, &threads[i]), 0);
    for (int i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_true(atomic_load(&shared.taken) > 0);
    weir__openssl_session_cache_release(shared.sessions);
    SSL_SESSION_free(shared.session);
}
