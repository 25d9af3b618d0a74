/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/memory_handshake.h"

#include "support/tls/pki.h"
#include "tls/tls_context.h"

weir_tls_context *handshake_server(enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(
        weir_tls_server_create(
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                     .key_pem = pki()->server.key, .max_version = version),
            &context),
        0);
    return context;
}

weir_tls_context *handshake_client(enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(
        weir_tls_client_create(
            WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .max_version = version), &context),
        0);
    return context;
}

static const weir__openssl_session_options peer = {.server_name = HANDSHAKE_SERVER_NAME,
                                                   .cache_key = "there"};

static bool complete_handshake(struct session_pair *pair)
{
    return session_pair_handshake(pair) &&
           session_side_receive(&pair->client) == WEIR__OPENSSL_WANT_READ;
}

bool handshake_run(struct session_pair *pair, weir_tls_context *client, weir_tls_context *server)
{
    session_pair_open_with(pair, weir__tls_context_current(client),
                           weir__tls_context_current(server), &peer, false);
    return complete_handshake(pair);
}

/* Ends the visit, in which both sides are of one mind. */
static bool is_resumed(struct session_pair *pair)
{
    weir__openssl_negotiated of_client, of_server;

    weir__openssl_session_negotiated(pair->client.session, &of_client);
    weir__openssl_session_negotiated(pair->server.session, &of_server);
    assert_int_equal(of_client.is_resumed, of_server.is_resumed);
    session_pair_close(pair);
    return of_client.is_resumed;
}

bool handshake_resumes(weir_tls_context *client, weir_tls_context *server)
{
    struct session_pair pair;

    assert_true(handshake_run(&pair, client, server));
    return is_resumed(&pair);
}

bool handshake_resumes_with(weir_tls_context *client, weir_tls_context *server,
                            weir_tls_context *chosen)
{
    struct session_pair pair;

    session_pair_open_with(&pair, weir__tls_context_current(client),
                           weir__tls_context_current(server), &peer, true);
    assert_false(session_pair_handshake(&pair));
    session_pair_set_context(&pair, weir__tls_context_current(chosen));
    assert_true(complete_handshake(&pair));
    return is_resumed(&pair);
}
