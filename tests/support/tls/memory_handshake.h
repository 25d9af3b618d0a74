/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of one context visits a server of another, in memory: a handshake, and what a server
 * says behind it (tickets). All visits have the same cache key.
 */
#ifndef WEIR_TEST_TLS_MEMORY_HANDSHAKE_H
#define WEIR_TEST_TLS_MEMORY_HANDSHAKE_H

#include <weir/tls_context.h>

#include "support/tls/session_pair.h"

#define HANDSHAKE_SERVER_NAME "example.test"

/* A server that is HANDSHAKE_SERVER_NAME, and a client that believes it, of at most `version`. */
weir_tls_context *handshake_server(enum weir_tls_version version);
weir_tls_context *handshake_client(enum weir_tls_version version);

/* Whether the handshake succeeded; the visit goes on until session_pair_close. */
bool handshake_run(struct session_pair *pair, weir_tls_context *client, weir_tls_context *server);

/* All of a visit, which succeeds: whether a session was taken up again. */
bool handshake_resumes(weir_tls_context *client, weir_tls_context *server);

/* The same at a server that asks, and then goes on as `chosen`. */
bool handshake_resumes_with(weir_tls_context *client, weir_tls_context *server,
                            weir_tls_context *chosen);

#endif
