/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/tls_line.h"

#include "support/executor/global_executor.h"
#include "support/tls/pki.h"

void secure_open(struct secure *secure)
{
    *secure = (struct secure){0};
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key),
                         &secure->server),
                     0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &secure->client), 0);
}

void secure_close(struct secure *secure)
{
    weir_tls_context_release(secure->server);
    weir_tls_context_release(secure->client);
    if (secure->group != NULL)
        end_group(secure->group);
    if (secure->offload != NULL)
        end_group(secure->offload);
}

void secure_end_loops(struct connection *connection)
{
    weir_group *groups[] = {connection->near.group, connection->far.group};

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weir_group_shutdown(groups[i], 0, TEST_TIMEOUT_NS), 0);
        assert_int_equal(weir_group_await_termination(groups[i], TEST_TIMEOUT_NS), 0);
    }
    global_executor_stop();
}

/* ---- one line ---- */

struct secure secure_on_line;

void secure_server(weir_ctx *ctx)
{
    (void)weir_tls_add_with(
        weir_ctx_pipeline(ctx), secure_on_line.server,
        WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.first = true, .group = secure_on_line.group)));
}

void secure_client(weir_ctx *ctx)
{
    (void)weir_tls_add_with(
        weir_ctx_pipeline(ctx), secure_on_line.client,
        WEIR_TLS_OPTIONS(.server_name = "localhost",
                         .place = WEIR_PLACE(.first = true, .group = secure_on_line.group)));
}

static void shake_hands(struct connection *connection, const struct connection_options *options,
                        weir_group *group, void (*client_active)(weir_ctx *ctx))
{
    secure_open(&secure_on_line);
    secure_on_line.group = group;
    connection->server.on_active = secure_server;
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

void secure_line_call(struct connection *connection, const struct connection_options *options,
                      void (*client_active)(weir_ctx *ctx))
{
    shake_hands(connection, options, NULL, client_active);
}

void secure_line_open(struct connection *connection, const struct connection_options *options,
                      void (*client_active)(weir_ctx *ctx))
{
    shake_hands(connection, options, NULL, client_active);
    forget(connection);
}

void secure_line_open_on(struct connection *connection, const struct connection_options *options,
                         weir_group *group)
{
    shake_hands(connection, options, group, secure_client);
    forget(connection);
}

void secure_line_close(struct connection *connection)
{
    connection_close(connection);
    if (secure_on_line.group != NULL)
        secure_end_loops(connection);
    secure_close(&secure_on_line);
}
