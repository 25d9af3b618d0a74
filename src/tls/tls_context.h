/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context as the handler uses it.
 */
#ifndef WEIR_TLS_TLS_CONTEXT_H
#define WEIR_TLS_TLS_CONTEXT_H

#include <weir/tls_context.h>

#include "tls/openssl/openssl.h"

/* What it consists of now; to be released by the caller. */
weir__openssl_context *weir__tls_context_current(weir_tls_context *context);

/* The same, and whether a client's server name decides (there are names, or on_sni), read at the
 * same moment. */
weir__openssl_context *weir__tls_context_snapshot(weir_tls_context *context, bool *ret_has_names);

bool weir__tls_context_is_server(const weir_tls_context *context);

/* on_sni; NULL if there is none. */
weir_tls_sni_fn *weir__tls_context_sni_fn(weir_tls_context *context, void **ret_user_data);

/* The context of this name, `context` itself if there is none; retained. */
weir_tls_context *weir__tls_context_find(weir_tls_context *context, const char *name);

/* Counts a finished handshake. */
void weir__tls_context_count(weir_tls_context *context, int err, bool is_resumed);

#endif
