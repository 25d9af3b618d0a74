/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weir_tls_reason says on this thread.
 */
#ifndef WEIR_TLS_TLS_REASON_H
#define WEIR_TLS_TLS_REASON_H

#include <weir/base.h>

/* Copied, and cut off at WEIR__TLS_REASON_SIZE. */
void weir__tls_set_reason(const char *words);

/* The same in one, and returns `err`. */
int weir__tls_fail(int err, const char *format, ...) WEIR_PRINTF(2, 3);

/* A handler was not added, and there are no better words: of options that make no sense the log has
 * them. Returns `err`. */
int weir__tls_not_added(int err);

/* Logs it as well: who could ask for it may be on another thread. Returns `err`. */
int weir__tls_complain(bool is_server, int err);

#endif
