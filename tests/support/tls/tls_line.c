/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/tls_line.h"

#include "support/executor/global_executor.h"
#include "support/tls/pki.h"

void tls_setup_open(struct tls_setup *setup)
{
    *setup = (struct tls_setup){0};
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key),
                         &setup->server),
                     0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &setup->client), 0);
}

void tls_setup_close(struct tls_setup *setup)
{
    weir_tls_context_release(setup->server);
    weir_tls_context_release(setup->client);
    if (setup->group != NULL)
        end_group(setup->group);
    if (setup->offload != NULL)
        end_group(setup->offload);
}

void tls_line_end_loops(struct connection *connection)
{
    weir_group *groups[] = {connection->near.group, connection->far.group};

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weir_group_shutdown(groups[i], 0, TEST_TIMEOUT_NS), 0);
        assert_int_equal(weir_group_await_termination(groups[i], TEST_TIMEOUT_NS), 0);
    }
    global_executor_stop();
}

/* ---- one line ---- */

struct tls_setup tls_line_setup;

void tls_line_add_server(weir_ctx *ctx)
{
    if (weir_tls_add_with(weir_ctx_pipeline(ctx), tls_line_setup.server,
                          WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.first = true,
                                                               .group = tls_line_setup.group))) < 0)
        weir_close(ctx, NULL);
}

void tls_line_add_client(weir_ctx *ctx)
{
    if (weir_tls_add_with(weir_ctx_pipeline(ctx), tls_line_setup.client,
                          WEIR_TLS_OPTIONS(.server_name = "localhost",
                                           .place = WEIR_PLACE(.first = true,
                                                               .group = tls_line_setup.group))) < 0)
        weir_close(ctx, NULL);
}

static void complete_handshake(struct connection *connection,
                               const struct connection_options *options, weir_group *group,
                               void (*client_active)(weir_ctx *ctx))
{
    tls_setup_open(&tls_line_setup);
    tls_line_setup.group = group;
    connection->server.on_active = tls_line_add_server;
    connection->client.on_active = client_active;
    connection_prepare(connection, options);
    connection_start(connection);
    connection_await(&connection->client, "tls-handshake", 1);
    connection_await(&connection->server, "tls-handshake", 1);
}

static void forget(struct connection *connection)
{
    event_log_clear(&connection->client.events);
    event_log_clear(&connection->server.events);
}

void tls_line_connect(struct connection *connection, const struct connection_options *options,
                      void (*client_active)(weir_ctx *ctx))
{
    complete_handshake(connection, options, NULL, client_active);
}

void tls_line_open(struct connection *connection, const struct connection_options *options,
                   void (*client_active)(weir_ctx *ctx))
{
    complete_handshake(connection, options, NULL, client_active);
    forget(connection);
}

void tls_line_open_on(struct connection *connection, const struct connection_options *options,
                      weir_group *group)
{
    complete_handshake(connection, options, group, tls_line_add_client);
    forget(connection);
}

void tls_line_close(struct connection *connection)
{
    connection_close(connection);
    if (tls_line_setup.group != NULL)
        tls_line_end_loops(connection);
    tls_setup_close(&tls_line_setup);
}
