/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocols by commas, and as TLS writes them: each with its length in front.
 */
#ifndef WEIR_TLS_TLS_ALPN_H
#define WEIR_TLS_TLS_ALPN_H

#include <stddef.h>
#include <stdint.h>

/* So many bytes may all of them have, as events and wishes tell of them. */
#define WEIR__TLS_ALPN_MAX 255

/*
 * Writes "h2,http/1.1" as TLS does, to `ret_bytes` of WEIR__TLS_ALPN_MAX + 1, or nowhere if that is
 * NULL. Fails with -EINVAL, and in words (weir__tls_fail).
 */
int weir__tls_alpn_encode(const char *alpn, uint8_t *ret_bytes, size_t *ret_length);

#endif
