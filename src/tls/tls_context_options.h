/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a context: checked, and copied.
 */
#ifndef WEIR_TLS_TLS_CONTEXT_OPTIONS_H
#define WEIR_TLS_TLS_CONTEXT_OPTIONS_H

#include <weir/tls_context.h>

/* Checks what needs neither files nor OpenSSL. Fails with -EINVAL and a reason (weir__tls_fail). */
int weir__tls_context_options_check(const weir_tls_context_options *options, bool is_server);

/* A deep copy, which retains the tickets. NULL if there is no memory. */
weir_tls_context_options *weir__tls_context_options_copy(const weir_tls_context_options *options);

/* Wipes and frees a copy. NULL is ignored. */
void weir__tls_context_options_free(weir_tls_context_options *copy);

#endif
