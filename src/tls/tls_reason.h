/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that weir_tls_reason returns on this thread.
 */
#ifndef WEIR_TLS_TLS_REASON_H
#define WEIR_TLS_TLS_REASON_H

#include <weir/base.h>

/* Copies the text, truncated to WEIR__TLS_REASON_SIZE. */
void weir__tls_set_reason(const char *text);

/* Formats the text, and returns `err`. */
int weir__tls_fail(int err, const char *format, ...) WEIR_PRINTF(2, 3);

/* Sets a general reason for a handler that was not added; invalid options are in the log. Returns
 * `err`. */
int weir__tls_fail_add(int err);

/* Logs the reason as well. Returns `err`. */
int weir__tls_log_reason(bool is_server, int err);

#endif
