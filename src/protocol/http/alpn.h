/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HTTP speaks behind TLS: `alpn` of the options of its channels.
 */
#ifndef WEIR_PROTOCOL_HTTP_ALPN_H
#define WEIR_PROTOCOL_HTTP_ALPN_H

#include <weir/pipeline.h>

#define WEIR__HTTP_SERVER_ALPN "http/1.1,http/1.0"
#define WEIR__HTTP_CLIENT_ALPN "http/1.1"

/* Adds TLS to a channel without a socket. Fails with -EPROTONOSUPPORT, which TLS has logged, if its
 * context has other protocols; everything else is left to the connections. -ENOMEM. */
int weir__http_alpn_check(const char *alpn,
                          int (*add_tls)(weir_pipeline *pipeline, const void *options),
                          const void *options);

#endif
