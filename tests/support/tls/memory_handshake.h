/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handshake in memory between a client and a server context, including the tickets that follow.
 * All of them have the same cache key.
 */
#ifndef WEIR_TEST_TLS_MEMORY_HANDSHAKE_H
#define WEIR_TEST_TLS_MEMORY_HANDSHAKE_H

#include <weir/tls_context.h>

#include "support/tls/session_pair.h"

#define HANDSHAKE_SERVER_NAME "example.test"

/* A server with the name HANDSHAKE_SERVER_NAME, and a client that trusts it; at most `version`. */
weir_tls_context *handshake_server(enum weir_tls_version version);
weir_tls_context *handshake_client(enum weir_tls_version version);

/* True if the handshake succeeded; the pair stays open until session_pair_close. */
bool handshake_run(struct session_pair *pair, weir_tls_context *client, weir_tls_context *server);

/* Runs a handshake, which must succeed. True if a session was resumed. */
bool handshake_resumes(weir_tls_context *client, weir_tls_context *server);

/* The same with a server that pauses at the hello, and continues with `chosen`. */
bool handshake_resumes_with(weir_tls_context *client, weir_tls_context *server,
                            weir_tls_context *chosen);

#endif
