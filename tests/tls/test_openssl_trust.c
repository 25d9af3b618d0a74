/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/error.h>

#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/pki.h"
#include "tls/openssl/internal.h"

/* The number of authorities that a server sends with its certificate request. */
static int authorities_told(const char *ca_file, const char *ca_pem)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_DEFAULT), *server;
    struct session_pair pair;
    int count;

    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key,
                                                  .verify = WEIR_TLS_VERIFY_OPTIONAL,
                                                  .ca_file = ca_file, .ca_pem = ca_pem),
                         &server),
                     0);
    assert_true(handshake_run(&pair, client, server));
    count = sk_X509_NAME_num(SSL_get0_peer_CA_list(
        ((const weir__openssl_session *)(const void *)pair.client.session)->ssl));
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
    return count;
}

TEST(openssl_trust, a_server_tells_whom_it_trusts)
{
    assert_int_equal(authorities_told(NULL, pki()->ca), 1);
    assert_int_equal(authorities_told(pki()->ca_file, NULL), 1);
    assert_int_equal(authorities_told(pki()->ca_file, pki()->strange_ca), 2);
}

TEST(openssl_trust, who_is_trusted_need_not_be_the_last_authority)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT), *client;

    /* The leaf itself, and who vouches for it: not the authority behind them. */
    assert_int_equal(weir_tls_client_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->server.certificate), &client),
                     0);
    assert_false(handshake_resumes(client, server));
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* Nothing that we trust is in the system's store; that there is one may not be so. */
TEST(openssl_trust, without_authorities_those_of_the_system_are_asked)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT), *client;
    struct session_pair pair;

    assert_int_equal(weir_tls_client_create(NULL, &client), 0);
    assert_false(handshake_run(&pair, client, server));
    assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}
