/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of TLS 1.2 that a server remembers for clients without tickets.
 */
#include <string.h>

#include "os/clock.h"
#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/pki.h"
#include "tls/openssl/internal.h"
#include "tls/tls_context.h"

#define LIFETIME_S 3600

static SSL *ssl_of(const struct session_side *side)
{
    return side->session->ssl;
}

#define SERVER_OPTIONS(...)                                                \
    WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate, \
                             .key_pem = pki()->server.key,                 \
                             .session_lifetime_ns = weir_seconds(LIFETIME_S), __VA_ARGS__)

static weir_tls_context *make_server(const weir_tls_context_options *options)
{
    weir_tls_context *context = NULL;

    assert_int_equal(weir_tls_server_create(options, &context), 0);
    return context;
}

/* What the server remembers. */
static size_t remembered(weir_tls_context *server)
{
    weir__openssl_context *context = weir__tls_context_current(server);
    size_t count =
        context->sessions != NULL ? weir__openssl_session_cache_count(context->sessions) : 0;

    weir__openssl_context_release(context);
    return count;
}

/* The handshake of a client without tickets, which brings this session if it is not NULL. */
static void call(struct session_pair *pair, weir_tls_context *client, weir_tls_context *server,
                 SSL_SESSION *session, const char *name)
{
    session_pair_open(pair, weir__tls_context_current(client), weir__tls_context_current(server),
                      name);
    (void)SSL_set_options(ssl_of(&pair->client), SSL_OP_NO_TICKET);
    if (session != NULL)
        assert_int_equal(SSL_set_session(ssl_of(&pair->client), session), 1);
    assert_true(session_pair_handshake(pair));
}

static bool is_resumed(weir_tls_context *client, weir_tls_context *server, SSL_SESSION *session,
                       const char *name)
{
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    call(&pair, client, server, session, name);
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    session_pair_close(&pair);
    return negotiated.is_resumed;
}

static SSL_SESSION *first_visit(weir_tls_context *client, weir_tls_context *server)
{
    SSL_SESSION *session;
    struct session_pair pair;
    unsigned length;

    call(&pair, client, server, NULL, HANDSHAKE_SERVER_NAME);
    session = SSL_get1_session(ssl_of(&pair.client));
    assert_non_null(SSL_SESSION_get_id(session, &length));
    assert_int_equal(SSL_SESSION_has_ticket(session), 0);
    session_pair_close(&pair);
    return session;
}

TEST(openssl_session_ids, a_session_is_resumed_again_and_again)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
    SSL_SESSION *session = first_visit(client, server);

    assert_int_equal(remembered(server), 1);
    for (int i = 0; i < 3; i++)
        assert_true(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME));
    assert_int_equal(remembered(server), 1);
    SSL_SESSION_free(session);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(openssl_session_ids, a_session_is_not_resumed_under_another_name)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
    SSL_SESSION *session = first_visit(client, server);

    assert_false(is_resumed(client, server, session, "localhost"));
    assert_true(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME));
    SSL_SESSION_free(session);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* By the age of the verification, as a ticket. */
TEST(openssl_session_ids, a_session_is_not_resumed_after_its_lifetime)
{
    for (int i = 0; i < 2; i++) {
        int64_t then_s = weir_time_of_day() / 1000000000 - LIFETIME_S + (i == 0 ? 60 : 0);
        weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
        weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
        SSL_SESSION *session;
        struct session_pair pair;

        call(&pair, client, server, NULL, HANDSHAKE_SERVER_NAME);
        session = SSL_get1_session(ssl_of(&pair.client));
        assert_int_equal(SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl_of(&pair.server)),
                                                         &then_s, sizeof(then_s)),
                         1);
        session_pair_close(&pair);
        assert_int_equal(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME), i == 0);
        SSL_SESSION_free(session);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

TEST(openssl_session_ids, the_least_used_is_forgotten_when_there_are_too_many)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server = make_server(SERVER_OPTIONS(.session_cache = 4));
    SSL_SESSION *sessions[10];

    for (size_t i = 0; i < 10; i++) {
        sessions[i] = first_visit(client, server);
        assert_int_equal(remembered(server), i < 4 ? i + 1 : 4);
        assert_true(
            is_resumed(client, server, sessions[0], HANDSHAKE_SERVER_NAME)); /* stays in use */
    }
    assert_false(is_resumed(client, server, sessions[6], HANDSHAKE_SERVER_NAME));
    assert_true(is_resumed(client, server, sessions[9], HANDSHAKE_SERVER_NAME));
    for (size_t i = 0; i < 10; i++)
        SSL_SESSION_free(sessions[i]);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* RFC 5246, 7.2.2: nor may it be resumed by connections that come later. */
TEST(openssl_session_ids, a_session_whose_connection_failed_is_not_resumed)
{
    static const uint8_t damaged[] = {23, 3, 3, 0, 40, 1, 2, 3};
    uint8_t record[45] = {0};
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
    SSL_SESSION *session = first_visit(client, server);
    weir_buf *plain = NULL, *in = NULL;
    struct session_pair pair;

    call(&pair, client, server, session, HANDSHAKE_SERVER_NAME);
    memcpy(record, damaged, sizeof(damaged));
    assert_int_equal(weir_buf_create_from(record, sizeof(record), &in), 0);
    assert_int_equal(weir_buf_create(64, 0, &plain), 0);
    assert_int_equal(weir__openssl_session_open(pair.server.session,
                                                &(weir__openssl_io){.in = in, .out = in}, plain),
                     WEIR_ETLS);
    weir_buf_release(in);
    weir_buf_release(plain);
    session_pair_close(&pair);
    assert_false(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME));
    SSL_SESSION_free(session);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(openssl_session_ids, sessions_survive_another_certificate)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
    SSL_SESSION *session = first_visit(client, server);

    assert_int_equal(weir_tls_context_reload(server), 0);
    assert_true(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME));
    assert_int_equal(
        weir_tls_context_replace(
            server, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                             .key_pem = pki()->renewed.key)),
        0);
    assert_true(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME));
    SSL_SESSION_free(session);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* Where other peers are trusted, or nothing is to be resumed. */
TEST(openssl_session_ids, sessions_do_not_survive_other_rules)
{
    const weir_tls_context_options *rules[] = {
        SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_OPTIONAL, .ca_pem = pki()->ca),
        SERVER_OPTIONS(.resumption = WEIR_OFF),
        SERVER_OPTIONS(.session_ids = WEIR_OFF),
    };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
        weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
        SSL_SESSION *session = first_visit(client, server);

        assert_int_equal(weir_tls_context_replace(server, rules[i]), 0);
        assert_false(is_resumed(client, server, session, HANDSHAKE_SERVER_NAME));
        SSL_SESSION_free(session);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

/* Their tickets are all that is needed. */
TEST(openssl_session_ids, sessions_with_tickets_are_not_remembered)
{
    static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

    for (size_t i = 0; i < 2; i++) {
        weir_tls_context *client = handshake_client(versions[i]),
                         *server = handshake_server(versions[i]);

        assert_false(handshake_resumes(client, server));
        assert_true(handshake_resumes(client, server));
        assert_int_equal(remembered(server), 0);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

#define MANY 200

TEST(openssl_session_ids, a_session_costs_less_than_2_kb)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server = make_server(SERVER_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE));
    size_t before = 0;

    for (int i = 0; i <= MANY; i++) {
        SSL_SESSION_free(first_visit(client, server));
        if (i == 0)
            before = test_openssl_bytes();
    }
    assert_int_equal(remembered(server), MANY + 1);
    print_message("a remembered session: %zu bytes of OpenSSL's\n",
                  (test_openssl_bytes() - before) / MANY);
    assert_true(test_openssl_bytes() - before < (size_t)MANY * 2048);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}
