/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls/identity.h - who the servers of this suite are: a key on P-256 and a certificate that it has
 * signed itself, made when the first of them asks.
 */
#ifndef BENCH_TLS_IDENTITY_H
#define BENCH_TLS_IDENTITY_H

#include <stdbool.h>

#include <openssl/ssl.h>

/* In PEM. */
const char *tls_identity_certificate(void);
const char *tls_identity_key(void);

/* A context of OpenSSL's for servers that are it; with session tickets, or without. */
SSL_CTX *tls_identity_server(bool tickets);

#endif
