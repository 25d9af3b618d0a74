/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS between both ends of a line, or of many.
 *
 *     tls_line_open(line, NULL, tls_line_add_client);
 *     connection_send(&line->client, "hello");
 *     assert_end_events(&line->server, "read(hello)");
 *     tls_line_close(line);
 */
#ifndef WEIR_TEST_TLS_LINE_H
#define WEIR_TEST_TLS_LINE_H

#include <weir/tls.h>

#include "support/transport/connection.h"

struct tls_setup {
    weir_tls_context *server;
    weir_tls_context *client;
    weir_group *group;   /* the handlers run on it, */
    weir_group *offload; /* or only the handshake's steps */
};

/* Default certificates, and no groups; the caller may set these, and close releases them. */
void tls_setup_open(struct tls_setup *setup);
void tls_setup_close(struct tls_setup *setup);

/* Handlers keep their groups: when their loops have ended they are gone, and nobody else waits for
 * the threads of those. */
void tls_line_end_loops(struct connection *connection);

/* What the line has; for on_active, where the handler is added before the one that takes notes. */
extern struct tls_setup tls_line_setup;
void tls_line_add_server(weir_ctx *ctx);
void tls_line_add_client(weir_ctx *ctx);

/* Both have shaken hands; and have forgotten it. `group` is where their handlers run: taken. */
void tls_line_connect(struct connection *connection, const struct connection_options *options,
                      void (*client_active)(weir_ctx *ctx));
void tls_line_open(struct connection *connection, const struct connection_options *options,
                   void (*client_active)(weir_ctx *ctx));
void tls_line_open_on(struct connection *connection, const struct connection_options *options,
                      weir_group *group);
void tls_line_close(struct connection *connection);

#endif
