/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is taken up again is not verified again: so not for another name, and not for ever.
 */
#include <string.h>

#include "os/clock.h"
#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/pki.h"
#include "tls/openssl/internal.h"
#include "tls/tls_context.h"

#define LIFETIME_S 3600

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

#define EACH_VERSION(v) for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)

static SSL *ssl_of(const struct session_side *side)
{
    return side->session->ssl;
}

static weir_tls_context *server_of(enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(
        weir_tls_server_create(
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                     .key_pem = pki()->server.key, .max_version = version,
                                     .session_lifetime_ns = weir_seconds(LIFETIME_S)),
            &context),
        0);
    return context;
}

/* What a client has of a visit. */
static SSL_SESSION *session_of_visit(weir_tls_context *client, weir_tls_context *server)
{
    SSL_SESSION *session;
    struct session_pair pair;

    assert_true(handshake_run(&pair, client, server));
    session = SSL_get1_session(ssl_of(&pair.client));
    assert_int_equal(SSL_SESSION_is_resumable(session), 1);
    session_pair_close(&pair);
    return session;
}

/* ---- names ---- */

/* A visit under this name, with a session whatever name that is of: what the server says then. */
static weir__openssl_negotiated visit_as(weir_tls_context *client, weir_tls_context *server,
                                         SSL_SESSION *session, const char *name)
{
    weir__openssl_negotiated negotiated;
    struct session_pair pair;

    session_pair_open(&pair, weir__tls_context_current(client), weir__tls_context_current(server),
                      name);
    assert_int_equal(SSL_set_session(ssl_of(&pair.client), session), 1);
    assert_true(session_pair_handshake(&pair));
    weir__openssl_session_negotiated(pair.server.session, &negotiated);
    session_pair_close(&pair);
    return negotiated;
}

TEST(openssl_tickets, a_session_is_not_taken_up_under_another_name)
{
    EACH_VERSION(i)
    {
        weir_tls_context *server = server_of(versions[i]), *client = handshake_client(versions[i]);
        SSL_SESSION *session = session_of_visit(client, server);
        weir__openssl_negotiated negotiated = visit_as(client, server, session, "localhost");

        assert_false(negotiated.is_resumed);
        assert_string_equal(negotiated.server_name, "localhost");
        negotiated = visit_as(client, server, session, "127.0.0.1"); /* is not asked for */
        assert_false(negotiated.is_resumed);
        assert_string_equal(negotiated.server_name, "");
        negotiated = visit_as(client, server, session, "EXAMPLE.test");
        assert_true(negotiated.is_resumed);
        assert_string_equal(negotiated.server_name, "example.test");
        SSL_SESSION_free(session);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

/* ---- age ---- */

static int64_t now_s(void)
{
    return weir_time_of_day() / 1000000000;
}

/* A first visit, after which the server has it that its client was verified at that time. */
static void visit_then(weir_tls_context *client, weir_tls_context *server, int64_t then_s)
{
    struct session_pair pair;

    session_pair_open_with(&pair, weir__tls_context_current(client),
                           weir__tls_context_current(server),
                           &(weir__openssl_session_options){.server_name = HANDSHAKE_SERVER_NAME,
                                                            .cache_key = "there"},
                           false);
    assert_int_equal(session_side_step(&pair.client), 0);
    assert_int_equal(session_side_step(&pair.server), 0);
    assert_int_equal(SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl_of(&pair.server)), &then_s,
                                                     sizeof(then_s)),
                     1);
    assert_true(session_pair_handshake(&pair));
    assert_int_equal(session_side_receive(&pair.client), WEIR__OPENSSL_WANT_READ);
    session_pair_close(&pair);
}

static void assert_verified_at(const struct session_side *side, int64_t then_s)
{
    void *data;
    size_t length;

    assert_int_equal(SSL_SESSION_get0_ticket_appdata(SSL_get_session(ssl_of(side)), &data, &length),
                     1);
    assert_int_equal(length, sizeof(then_s));
    assert_memory_equal(data, &then_s, sizeof(then_s));
}

/* With TLS 1.3 each visit brings a new ticket, which would be good for as long again. */
TEST(openssl_tickets, a_server_does_not_renew_a_session_for_ever)
{
    EACH_VERSION(i)
    {
        weir_tls_context *server = server_of(versions[i]), *client = handshake_client(versions[i]);
        int64_t then_s = now_s() - LIFETIME_S + 60;
        struct session_pair pair;

        visit_then(client, server, then_s);
        for (int visit = 0; visit < 3; visit++) {
            assert_true(handshake_run(&pair, client, server));
            assert_int_equal(SSL_session_reused(ssl_of(&pair.server)), 1);
            assert_verified_at(&pair.server, then_s);
            session_pair_close(&pair);
        }
        weir_tls_context_release(client);
        client = handshake_client(versions[i]);
        visit_then(client, server, now_s() - LIFETIME_S);
        assert_false(handshake_resumes(client, server));
        assert_true(handshake_resumes(client, server));
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

TEST(openssl_tickets, a_client_remembers_when_it_has_verified_its_server)
{
    EACH_VERSION(i)
    {
        weir_tls_context *server = server_of(versions[i]), *client = handshake_client(versions[i]);
        SSL_SESSION *session = session_of_visit(client, server);
        void *data;
        size_t length;
        struct session_pair pair;
        int64_t then_s;

        assert_int_equal(SSL_SESSION_get0_ticket_appdata(session, &data, &length), 1);
        assert_int_equal(length, sizeof(then_s));
        memcpy(&then_s, data, sizeof(then_s));
        assert_in_range(now_s() - then_s, 0, 60);
        then_s -= 60;
        assert_int_equal(SSL_SESSION_set1_ticket_appdata(session, &then_s, sizeof(then_s)), 1);
        assert_true(handshake_run(&pair, client, server)); /* with the newest, which this is */
        assert_int_equal(SSL_session_reused(ssl_of(&pair.client)), 1);
        assert_verified_at(&pair.client, then_s);
        session_pair_close(&pair);
        SSL_SESSION_free(session);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

/* The asked may have a longer one: OpenSSL goes by that. */
TEST(openssl_tickets, the_lifetime_is_that_of_the_chosen)
{
    EACH_VERSION(i)
    {
        weir_tls_context *asked = handshake_server(versions[i]), *chosen = server_of(versions[i]);
        weir_tls_context *client = handshake_client(versions[i]);

        visit_then(client, chosen, now_s() - LIFETIME_S);
        assert_false(handshake_resumes_with(client, asked, chosen));
        assert_true(handshake_resumes_with(client, asked, chosen));
        weir_tls_context_release(client);
        weir_tls_context_release(chosen);
        weir_tls_context_release(asked);
    }
}
