/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sessions on OpenSSL that talk in memory.
 */
#include <weir/bytes.h>

#include "support/test.h"
#include "support/tls/pki.h"
#include "support/tls/talk.h"

static weir__tls_settings *server_with(const weir_tls_context_options *options)
{
    return talk_settings(options, true);
}

static weir__tls_settings *plain_server(void)
{
    return server_with(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                .key_pem = pki()->server.key));
}

static weir__tls_settings *plain_client(void)
{
    return talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), false);
}

TEST(openssl, two_sessions_talk)
{
    struct talk talk;
    weir__tls_facts facts;

    talk_begin(&talk, plain_client(), plain_server(), "example.test");
    assert_true(talk_handshake(&talk));
    talk.client.session->engine->facts(talk.client.session, &facts);
    assert_string_equal(facts.version, "TLSv1.3");
    assert_int_equal(talk_seal(&talk.client, "hello", 5), 0);
    talk_expect(&talk.server, "hello", 5);
    assert_int_equal(talk_seal(&talk.server, "hello yourself", 14), 0);
    talk_expect(&talk.client, "hello yourself", 14);
    talk_end(&talk);
}
