/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of one context visits a server of another, in memory: a handshake, and what a server
 * says behind it (tickets). All visits have the same cache key.
 */
#ifndef WEIR_TEST_TLS_HANDSHAKE_VISIT_H
#define WEIR_TEST_TLS_HANDSHAKE_VISIT_H

#include <weir/tls_context.h>

#include "support/tls/session_pair.h"

#define VISIT_NAME "example.test"

/* A server that is VISIT_NAME, and a client that believes it, of at most `version`. */
weir_tls_context *visit_server(enum weir_tls_version version);
weir_tls_context *visit_client(enum weir_tls_version version);

/* Whether the handshake succeeded; the visit goes on until talk_end. */
bool visit_begin(struct talk *talk, weir_tls_context *client, weir_tls_context *server);

/* All of a visit, which succeeds: whether a session was taken up again. */
bool visit_resumes(weir_tls_context *client, weir_tls_context *server);

/* The same at a server that asks, and then goes on as `chosen`. */
bool visit_resumes_chosen(weir_tls_context *client, weir_tls_context *server,
                          weir_tls_context *chosen);

#endif
