/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a hello that arrives in pieces, and single extensions of it.
 */
#ifndef WEIR_TLS_TLS_HELLO_H
#define WEIR_TLS_TLS_HELLO_H

#include <weir/tls.h>

#define WEIR__TLS_NAME_SIZE 256

/* How far the records have been scanned: each is once, however often more bytes arrive. Zeroed at
 * the start. */
typedef struct weir__tls_hello_scan {
    size_t end;    /* of the complete records */
    size_t length; /* handshake bytes in them */
    size_t whole;  /* length of the hello; 0 = not known */
    uint8_t head[4];
} weir__tls_hello_scan;

/*
 * As weir_tls_hello_read, but continues a scan: `bytes` are those of the last call and more. With
 * result 0, calling it again with fewer than `*ret_need` bytes is useless. With an error,
 * `*ret_fault` is its text, a literal.
 */
int weir__tls_hello_scan_read(weir__tls_hello_scan *scan, weir_span bytes,
                              weir_tls_hello *ret_hello, size_t *ret_need, const char **ret_fault);

/* The same without reading the hello: 1 if its records are complete. */
int weir__tls_hello_scan_records(weir__tls_hello_scan *scan, weir_span bytes, size_t *ret_need,
                                 const char **ret_fault);

/*
 * Parse the extensions server_name and application_layer_protocol_negotiation of a client: NULL, or
 * what is wrong with it. The texts are as in weir_tls_hello.
 */
const char *weir__tls_hello_server_name(weir_span extension, char ret_name[WEIR__TLS_NAME_SIZE]);
const char *weir__tls_hello_alpn(weir_span extension, char ret_alpn[WEIR__TLS_NAME_SIZE]);

#endif
