/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS for examples, on if --tls or another of these options is given. Otherwise contexts are NULL,
 * and nothing is added.
 *
 *      --tls        a server: self-signed certificate, unless there is
 *      --cert FILE  the certificate chain, in PEM
 *      --key FILE   the key, if it is not in that file
 *      --ca FILE    a client: trusted authorities; default those of the system. A server: demands
 *                   client certificates of these authorities
 *      --insecure   a client: does not verify the server
 */
#ifndef EXAMPLES_TLS_H
#define EXAMPLES_TLS_H

#include <weir/tls_context.h>

#include "support/settings.h"

/* Failures have been logged. */
int tls_make_server(const struct settings *settings, weir_tls_context **ret_tls);
int tls_make_client(const struct settings *settings, weir_tls_context **ret_tls);

/* NULL is ignored. */
void tls_release(weir_tls_context *tls);

/* False if the examples were built without TLS. */
bool tls_is_available(void);

/* For a server's channel, and for a client's to a host; the options of HTTP servers and clients. */
int tls_add(weir_pipeline *pipeline, weir_tls_context *tls);
int tls_add_client(weir_pipeline *pipeline, weir_tls_context *tls, const char *host);

/* True if an event reports a successful handshake. */
bool tls_is_open(weir_msg *event);

/* For a client's channel to `host`. tls_await waits for the handshake and reports its failure. */
int tls_add_to(weir_channel *channel, weir_tls_context *tls, const char *host);
int tls_await(const struct settings *settings, weir_channel *channel);

#endif
