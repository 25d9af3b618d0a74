/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over sockets, on every pair of backends.
 */
#include <weir/tls.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "support/tls/pki.h"
#include "support/transport/echo.h"
#include "support/transport/line.h"

struct contexts {
    weir_tls_context *server;
    weir_tls_context *client;
};

static void contexts_open(struct contexts *contexts)
{
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key),
                         &contexts->server),
                     0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &contexts->client),
        0);
}

static void contexts_close(struct contexts *contexts)
{
    weir_tls_context_release(contexts->server);
    weir_tls_context_release(contexts->client);
}

static int add_tls(weir_pipeline *pipeline, bool is_server, void *arg)
{
    struct contexts *contexts = arg;

    return is_server ? weir_tls_add(pipeline, contexts->server)
                     : weir_tls_add_with(pipeline, contexts->client,
                                         WEIR_TLS_OPTIONS(.server_name = "localhost"));
}

/* ---- echo ---- */

TEST_EACH_PAIR(tls_socket, echoes_every_byte)
{
    struct contexts contexts;
    struct echo echo = {.connections = 4, .seed = 1, .prepare = add_tls, .prepare_arg = &contexts};

    contexts_open(&contexts);
    assert_int_equal(echo_open(&echo, line->far.group, line->near.group), 0);
    assert_true(echo_exchange(&echo, 1 << 20));
    assert_true(echo_close(&echo));
    assert_int_equal(echo.wrong, 0);
    assert_int_equal(echo.errors, 0);
    contexts_close(&contexts);
}
