/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of all TLS handshakes of the process. */
#ifndef WEIR_TLS_TLS_METRICS_H
#define WEIR_TLS_TLS_METRICS_H

#include <stdbool.h>

/* Any thread: counts a finished handshake. */
void weir__tls_metrics_count(bool is_server, int err, bool is_resumed);

#endif
