/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context's options: whether they make sense, and a copy that stays.
 */
#ifndef WEIR_TLS_TLS_CONTEXT_OPTIONS_H
#define WEIR_TLS_TLS_CONTEXT_OPTIONS_H

#include <weir/tls_context.h>

/* Looks at what can be judged without files and without a TLS library. Fails with -EINVAL, and in
 * words (weir__tls_fail). */
int weir__tls_context_options_check(const weir_tls_context_options *options, bool is_server);

/* With all texts, and the tickets kept. NULL if there is no memory. */
weir_tls_context_options *weir__tls_context_options_copy(const weir_tls_context_options *options);

/* Frees a copy, whose secrets are wiped; NULL is fine. */
void weir__tls_context_options_free(weir_tls_context_options *copy);

#endif
