/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS, if --tls was given, or any other of these. Without it contexts are NULL, and nothing is
 * added.
 *
 *      --tls        a server: with a self-signed certificate, unless there is
 *      --cert FILE  its certificate and those between it and the authority, in PEM
 *      --key FILE   the key, if it is not in there
 *      --ca FILE    a client: the authorities that it trusts; those of the system by default
 *      --insecure   a client: anybody may pretend to be the server
 */
#ifndef EXAMPLES_TLS_H
#define EXAMPLES_TLS_H

#include <weir/tls_context.h>

#include "support/settings.h"

/* What was wrong has been logged. */
int tls_make_server(const struct settings *settings, weir_tls_context **ret_tls);
int tls_make_client(const struct settings *settings, weir_tls_context **ret_tls);

/* NULL is fine. */
void tls_release(weir_tls_context *tls);

/* A server's channel. */
int tls_add(weir_pipeline *pipeline, weir_tls_context *tls);

/* Whether an event says that the handshake of a channel has succeeded. */
bool tls_is_open(weir_msg *event);

/* A client's, that wants to reach this host. When it is connected tls_await waits for the
 * handshake, and says why it has failed. */
int tls_add_to(weir_channel *channel, weir_tls_context *tls, const char *host);
int tls_await(const struct settings *settings, weir_channel *channel);

#endif
