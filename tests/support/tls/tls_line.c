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

void secure_end_loops(struct line *line)
{
    weir_group *groups[] = {line->near.group, line->far.group};

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

static void shake_hands(struct line *line, const struct line_options *options, weir_group *group,
                        void (*client_active)(weir_ctx *ctx))
{
    secure_open(&secure_on_line);
    secure_on_line.group = group;
    line->server.on_active = secure_server;
    line->client.on_active = client_active;
    line_prepare(line, options);
    line_call(line);
    line_await(&line->client, "tls-handshake", 1);
    line_await(&line->server, "tls-handshake", 1);
}

static void forget(struct line *line)
{
    event_log_clear(&line->client.events);
    event_log_clear(&line->server.events);
}

void secure_line_call(struct line *line, const struct line_options *options,
                      void (*client_active)(weir_ctx *ctx))
{
    shake_hands(line, options, NULL, client_active);
}

void secure_line_open(struct line *line, const struct line_options *options,
                      void (*client_active)(weir_ctx *ctx))
{
    shake_hands(line, options, NULL, client_active);
    forget(line);
}

void secure_line_open_on(struct line *line, const struct line_options *options, weir_group *group)
{
    shake_hands(line, options, group, secure_client);
    forget(line);
}

void secure_line_close(struct line *line)
{
    line_close(line);
    if (secure_on_line.group != NULL)
        secure_end_loops(line);
    secure_close(&secure_on_line);
}
