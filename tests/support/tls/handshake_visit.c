/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/handshake_visit.h"

#include "support/tls/pki.h"
#include "tls/tls_context.h"

weir_tls_context *visit_server(enum weir_tls_version version)
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

weir_tls_context *visit_client(enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(
        weir_tls_client_create(
            WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .max_version = version), &context),
        0);
    return context;
}

static const weir__tls_peer peer = {.server_name = VISIT_NAME, .cache_key = "there"};

static bool shake_hands(struct talk *talk)
{
    return talk_handshake(talk) && talk_hear(&talk->client) == WEIR__TLS_MORE;
}

bool visit_begin(struct talk *talk, weir_tls_context *client, weir_tls_context *server)
{
    talk_begin_as(talk, weir__tls_context_settings(client), weir__tls_context_settings(server),
                  &peer, false);
    return shake_hands(talk);
}

/* Ends the visit, in which both sides are of one mind. */
static bool is_resumed(struct talk *talk)
{
    weir__tls_facts of_client, of_server;

    weir__tls_openssl.facts(talk->client.session, &of_client);
    weir__tls_openssl.facts(talk->server.session, &of_server);
    assert_int_equal(of_client.is_resumed, of_server.is_resumed);
    talk_end(talk);
    return of_client.is_resumed;
}

bool visit_resumes(weir_tls_context *client, weir_tls_context *server)
{
    struct talk talk;

    assert_true(visit_begin(&talk, client, server));
    return is_resumed(&talk);
}

bool visit_resumes_chosen(weir_tls_context *client, weir_tls_context *server,
                          weir_tls_context *chosen)
{
    struct talk talk;

    talk_begin_as(&talk, weir__tls_context_settings(client), weir__tls_context_settings(server),
                  &peer, true);
    assert_false(talk_handshake(&talk));
    talk_choose(&talk, weir__tls_context_settings(chosen));
    assert_true(shake_hands(&talk));
    return is_resumed(&talk);
}
