/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weir_tls_reason says on this thread.
 */
#ifndef WEIR_TLS_TLS_REASON_H
#define WEIR_TLS_TLS_REASON_H

/* Copied, and cut off at WEIR__TLS_REASON_SIZE. */
void weir__tls_set_reason(const char *words);

#endif
