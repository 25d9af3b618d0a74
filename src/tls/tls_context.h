/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the handler knows of a context.
 */
#ifndef WEIR_TLS_TLS_CONTEXT_H
#define WEIR_TLS_TLS_CONTEXT_H

#include <weir/tls_context.h>

#include "tls/engine.h"

/* As they are now; the caller's to release. */
weir__tls_settings *weir__tls_context_settings(weir_tls_context *context);

/* What a session begins with, all of one moment: settings, the caller's to release; and whether
 * what a client asks for decides: there are names, or a chooser. */
weir__tls_settings *weir__tls_context_begin(weir_tls_context *context, bool *ret_asks);

bool weir__tls_context_is_server(const weir_tls_context *context);

/* The chooser; NULL if there is none. */
weir_tls_choose_fn *weir__tls_context_chooser(weir_tls_context *context, void **ret_user_data);

/* The context that has this name, itself if none has; retained. */
weir_tls_context *weir__tls_context_find(weir_tls_context *context, const char *name);

/* A handshake has ended. */
void weir__tls_context_count(weir_tls_context *context, int err, bool is_resumed);

#endif
