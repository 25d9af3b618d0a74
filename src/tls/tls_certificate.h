/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A certificate as data, filled in by tls/openssl/certificate.c.
 */
#ifndef WEIR_TLS_TLS_CERTIFICATE_H
#define WEIR_TLS_TLS_CERTIFICATE_H

#include <weir/tls_context.h>

#include "base/refcount.h"

struct weir_tls_certificate {
    weir__refs refs;
    char *subject; /* allocated, as are the pointers below */
    char *issuer;
    char *serial;
    char **names;
    size_t name_count;
    int64_t not_before;
    int64_t not_after;
    char pin[WEIR_TLS_PIN_SIZE];
    uint8_t *der;
    size_t der_length;
    char *pem;
};

/* An empty certificate with one reference. NULL if there is no memory. */
weir_tls_certificate *weir__tls_certificate_create(void);

#endif
